"""What people fill in on Usage and Billing. Amounts are written in units and kept in micros."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import Workspace
from accounts.selectors.api_keys import api_keys_of
from accounts.selectors.people import members_of
from billing.models import BillingProfile, Budget, BudgetScope, TransactionKind
from billing.services.budgets import MOST_MICROS
from billing.services.profiles import time_zones
from portal.lib.money import MICROS_PER_UNIT, micros_as_decimal
from portal.money.measures import Measure

THIS_MONTH: Final = "this_month"
LAST_MONTH: Final = "last_month"
CHOSEN_DAYS: Final = "days"
REFUSE: Final = "refuse"


class AmountField(forms.DecimalField):
    """An amount in units with up to two decimals; its value is in micros."""

    def __init__(self, **options: Any) -> None:
        options = {"min_value": 0, "max_value": MOST_MICROS // MICROS_PER_UNIT, **options}
        super().__init__(decimal_places=2, max_digits=15, **options)

    def clean(self, value: Any) -> Any:
        amount = super().clean(value)
        return None if amount is None else int(amount * MICROS_PER_UNIT)

    def prepare_value(self, value: Any) -> Any:
        """Micros of the database as people write them; what was typed stays as it is."""
        return plain_amount(value) if isinstance(value, int) else value


def plain_amount(amount_micros: int) -> str:
    """`12.50`, as it is typed."""
    return str(micros_as_decimal(amount_micros).quantize(Decimal("0.01")))


class PeriodForm(forms.Form):
    """Which days, and what the chart counts. What is not known is left at its beginning: an old link still opens."""

    period = forms.ChoiceField(
        label=_("Time"),
        choices=[(THIS_MONTH, _("This month")), (LAST_MONTH, _("Last month")), (CHOSEN_DAYS, _("Days"))],
        required=False,
    )
    first = forms.DateField(
        label=_("First day"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    last = forms.DateField(
        label=_("Last day"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    measure = forms.ChoiceField(label=_("Chart"), choices=Measure.choices, required=False)

    def known(self, name: str) -> Any:
        """The value of a field where it is valid, else None or an empty text."""
        self.is_valid()
        return self.cleaned_data.get(name)


class BudgetForm(forms.Form):
    """A monthly budget: whose, how much, and what happens at its end."""

    whose = forms.ChoiceField(label=_("For"))
    monthly = AmountField(label=_("At most in a calendar month"))
    at_the_end = forms.ChoiceField(
        label=_("When it is used up"),
        choices=[(REFUSE, _("Refuse new jobs")), ("tell", _("Only tell us"))],
        initial=REFUSE,
    )
    warn_percent = forms.IntegerField(label=_("Warn at (percent)"), min_value=1, max_value=100, initial=80)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        members = [(f"member:{user.pk}", user.email) for user in members_of(workspace.pk)]
        keys = [(f"api_key:{key.pk}", f"{key.name} ({key.prefix}…)") for key in api_keys_of(workspace)]
        choices: list[Any] = [("workspace:", _("The whole workspace"))]
        if members:
            choices.append((_("Members"), members))
        if keys:
            choices.append((_("API keys"), keys))
        self.fields["whose"].choices = choices  # type: ignore[attr-defined]

    @property
    def is_hard(self) -> bool:
        return bool(self.cleaned_data["at_the_end"] == REFUSE)

    @property
    def scope(self) -> BudgetScope:
        return BudgetScope(self.cleaned_data["whose"].partition(":")[0])

    @property
    def subject_id(self) -> uuid.UUID | None:
        subject = self.cleaned_data["whose"].partition(":")[2]
        return uuid.UUID(subject) if subject else None


def budget_initial(budget: Budget) -> dict[str, Any]:
    """A budget as its form shows it."""
    return {
        "whose": f"{budget.scope}:{budget.subject_id or ''}",
        "monthly": budget.monthly_micros,
        "at_the_end": REFUSE if budget.is_hard else "tell",
        "warn_percent": budget.warn_percent,
    }


class BilledPartyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Who is billed."""

    class Meta:
        model = BillingProfile
        fields = ["name", "address", "tax_number", "email"]
        labels = {
            "name": _("Name or company"),
            "address": _("Address"),
            "tax_number": _("Tax number"),
            "email": _("E-mail address for invoices"),
        }
        widgets = {"address": forms.Textarea(attrs={"rows": 4})}


class NoticeForm(forms.Form):
    below = AmountField(
        label=_("Tell us when less than this is left"),
        required=False,
        help_text=_("By e-mail to the owners and to those who look after the bills. Empty: never."),
    )


class ZoneForm(forms.Form):
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        help_text=_("Days, months and invoices begin by it. What was used before keeps the day that it has."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].choices = [(zone, zone) for zone in time_zones()]  # type: ignore[attr-defined]


class LedgerForm(forms.Form):
    """Which movements; `before` is the place of the last line of the page before."""

    show = forms.ChoiceField(
        label=_("Movements"),
        choices=[("", _("All movements")), *TransactionKind.choices],
        required=False,
    )
    before = forms.CharField(required=False, max_length=100)

    def known(self, name: str) -> Any:
        self.is_valid()
        return self.cleaned_data.get(name)
