"""Money is whole micros of a currency: 1 yuan = 1,000,000. Rounded once, here, half up."""

from __future__ import annotations

from decimal import Decimal

MICROS_PER_UNIT = 1_000_000


def divide_half_up(numerator: int, denominator: int) -> int:
    """`numerator / denominator` rounded to a whole number, halves up. Both must not be negative."""
    if numerator < 0 or denominator <= 0:
        raise ValueError("money is divided only as a non-negative amount by a positive one")
    return (2 * numerator + denominator) // (2 * denominator)


def micros_as_decimal(amount_micros: int) -> Decimal:
    """The amount in whole units of the currency, exact."""
    return Decimal(amount_micros) / MICROS_PER_UNIT
