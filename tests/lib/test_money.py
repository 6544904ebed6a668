"""Money is divided exactly once, half up, and shown exactly."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.pricing import Rate, affordable_gpu_ms, price_gpu_ms
from portal.lib.money import divide_half_up, micros_as_decimal

AMOUNTS = st.integers(min_value=0, max_value=10**15)
PRICES = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    ("numerator", "denominator", "quotient"),
    [(0, 7, 0), (1, 2, 1), (1, 3, 0), (2, 3, 1), (5, 2, 3), (7, 2, 4), (1499, 1000, 1), (1500, 1000, 2)],
)
def test_halves_are_rounded_up(numerator: int, denominator: int, quotient: int) -> None:
    assert divide_half_up(numerator, denominator) == quotient


@given(numerator=AMOUNTS, denominator=st.integers(min_value=1, max_value=10**9))
def test_division_agrees_with_exact_fractions(numerator: int, denominator: int) -> None:
    assert divide_half_up(numerator, denominator) == floor(Fraction(numerator, denominator) + Fraction(1, 2))


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 2), (1, 0), (1, -2)])
def test_what_is_no_amount_is_refused(numerator: int, denominator: int) -> None:
    with pytest.raises(ValueError, match="non-negative amount by a positive one"):
        divide_half_up(numerator, denominator)


@given(amount=st.integers(min_value=-(10**18), max_value=10**18))
def test_an_amount_survives_being_shown(amount: int) -> None:
    shown = micros_as_decimal(amount)
    assert shown * 1_000_000 == amount
    assert Fraction(shown) == Fraction(amount, 1_000_000)


def test_amounts_are_shown_in_whole_units() -> None:
    assert micros_as_decimal(1_234_567) == Decimal("1.234567")


@given(gpu_ms=st.integers(min_value=0, max_value=10**9), micros=PRICES)
def test_a_price_is_within_half_a_micro_of_the_exact_one(gpu_ms: int, micros: int) -> None:
    price = price_gpu_ms(gpu_ms=gpu_ms, rate=Rate(gpu_second_micros=micros, currency="CNY"))
    assert abs(Fraction(price) - Fraction(gpu_ms * micros, 1000)) <= Fraction(1, 2)


@given(first=st.integers(0, 10**8), more=st.integers(0, 10**8), micros=PRICES)
def test_more_use_never_costs_less(first: int, more: int, micros: int) -> None:
    rate = Rate(gpu_second_micros=micros, currency="CNY")
    assert price_gpu_ms(gpu_ms=first + more, rate=rate) >= price_gpu_ms(gpu_ms=first, rate=rate)


@given(amount=AMOUNTS, micros=st.integers(min_value=1, max_value=10**9))
def test_what_is_said_to_be_affordable_can_be_paid(amount: int, micros: int) -> None:
    rate = Rate(gpu_second_micros=micros, currency="CNY")
    affordable = affordable_gpu_ms(amount_micros=amount, rate=rate)
    assert price_gpu_ms(gpu_ms=affordable, rate=rate) <= amount
    # One millisecond more costs more than there is, by the exact price.
    assert (affordable + 1) * micros > amount * 1000


@given(debt=st.integers(-(10**15), 0), micros=st.integers(0, 10**9))
def test_a_debt_buys_nothing(debt: int, micros: int) -> None:
    assert affordable_gpu_ms(amount_micros=debt, rate=Rate(gpu_second_micros=micros, currency="CNY")) == 0


def test_nothing_is_affordable_where_nothing_has_a_price() -> None:
    assert affordable_gpu_ms(amount_micros=5, rate=Rate(gpu_second_micros=0, currency="CNY")) == 0
