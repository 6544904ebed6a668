"""Price and rounding. Pure: no database, no clock."""

from __future__ import annotations

from dataclasses import dataclass

from portal.lib.money import divide_half_up

MS_PER_SECOND = 1000


@dataclass(frozen=True)
class Rate:
    """What a GPU-second costs for one class of job, in micros of `currency`."""

    gpu_second_micros: int
    currency: str


def price_gpu_ms(*, gpu_ms: int, rate: Rate) -> int:
    """The price of `gpu_ms` milliseconds in micros, rounded once, half up."""
    return divide_half_up(gpu_ms * rate.gpu_second_micros, MS_PER_SECOND)


def affordable_gpu_ms(*, amount_micros: int, rate: Rate) -> int:
    """How many whole milliseconds `amount_micros` buys: the inverse of `price_gpu_ms`, rounded down."""
    return amount_micros * MS_PER_SECOND // rate.gpu_second_micros if rate.gpu_second_micros else 0
