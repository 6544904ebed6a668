"""The rules by which invoices are reckoned."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.invoicing.amounts import CENT_MICROS, note_tax, payable, share_in_cents, tax_on
from billing.invoicing.proration import Segment, Span, fee_parts, included_micros, segments_of

NOVEMBER = {"first_day": date(2026, 11, 1), "last_day": date(2026, 11, 30)}
YUAN = 1_000_000


def day(number: int) -> date:
    return date(2026, 11, number)


def test_a_plan_of_the_whole_period_costs_its_fee() -> None:
    spans = [Span(99 * YUAN, date(2026, 3, 7), None)]
    assert segments_of(spans, **NOVEMBER) == [Segment(99 * YUAN, day(1), day(30))]
    assert fee_parts(segments_of(spans, **NOVEMBER), period_days=30) == [99 * YUAN]


def test_the_day_of_a_change_belongs_to_the_new_plan() -> None:
    spans = [Span(30 * YUAN, date(2026, 3, 7), day(11)), Span(60 * YUAN, day(11), None)]
    segments = segments_of(spans, **NOVEMBER)
    assert segments == [Segment(30 * YUAN, day(1), day(10)), Segment(60 * YUAN, day(11), day(30))]
    assert fee_parts(segments, period_days=30) == [10 * YUAN, 40 * YUAN]


def test_of_several_changes_on_one_day_the_last_counts() -> None:
    spans = [Span(1, day(1), day(5)), Span(2, day(5), day(5)), Span(3, day(5), day(5)), Span(4, day(5), None)]
    assert segments_of(spans, **NOVEMBER) == [Segment(1, day(1), day(4)), Segment(4, day(5), day(30))]


def test_days_without_a_plan_cost_nothing() -> None:
    spans = [Span(30 * YUAN, day(3), day(6)), Span(30 * YUAN, day(20), None)]
    segments = segments_of(spans, **NOVEMBER)
    assert [segment.days for segment in segments] == [3, 11]
    assert fee_parts(segments, period_days=30) == [3 * YUAN, 11 * YUAN]


def test_a_subscription_that_began_after_the_period_is_no_part_of_it() -> None:
    assert segments_of([Span(1, date(2026, 12, 1), None)], **NOVEMBER) == []


def test_the_last_part_takes_the_remainder() -> None:
    ten = [Segment(10 * YUAN, day(1 + 10 * n), day(10 + 10 * n)) for n in range(3)]
    assert fee_parts(ten, period_days=30) == [3_330_000, 3_340_000, 3_330_000]


@given(
    fee_cents=st.integers(0, 10**9),
    cuts=st.sets(st.integers(2, 31), max_size=30),
)
def test_parts_at_one_price_add_up_to_the_fee(fee_cents: int, cuts: set[int]) -> None:
    starts = [date(2026, 10, 1), *(date(2026, 10, cut) for cut in sorted(cuts))]
    spans = [
        Span(fee_cents * CENT_MICROS, start, starts[n + 1] if n + 1 < len(starts) else None)
        for n, start in enumerate(starts)
    ]
    segments = segments_of(spans, first_day=date(2026, 10, 1), last_day=date(2026, 10, 31))
    parts = fee_parts(segments, period_days=31)
    assert sum(segment.days for segment in segments) == 31
    assert sum(parts) == fee_cents * CENT_MICROS
    for part, segment in zip(parts, segments, strict=True):
        assert part % CENT_MICROS == 0
        assert abs(part - fee_cents * CENT_MICROS * segment.days / 31) <= CENT_MICROS


@given(starts=st.lists(st.integers(-10, 45), min_size=1, max_size=8), ended=st.booleans())
def test_every_day_belongs_to_at_most_one_plan(starts: list[int], ended: bool) -> None:
    days = sorted(date(2026, 11, 1) + timedelta(days=start) for start in starts)
    ends: list[date | None] = [*days[1:], days[-1] + timedelta(days=3) if ended else None]
    spans = [Span(n, start, end) for n, (start, end) in enumerate(zip(days, ends, strict=True))]
    owner: dict[date, int] = {}
    for segment in segments_of(spans, **NOVEMBER):
        for offset in range(segment.days):
            on = segment.first_day + timedelta(days=offset)
            assert on not in owner
            owner[on] = segment.subject
    for offset in range(30):
        on = date(2026, 11, 1) + timedelta(days=offset)
        begun = [
            span.subject for span in spans if span.starts <= on and (span.ends is None or span.ends > on)
        ]
        assert owner.get(on) == (begun[-1] if begun else None)


def test_what_plans_include_counts_by_their_days() -> None:
    segments = [Segment(300, day(1), day(15)), Segment(900, day(16), day(30))]
    assert included_micros(segments, period_days=30) == 150 + 450
    assert included_micros([Segment(100, day(1), day(1))], period_days=30) == 3


@pytest.mark.parametrize(
    ("amount", "rate", "inclusive", "tax"),
    [
        (100 * YUAN, 600, False, 6 * YUAN),
        (106 * YUAN, 600, True, 6 * YUAN),
        (100 * YUAN, 0, True, 0),
        (83_333, 600, False, 0),  # 0.0049999… yuan
        (83_334, 600, False, 10_000),  # half a cent goes up
        (-100 * YUAN, 600, False, -6 * YUAN),
        (-83_334, 600, False, -10_000),
        (10**15, 10_000, False, 10**15),
    ],
)
def test_the_tax_is_rounded_once_to_the_cent(amount: int, rate: int, inclusive: bool, tax: int) -> None:
    assert tax_on(amount, rate_basis_points=rate, inclusive=inclusive) == tax


@pytest.mark.parametrize(("due", "asked"), [(0, 0), (1, 10_000), (10_000, 10_000), (12_345_678, 12_350_000)])
def test_nobody_is_asked_for_less_than_a_cent(due: int, asked: int) -> None:
    assert payable(due) == asked


@given(
    total=st.integers(1, 10**12),
    rate=st.integers(0, 10_000),
    shares=st.lists(st.integers(1, 10**12), min_size=1, max_size=12),
)
def test_taxes_of_credit_notes_never_exceed_the_invoices_and_the_last_takes_the_rest(
    total: int, rate: int, shares: list[int]
) -> None:
    tax = tax_on(total, rate_basis_points=rate, inclusive=True)
    credited = taxes = 0
    for amount in [*shares, total]:
        amount = min(amount, total - credited)
        if amount == 0:
            break
        part = note_tax(total_micros=total, tax_micros=tax, credited_micros=credited, amount_micros=amount)
        assert part >= 0
        credited, taxes = credited + amount, taxes + part
        assert taxes <= tax
    assert (credited, taxes) == (total, tax)


def test_a_share_has_the_sign_of_the_amount() -> None:
    assert share_in_cents(-10 * YUAN, 1, 3) == -3_330_000
