"""Amounts as operators type them, in whole units of the currency, and what every form of an act on money has."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from portal.console.device_acts import reason_field
from portal.lib.money import MICROS_PER_UNIT, micros_as_decimal

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise  # the stubs' name of what gettext_lazy gives

# A slip of the finger, not an amount: a hundred million of the currency.
HIGHEST_UNITS: Final = 100_000_000
MICRO_PLACES: Final = 6


class MicrosField(forms.DecimalField):
    """An amount with at most six decimals; its value is whole micros, exact."""

    def __init__(self, *, label: _StrPromise, may_be_zero: bool = False, **options: Any) -> None:
        super().__init__(
            label=label,
            min_value=Decimal(0) if may_be_zero else Decimal(1).scaleb(-MICRO_PLACES),
            max_value=HIGHEST_UNITS,
            decimal_places=MICRO_PLACES,
            widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
            **options,
        )

    def clean(self, value: Any) -> Any:
        """Whole micros; None for nothing where it is not required."""
        amount = super().clean(value)
        return None if amount is None else int(amount * MICROS_PER_UNIT)

    def prepare_value(self, value: Any) -> Any:
        """Micros as they are typed, without needless zeros."""
        return units_text(value) if isinstance(value, int) else value


def units_text(amount_micros: int) -> str:
    """`0.09`: whole units without a currency."""
    return f"{micros_as_decimal(amount_micros).normalize():f}"


class MoneyActForm(forms.Form):
    """Why, and the form's own name: sent twice, it acts once. `more`: fields that the act needs beside the amount."""

    more: ClassVar[tuple[str, ...]] = ()
    reason = reason_field()
    key = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)


class AmountForm(MoneyActForm):
    amount = MicrosField(label=_("Amount"))


class CreditLimitForm(MoneyActForm):
    amount = MicrosField(
        label=_("Credit limit"),
        may_be_zero=True,
        help_text=_("How far below zero the balance may go. Zero: it has to be paid in advance."),
    )
