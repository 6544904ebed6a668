"""What a workspace used in some of its days by one thing, added up. `billing.selectors.usage_days` has all at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Final, Self

from django.db import connection


class Dimension(StrEnum):
    """What people ask by. Each is a column of the sums by day."""

    DAY = "day"
    VOICE = "voice"
    MEMBER = "member"
    KEY = "key"
    DEVICE_CLASS = "device_class"
    JOB_CLASS = "job_class"


# A place of the sums: the day, the voice's, member's or key's id, or the class's name. None: no member, or no key.
Key = date | uuid.UUID | str | None

COLUMNS: Final = {
    Dimension.DAY: "day",
    Dimension.VOICE: "voice_id",
    Dimension.MEMBER: "user_id",
    Dimension.KEY: "api_key_id",
    Dimension.DEVICE_CLASS: "device_class",
    Dimension.JOB_CLASS: "job_class",
}


@dataclass(frozen=True)
class Sums:
    """`records`, `characters`, `audio_ms` and `gpu_ms` of what is charged for; `unbilled_gpu_ms` is what our own faults
    took and nobody pays. `refunded_micros` is what was given back in that time, of what was charged in it or before."""

    records: int = 0
    characters: int = 0
    audio_ms: int = 0
    gpu_ms: int = 0
    unbilled_gpu_ms: int = 0
    charged_micros: int = 0
    refunded_micros: int = 0

    @property
    def net_micros(self) -> int:
        return self.charged_micros - self.refunded_micros

    def __add__(self, other: Self) -> Sums:
        return Sums(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Sums)))


# In the order of the fields of Sums.
SUMS: Final = """
    SUM(records) FILTER (WHERE billable), SUM(characters) FILTER (WHERE billable),
    SUM(audio_ms) FILTER (WHERE billable), SUM(gpu_ms) FILTER (WHERE billable),
    SUM(gpu_ms) FILTER (WHERE NOT billable), SUM(charged_micros), SUM(refunded_micros)
"""
OF_DAYS: Final = "FROM billing_usageday WHERE workspace_id = %s AND day BETWEEN %s AND %s"


def usage_by(
    workspace_id: uuid.UUID, dimension: Dimension, first_day: date, last_day: date
) -> dict[Key, Sums]:
    """What the workspace used from `first_day` to `last_day`, both included, by one dimension. One query."""
    column = COLUMNS[dimension]
    query = f"SELECT {column}, {SUMS} {OF_DAYS} GROUP BY 1 ORDER BY 1"  # a column of ours
    with connection.cursor() as cursor:
        cursor.execute(query, [workspace_id, first_day, last_day])
        return {key: Sums(*whole_numbers(rest)) for key, *rest in cursor.fetchall()}


def total_of(parts: Iterable[Sums]) -> Sums:
    """All of them together."""
    return sum(parts, Sums())


def whole_numbers(values: Iterable[object]) -> list[int]:
    """What SUMS gives as integers: PostgreSQL adds bigints up to a numeric, and of no rows it makes NULL."""
    return [int(str(value)) if value is not None else 0 for value in values]
