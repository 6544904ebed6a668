"""What the audit log may be asked for."""

from __future__ import annotations

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.models import AuditEntry
from accounts.selectors.audit import audit_entries
from portal.console.audit_words import ACT_LABELS
from portal.console.search_bar import SearchBar, words_field
from portal.console.search_words import cannot_be_stored

ACTS = [
    ("device", _("Everything done to devices")),
    *ACT_LABELS.items(),
]


class AuditForm(SearchBar):
    q = words_field(_("Person, object or reason"))
    act = forms.ChoiceField(label=_("Act"), choices=[("", _("All acts")), *ACTS], required=False)
    before = forms.CharField(required=False, max_length=100)

    @property
    def choice_names(self) -> tuple[str, ...]:
        return ("act",)


def find_acts(form: AuditForm) -> QuerySet[AuditEntry]:
    """The acts that the form asks for, in no order yet."""
    if cannot_be_stored(form.query):
        return AuditEntry.objects.none()
    return audit_entries(query=form.query, act=form.known("act") or "")
