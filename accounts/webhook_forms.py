"""The form of a webhook endpoint. What an address may be is judged by the service."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.services.webhook_endpoints import MAX_DESCRIPTION_LENGTH
from accounts.webhooks.catalogue import EVENT_TYPES
from portal.lib.outgoing.addresses import MAX_URL_LENGTH


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=_("Address"),
        max_length=MAX_URL_LENGTH,
        help_text=_("Of your own server: https://, and a certificate that is valid for the host."),
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://example.com/voicepool"}),
    )
    description = forms.CharField(
        label=_("What it is for"),
        max_length=MAX_DESCRIPTION_LENGTH,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    event_types = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(one.name, one.label) for one in EVENT_TYPES],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one event.")},
    )
