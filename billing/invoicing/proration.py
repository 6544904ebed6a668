"""What of a monthly fee falls on each part of a period in which the plan changed. Pure.

By local calendar days. The day of a change belongs to the new plan, of several changes on one day to the last; the day
on which a subscription ends with none after it is not paid for. A plan that was in force for the whole period costs its
fee. Parts are rounded to the cent along their running sum, so that neighbours with the same fee add up to what one
subscription over their days would have cost: the last one takes the remainder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Generic, TypeVar

from billing.invoicing.amounts import share_in_cents

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Span(Generic[Subject]):
    """That something was in force from a local day on, until the day `ends` began (None: it still is)."""

    subject: Subject
    starts: date
    ends: date | None


@dataclass(frozen=True)
class Segment(Generic[Subject]):
    """`first_day` to `last_day`, both included."""

    subject: Subject
    first_day: date
    last_day: date

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1


def segments_of(spans: Sequence[Span[Subject]], *, first_day: date, last_day: date) -> list[Segment[Subject]]:
    """Which days of the period belong to which span, those with none left out. `spans` come in order."""
    found: list[Segment[Subject]] = []
    for number, span in enumerate(spans):
        ends = span.ends
        if number + 1 < len(spans):
            following = spans[number + 1].starts
            ends = following if ends is None else min(ends, following)
        start = max(span.starts, first_day)
        end = last_day if ends is None else min(ends - timedelta(days=1), last_day)
        if start <= end:
            found.append(Segment(span.subject, start, end))
    return found


def fee_parts(segments: Sequence[Segment[int]], *, period_days: int) -> list[int]:
    """The fee of each segment in micros, whole cents; the subject of a segment is its monthly fee in micros."""
    parts: list[int] = []
    fee: int | None = None
    next_day: date | None = None
    days_before = 0
    for segment in segments:
        if segment.subject != fee or segment.first_day != next_day:
            fee, days_before = segment.subject, 0
        days = days_before + segment.days
        parts.append(share_in_cents(fee, days, period_days) - share_in_cents(fee, days_before, period_days))
        days_before, next_day = days, segment.last_day + timedelta(days=1)
    return parts


def included_micros(segments: Sequence[Segment[int]], *, period_days: int) -> int:
    """What all plans of a period include together, by their days; the subject of a segment is what its plan includes in
    a whole period, in micros. Rounded down to the micro.
    """
    return sum(segment.subject * segment.days for segment in segments) // period_days
