"""What the audit log may be asked for."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from tts.models import DeviceCommandKind

ACTS = [
    ("device", _("Everything done to devices")),
    *((f"device.{kind.value}", kind.label) for kind in DeviceCommandKind),
    ("job.cancel", _("Job canceled")),
    ("job.refund", _("Job refunded")),
]


class AuditForm(forms.Form):
    """A value that is not known filters nothing."""

    q = forms.CharField(label=_("Person, object or reason"), max_length=200, required=False)
    act = forms.ChoiceField(label=_("Act"), choices=[("", _("All acts")), *ACTS], required=False)
    before = forms.CharField(required=False, max_length=100)

    def known(self, name: str) -> str:
        self.is_valid()
        value: str = self.cleaned_data.get(name) or ""
        return value.replace("\x00", "")
