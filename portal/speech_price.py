"""What a minute of speech costs about, from the price in force and the engine's speed."""

from __future__ import annotations

from dataclasses import dataclass

from billing.pricing import price_gpu_ms
from billing.selectors.prices import current_price, rate_for
from portal.service_state import gpu_ms_per_audio_s
from tts.states import JobClass

SECONDS_PER_MINUTE = 60
MS_PER_SECOND = 1000


@dataclass(frozen=True)
class ClassPrice:
    """`audio_minute_micros` is what a minute of speech costs at the engine's usual speed."""

    job_class: JobClass
    gpu_second_micros: int
    audio_minute_micros: int
    currency: str


def class_prices() -> list[ClassPrice]:
    """The price of each class of job, the most urgent first. Raises NoPrice when the operator has set none."""
    price = current_price()
    gpu_ms_per_audio_minute = SECONDS_PER_MINUTE * gpu_ms_per_audio_s()
    prices = []
    for job_class in JobClass:
        rate = rate_for(price=price, job_class=job_class.value)
        prices.append(
            ClassPrice(
                job_class=job_class,
                gpu_second_micros=rate.gpu_second_micros,
                audio_minute_micros=price_gpu_ms(gpu_ms=gpu_ms_per_audio_minute, rate=rate),
                currency=rate.currency,
            )
        )
    return prices


def audio_ms_for(gpu_ms: int) -> int:
    """How much speech `gpu_ms` milliseconds of a device make about, in ms of audio."""
    return gpu_ms * MS_PER_SECOND // gpu_ms_per_audio_s()
