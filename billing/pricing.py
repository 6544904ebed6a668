"""Price and rounding. Pure: no database, no clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """How many whole milliseconds `amount_micros` buys: the inverse of `price_gpu_ms`, rounded down. A debt: none."""
    if amount_micros <= 0 or not rate.gpu_second_micros:
        return 0
    return amount_micros * MS_PER_SECOND // rate.gpu_second_micros


JOB_CLASSES = ("interactive", "standard", "batch")
_DEVICE_CLASS = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


def check_device_rates(rates: Mapping[str, Any]) -> None:
    """Raises ValueError when `rates` is not a price for each class of job by class of device, in whole micros.

    {"h200": {"interactive": 90000, "standard": 60000, "batch": 30000}}
    """
    for device_class, by_job_class in rates.items():
        if not _DEVICE_CLASS.fullmatch(device_class):
            raise ValueError(f"{device_class!r} is no class of device")
        if not isinstance(by_job_class, Mapping) or set(by_job_class) != set(JOB_CLASSES):
            raise ValueError(f"{device_class} needs a price for each of {', '.join(JOB_CLASSES)}")
        for job_class, micros in by_job_class.items():
            if type(micros) is not int or micros < 0:
                raise ValueError(f"{device_class}/{job_class} is no amount of micros")
