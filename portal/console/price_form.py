"""The form of a new price: general rates by class of job, and rates of single classes of device."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from billing.models import PriceVersion
from billing.pricing import JOB_CLASSES
from portal.console.device_acts import reason_field
from portal.console.money_fields import MicrosField
from portal.lib.clock import now
from portal.logs.filters import MomentField
from tts.models import Device

if TYPE_CHECKING:
    BaseDeviceRates = forms.BaseFormSet["DeviceRateForm"]
else:  # Django's class takes no type parameter while it runs
    BaseDeviceRates = forms.BaseFormSet

# Rows for classes of device that have no rate yet.
EMPTY_ROWS: Final = 2
_DEVICE_CLASS: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
RATE_LABELS: Final = (
    ("interactive", _("Interactive")),
    ("standard", _("Standard")),
    ("batch", _("Batch")),
)


class PriceForm(forms.Form):
    """`seen` names what the preview showed: what is saved is what was looked at."""

    interactive = MicrosField(label=_("Interactive"), may_be_zero=True)
    standard = MicrosField(label=_("Standard"), may_be_zero=True)
    batch = MicrosField(label=_("Batch"), may_be_zero=True)
    minimum = MicrosField(
        label=_("Minimum charge"),
        may_be_zero=True,
        help_text=_("What a job costs at least, once anything of it was spoken."),
    )
    effective_at = MomentField(
        label=_("In force from"), required=False, help_text=_("By the server’s clock. Empty: at once.")
    )
    reason = reason_field()
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)

    def clean_effective_at(self) -> datetime | None:
        moment: datetime | None = self.cleaned_data["effective_at"]
        if moment is not None and moment <= now():
            raise ValidationError(gettext("That has passed: a price holds from now on or later."))
        return moment


class DeviceRateForm(forms.Form):
    """One class of device. All empty: no row."""

    device_class = forms.CharField(
        label=_("Class of device"),
        max_length=30,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    interactive = MicrosField(label=_("Interactive"), may_be_zero=True, required=False)
    standard = MicrosField(label=_("Standard"), may_be_zero=True, required=False)
    batch = MicrosField(label=_("Batch"), may_be_zero=True, required=False)

    def clean_device_class(self) -> str:
        name = str(self.cleaned_data["device_class"]).strip().lower()
        if name and not _DEVICE_CLASS.fullmatch(name):
            raise ValidationError(gettext("Small letters, digits and dashes, such as h200."))
        return name

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        amounts = [values.get(name) for name in JOB_CLASSES]
        # A known class whose rates were emptied has no rate of its own any more.
        if any(amount is not None for amount in amounts):
            if not values.get("device_class"):
                raise ValidationError(gettext("Which class of device is it?"))
            if any(amount is None for amount in amounts) and not self.errors:
                raise ValidationError(gettext("A class of device needs a rate for each class of job."))
        return values


class _DeviceRates(BaseDeviceRates):
    def clean(self) -> None:
        names = [form.cleaned_data.get("device_class") for form in self.forms if not form.errors]
        named = [name for name in names if name]
        if len(named) != len(set(named)):
            raise ValidationError(gettext("A class of device stands here twice."))


DeviceRates = forms.formset_factory(
    DeviceRateForm, formset=_DeviceRates, extra=0, max_num=50, absolute_max=60
)


def known_device_classes() -> list[str]:
    """The classes of the devices that are there."""
    return sorted({device.device_class for device in Device.objects.only("kind", "model_name")})


def first_values(price: PriceVersion | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What stands in the form to begin with: the price in force, and a row for each class of device."""
    own = price.device_class_rates if price is not None else {}
    rows: list[dict[str, Any]] = [
        {"device_class": name, **own.get(name, {})} for name in sorted({*own, *known_device_classes()})
    ]
    rows += [{} for _ in range(EMPTY_ROWS)]
    if price is None:
        return {}, rows
    general = {name: getattr(price, f"{name}_gpu_second_micros") for name in JOB_CLASSES}
    return {**general, "minimum": price.minimum_charge_micros}, rows


def version_of(form: PriceForm, rates: BaseDeviceRates, currency: str) -> PriceVersion:
    """The version that the filled forms ask for, not stored. `effective_at` is None for at once."""
    return PriceVersion(
        currency=currency,
        interactive_gpu_second_micros=form.cleaned_data["interactive"],
        standard_gpu_second_micros=form.cleaned_data["standard"],
        batch_gpu_second_micros=form.cleaned_data["batch"],
        minimum_charge_micros=form.cleaned_data["minimum"],
        device_class_rates=dict(_rates(rates)),
        effective_at=form.cleaned_data["effective_at"],
    )


def _rates(rates: BaseDeviceRates) -> Iterator[tuple[str, dict[str, int]]]:
    for form in rates.forms:
        values = form.cleaned_data
        if values.get("device_class") and values.get("interactive") is not None:
            yield values["device_class"], {name: values[name] for name in JOB_CLASSES}


def digest(version: PriceVersion, before: PriceVersion | None) -> str:
    """Names what a preview shows: the new price, and the one that it was compared with."""
    contents = [
        version.interactive_gpu_second_micros,
        version.standard_gpu_second_micros,
        version.batch_gpu_second_micros,
        version.minimum_charge_micros,
        version.device_class_rates,
        version.effective_at.isoformat() if version.effective_at is not None else "",
        before.pk if before is not None else 0,
    ]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()
