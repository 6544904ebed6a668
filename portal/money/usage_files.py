"""Usage as files and JSON: the same sums as on the page. Names of columns are the same in every language."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

from accounts.models import Workspace
from billing.selectors.usage import Dimension, Key, Sums
from billing.selectors.usage_days import Usage
from portal.lib.money import micros_as_decimal
from portal.money.names import names_of

# Beside the dimensions: what the chart shows.
BY_DAY_AND_DEVICE_CLASS: Final = "day_and_device_class"
MEASURES: Final = [
    "segments",
    "characters",
    "audio_ms",
    "gpu_ms",
    "unbilled_gpu_ms",
    "charged_micros",
    "refunded_micros",
    "net_micros",
    "net",
    "currency",
]


def measures(sums: Sums, currency: str) -> list[Any]:
    """The cells under MEASURES."""
    return [
        sums.records,
        sums.characters,
        sums.audio_ms,
        sums.gpu_ms,
        sums.unbilled_gpu_ms,
        sums.charged_micros,
        sums.refunded_micros,
        sums.net_micros,
        f"{micros_as_decimal(sums.net_micros):.6f}",
        currency,
    ]


def ordered(dimension: Dimension, parts: dict[Key, Sums]) -> list[tuple[Key, Sums]]:
    """Days as they follow one another, all others by what they cost, the dearest first."""
    if dimension == Dimension.DAY:
        return sorted(parts.items(), key=lambda item: str(item[0]))
    return sorted(parts.items(), key=lambda item: (-item[1].charged_micros, -item[1].gpu_ms, str(item[0])))


def header(by: str) -> list[str]:
    if by == BY_DAY_AND_DEVICE_CLASS:
        return ["day", "device_class", *MEASURES]
    if by in (Dimension.VOICE, Dimension.MEMBER, Dimension.KEY):
        return [f"{by}_id", by, *MEASURES]
    return [by, *MEASURES]


def rows(
    workspace: Workspace, dimension: Dimension, parts: dict[Key, Sums], currency: str
) -> list[list[Any]]:
    """The lines under `header` of a dimension."""
    lines = ordered(dimension, parts)
    if dimension in (Dimension.VOICE, Dimension.MEMBER, Dimension.KEY):
        names = names_of(workspace, dimension, parts)
        return [[key, names[key], *measures(sums, currency)] for key, sums in lines]
    return [[_plain(key), *measures(sums, currency)] for key, sums in lines]


def chart_rows(usage: Usage, currency: str) -> list[list[Any]]:
    """The lines under `header` of what the chart shows."""
    return [
        [day.isoformat(), device_class, *measures(sums, currency)]
        for (day, device_class), sums in sorted(usage.by_day_and_device_class.items())
    ]


def _plain(key: Key) -> str:
    return key.isoformat() if isinstance(key, date) else str(key)
