"""What a log's page may be asked for. A value that is not known filters nothing: an old link still opens the page."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

REQUESTS: Final = "requests"
ATTEMPTS: Final = "attempts"


class MomentField(forms.DateTimeField):
    """A moment as a browser's field sends it: in the server's zone, to the minute."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    input_formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]


class LogForm(forms.Form):
    """Which lines; `before` is the place of the last line of the page before."""

    kind = forms.ChoiceField(
        choices=[(ATTEMPTS, _("Attempts")), (REQUESTS, _("Requests"))], required=False, label=_("Lines")
    )
    since = MomentField(label=_("From"), required=False)
    until = MomentField(label=_("Until"), required=False)
    before = forms.CharField(required=False, max_length=100)

    def known(self, name: str) -> Any:
        """The value of a field where it is valid, else None or an empty text."""
        self.is_valid()
        return self.cleaned_data.get(name)

    @property
    def chosen_kind(self) -> str:
        return self.known("kind") or ATTEMPTS

    @property
    def span(self) -> dict[str, datetime | None]:
        return {"since": self.known("since"), "until": self.known("until")}
