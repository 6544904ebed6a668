"""Whole cents, taxes, and the shares of credit notes. Pure.

Speech is charged in micros when it is spoken, and an invoice says what was charged: its usage is not rounded again. A
monthly fee and a tax are whole cents, each rounded once, half away from zero.
"""

from __future__ import annotations

from portal.lib.money import divide_half_up

CENT_MICROS = 10_000
# 100 %, in the hundredths of a percent that rates are given in.
BASIS_POINTS = 10_000


def share_in_cents(amount_micros: int, part: int, whole: int) -> int:
    """`amount_micros` x `part` / `whole` as micros of whole cents; the sign is the amount's.

    `part` and `whole` are not negative, and `whole` is not zero.
    """
    cents = divide_half_up(abs(amount_micros) * part, whole * CENT_MICROS) * CENT_MICROS
    return -cents if amount_micros < 0 else cents


def tax_on(amount_micros: int, *, rate_basis_points: int, inclusive: bool) -> int:
    """The tax on an invoice's amount after discounts: once, in whole cents.

    `inclusive`: the amount contains it already; else it comes on top.
    """
    whole = BASIS_POINTS + rate_basis_points if inclusive else BASIS_POINTS
    return share_in_cents(amount_micros, rate_basis_points, whole)


def payable(due_micros: int) -> int:
    """What is asked for an amount that is due: whole cents, rounded up, as nobody can pay less than a cent."""
    return -(-due_micros // CENT_MICROS) * CENT_MICROS


def note_tax(*, total_micros: int, tax_micros: int, credited_micros: int, amount_micros: int) -> int:
    """The tax in a credit note over `amount_micros` of an invoice of which `credited_micros` were credited before.

    Reckoned on what is credited in all, less what earlier notes had: so the notes' taxes never exceed the invoice's,
    and the note that credits the rest takes what is left of it.
    """
    after = share_in_cents(tax_micros, credited_micros + amount_micros, total_micros)
    return after - share_in_cents(tax_micros, credited_micros, total_micros)
