"""Forms that bring money in. Each rendering carries an id of its own: the same form sent twice is one payment."""

from __future__ import annotations

import uuid
from typing import Any, Final

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from billing.amounts import amount_from_text, check_payable
from billing.models import AutomaticTopUp
from billing.payments.base import PaymentProvider
from portal.lib.display import money_text
from portal.lib.errors import DomainError
from portal.lib.money import MICROS_PER_UNIT
from portal.money.forms import AmountField, plain_amount

# In whole units; those that the operator's limits allow are offered.
AMOUNTS: Final = (50, 100, 200, 500, 1000)
OWN_AMOUNT: Final = "own"
VOUCHER_CHARACTERS: Final = 60


class TopUpForm(forms.Form):
    """How much, and by which way. `amount_micros` is the amount once the form is valid."""

    form_id = forms.UUIDField(widget=forms.HiddenInput)
    amount = forms.ChoiceField(label=_("Amount"), widget=forms.RadioSelect)
    own_amount = forms.CharField(
        label=_("Another amount"),
        required=False,
        max_length=20,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    provider = forms.ChoiceField(label=_("How you pay"), widget=forms.RadioSelect)
    saves_method = forms.BooleanField(label=_("Keep this way to pay for later"), required=False)

    def __init__(self, *args: Any, providers: list[PaymentProvider], currency: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.currency = currency
        least, most = settings.PAYMENTS["TOP_UP_MINIMUM"], settings.PAYMENTS["TOP_UP_MAXIMUM"]
        amounts = [
            (str(units), money_text(units * MICROS_PER_UNIT, currency))
            for units in AMOUNTS
            if least <= units <= most
        ]
        self.fields["amount"].choices = [*amounts, (OWN_AMOUNT, _("Another amount"))]  # type: ignore[attr-defined]
        self.fields["amount"].initial = amounts[1][0] if len(amounts) > 1 else OWN_AMOUNT
        self.fields["provider"].choices = [(one.name, one.title) for one in providers]  # type: ignore[attr-defined]
        self.fields["provider"].initial = providers[0].name if providers else ""
        self.fields["form_id"].initial = uuid.uuid4
        self.saves_methods = any(one.saves_methods for one in providers)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        chosen = cleaned.get("amount")
        if chosen is None:
            return cleaned
        is_own = chosen == OWN_AMOUNT
        text = cleaned.get("own_amount", "") if is_own else chosen
        try:
            cleaned["amount_micros"] = check_payable(amount_from_text(text, self.currency), self.currency)
        except DomainError as error:
            self.add_error("own_amount" if is_own else "amount", ValidationError(error.text()))
        return cleaned


class VoucherForm(forms.Form):
    code = forms.CharField(
        label=_("Code of the voucher"),
        max_length=VOUCHER_CHARACTERS,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "autocapitalize": "characters", "spellcheck": "false"}
        ),
    )


class AutomaticTopUpForm(forms.Form):
    """When the balance falls below a mark, so much is charged, and at most so much in a calendar month."""

    is_on = forms.BooleanField(label=_("Top up automatically"), required=False)
    below = AmountField(label=_("When less than this is available"))
    amount = AmountField(label=_("Charge this much"))
    monthly_cap = AmountField(label=_("At most in a calendar month"))


def automatic_initial(rule: AutomaticTopUp | None) -> dict[str, Any]:
    """The rule as its form shows it; amounts to begin with where there is none."""
    if rule is None:
        return {
            "below": plain_amount(10 * MICROS_PER_UNIT),
            "amount": plain_amount(100 * MICROS_PER_UNIT),
            "monthly_cap": plain_amount(500 * MICROS_PER_UNIT),
        }
    return {
        "is_on": rule.is_on,
        "below": rule.below_micros,
        "amount": rule.amount_micros,
        "monthly_cap": rule.monthly_cap_micros,
    }
