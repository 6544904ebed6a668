"""What a request would cost, before anything is stored."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from accounts.models import Workspace
from billing.models import PriceVersion
from billing.pricing import Rate, price_gpu_ms
from billing.selectors.prices import current_price, highest_rate
from tts.engine.capabilities import needs_of
from tts.errors import NotOffered
from tts.models import Voice
from tts.selectors.devices import device_classes_in_use
from tts.selectors.engines import pool_offer
from tts.selectors.voices import voice_of
from tts.text.annotations import counted_characters, silence_ms
from tts.text.cleaning import clean_text
from tts.text.estimate import estimate_audio_ms
from tts.text.language import languages_of
from tts.text.segmentation import segment
from tts.text.spoken import spoken_text

# The hold is the quote's upper bound: this many times the estimate, and a fixed part for short texts. The engine is
# stopped when it is used up, so it has to cover a slow moment of a shared device, not a broken one.
HOLD_FACTOR = 4
HOLD_BASE_GPU_MS = 3000


@dataclass(frozen=True)
class SegmentPlan:
    """`spoken` is what the engine is given for `text`; price and limits go by `text`."""

    text: str
    spoken: str
    characters: int
    estimate_gpu_ms: int
    held_gpu_ms: int


@dataclass(frozen=True)
class Quote:
    """`estimate_*` is what to expect, `held_*` what is set aside at most."""

    voice: Voice
    text: str
    language: str
    characters: int
    plan: list[SegmentPlan]
    needs: list[str]
    estimate_audio_ms: int
    estimate_gpu_ms: int
    estimate_micros: int
    held_gpu_ms: int
    held_micros: int
    currency: str
    price: PriceVersion

    @property
    def segments(self) -> list[str]:
        return [part.text for part in self.plan]

    @property
    def spoken(self) -> list[str]:
        return [part.spoken for part in self.plan]

    @property
    def is_spoken_as_written(self) -> bool:
        """Whether nothing of the text is said otherwise than it is written."""
        return all(part.spoken == part.text for part in self.plan)

    @property
    def price_version(self) -> int:
        return self.price.number


def quote(
    *,
    workspace: Workspace,
    voice_id: uuid.UUID,
    text: str,
    language: str = "",
    job_class: str = "interactive",
    speed: float = 1.0,
) -> Quote:
    """Check the request, cut it into segments, and price it. Stores nothing.

    Raises:
        VoiceNotFound: no such voice for this workspace.
        NotOffered: no device can speak this.
        text_* and language_not_supported: see tts.text.errors.
    """
    engine = pool_offer()
    clean = clean_text(text, supported_languages=engine.languages, language=language)
    voice = voice_of(workspace, voice_id)
    needs = needs_of(voice_kind=voice.kind, languages=languages_of(clean.text, asked=language))
    if not engine.suits(needs):
        raise NotOffered
    plan = [
        _plan(
            part,
            spoken_text(part, language=language, voice_language=voice.language),
            gpu_ms_per_audio_s=engine.gpu_ms_per_audio_s,
            speed=speed,
        )
        for part in segment(clean.text)
    ]
    price = current_price()
    rate = _rate(price, job_class)
    estimate_gpu_ms = sum(part.estimate_gpu_ms for part in plan)
    held_gpu_ms = sum(part.held_gpu_ms for part in plan)
    return Quote(
        voice=voice,
        text=clean.text,
        language=language,
        characters=clean.characters,
        plan=plan,
        needs=needs,
        estimate_audio_ms=round((estimate_audio_ms(clean.text) + silence_ms(clean.text)) / speed),
        estimate_gpu_ms=estimate_gpu_ms,
        estimate_micros=max(price.minimum_charge_micros, price_gpu_ms(gpu_ms=estimate_gpu_ms, rate=rate)),
        held_gpu_ms=held_gpu_ms,
        held_micros=max(price.minimum_charge_micros, price_gpu_ms(gpu_ms=held_gpu_ms, rate=rate)),
        currency=rate.currency,
        price=price,
    )


def _rate(price: PriceVersion, job_class: str) -> Rate:
    """Whichever device speaks it, it costs no more. Devices are looked at only where they differ in price."""
    classes = device_classes_in_use() if price.device_class_rates else ()
    return highest_rate(price=price, job_class=job_class, device_classes=classes)


def _plan(text: str, spoken: str, *, gpu_ms_per_audio_s: int, speed: float) -> SegmentPlan:
    estimate = max(1, round(estimate_audio_ms(text) / speed * gpu_ms_per_audio_s / 1000))
    return SegmentPlan(
        text=text,
        spoken=spoken,
        characters=counted_characters(text),
        estimate_gpu_ms=estimate,
        held_gpu_ms=HOLD_BASE_GPU_MS + HOLD_FACTOR * estimate,
    )
