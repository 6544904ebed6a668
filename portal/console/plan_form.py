"""The form of a new version of a plan, and of a new plan."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from billing.models import Plan, PlanVersion
from portal.console.device_acts import reason_field
from portal.console.money_fields import MicrosField
from portal.console.plan_rows import LIMITS, TERMS
from portal.lib.clock import now
from portal.logs.filters import MomentField

# What a column of the database holds.
HIGHEST_INTEGER: Final = 2_147_483_647
HIGHEST_WEIGHT: Final = 1000
HIGHEST_BYTES: Final = 2**50


class PlanVersionForm(forms.Form):
    """A version's terms. `seen` names what the preview showed: what is saved is what was looked at."""

    monthly_fee_micros = MicrosField(label=_("Monthly fee"), may_be_zero=True)
    included_gpu_seconds = forms.IntegerField(
        label=_("Included GPU-seconds"), min_value=0, max_value=HIGHEST_INTEGER
    )
    fair_share_weight = forms.IntegerField(
        label=_("Weight in the queue"),
        min_value=1,
        max_value=HIGHEST_WEIGHT,
        help_text=_("Of weight 2 a customer gets twice the device time of one of weight 1 when both wait."),
    )
    effective_at = MomentField(
        label=_("In force from"), required=False, help_text=_("By the server’s clock. Empty: at once.")
    )
    move = forms.BooleanField(
        label=_("Move those who are on the plan to this version"),
        required=False,
        help_text=_("Else they keep the version that they have."),
    )
    reason = reason_field()
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        for name, label in LIMITS:
            most = HIGHEST_BYTES if name == "storage_bytes" else HIGHEST_INTEGER
            self.fields[name] = forms.IntegerField(
                label=_("Storage, bytes") if name == "storage_bytes" else str(label),
                min_value=0,
                max_value=most,
                required=False,
            )

    @property
    def terms(self) -> list[forms.BoundField]:
        return [self[name] for name, _label in TERMS if name not in dict(LIMITS)]

    @property
    def limits(self) -> list[forms.BoundField]:
        return [self[name] for name, _label in LIMITS]

    def clean_effective_at(self) -> datetime | None:
        moment: datetime | None = self.cleaned_data["effective_at"]
        if moment is not None and moment <= now():
            raise ValidationError(gettext("That has passed: a version holds from now on or later."))
        return moment

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        if values.get("move") and values.get("effective_at"):
            raise ValidationError(
                gettext("Nobody can be moved to a version that is not in force. Move them when it is.")
            )
        return values


class NewPlanForm(PlanVersionForm):
    name = forms.CharField(label=_("Name"), max_length=60)
    code = forms.SlugField(
        label=_("Code"), max_length=40, help_text=_("Small letters, digits and dashes; it never changes.")
    )
    is_offered = forms.BooleanField(label=_("Customers may choose it by themselves"), required=False)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        del self.fields["move"]

    def clean_code(self) -> str:
        code = str(self.cleaned_data["code"]).lower()
        # "new" is the address of this form.
        if code == "new" or Plan.objects.filter(code=code).exists():
            raise ValidationError(gettext("There is a plan of this code already."))
        return code


class MoveForm(forms.Form):
    reason = reason_field()


def first_values(version: PlanVersion | None) -> dict[str, Any]:
    """What stands in the form to begin with."""
    if version is None:
        return {"monthly_fee_micros": 0, "included_gpu_seconds": 0, "fair_share_weight": 1}
    return {name: getattr(version, name) for name, _label in TERMS}


def version_of(form: PlanVersionForm, plan: Plan, currency: str) -> PlanVersion:
    """The version that the filled form asks for, not stored. `effective_at` is None for at once."""
    terms = {name: form.cleaned_data[name] for name, _label in TERMS}
    return PlanVersion(plan=plan, currency=currency, effective_at=form.cleaned_data["effective_at"], **terms)


def digest(form: PlanVersionForm, before: PlanVersion | None) -> str:
    """Names what a preview shows: the new terms, and those that they were compared with."""
    contents = {
        name: str(value) for name, value in form.cleaned_data.items() if name not in ("seen", "reason")
    }
    contents["before"] = str(before.pk) if before is not None else ""
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
