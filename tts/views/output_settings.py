"""The workspace's page of how its audio is delivered. For owners and administrators."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.models.workspace import ExplicitLabel, LabelPosition
from accounts.tenancy import require_admin_role
from portal.lib.errors import DomainError
from tts.audio import explicit
from tts.audio.formats import MAX_LOUDNESS_LUFS, MIN_LOUDNESS_LUFS
from tts.services.labels import rule_of
from tts.services.output_settings import label_may_be_left_out, set_output


class OutputForm(forms.Form):
    """What a label may be is judged by the service."""

    explicit_label = forms.ChoiceField(
        label=_("What is heard of it"),
        required=False,
        help_text=_(
            "In files that leave by the API or as a download. Words are spoken once; until then a tone stands for them."
        ),
    )
    label_position = forms.ChoiceField(label=_("Where"), choices=LabelPosition.choices)
    loudness_lufs = forms.FloatField(
        label=_("Loudness target in LUFS"),
        required=False,
        min_value=MIN_LOUDNESS_LUFS,
        max_value=MAX_LOUDNESS_LUFS,
        widget=forms.NumberInput(attrs={"step": "0.5"}),
        help_text=_(
            "Of new jobs that ask for none, −31 to −12; podcasts have about −16. Empty: as the voice speaks, about −20."
        ),
    )

    def __init__(self, *args: Any, stored_label: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["explicit_label"])
        field.choices = [
            choice
            for choice in ExplicitLabel.choices
            if choice[0] != explicit.NONE or label_may_be_left_out() or stored_label == explicit.NONE
        ]


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def output_settings(request: HttpRequest) -> HttpResponse:
    workspace = require_admin_role(request)
    stored = {
        "explicit_label": workspace.explicit_label,
        "label_position": workspace.label_position,
        "loudness_lufs": workspace.loudness_lufs,
    }
    form = OutputForm(
        request.POST if request.method == "POST" else None,
        initial=stored,
        stored_label=workspace.explicit_label,
    )
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                set_output(workspace=workspace, user=cast(User, request.user), **form.cleaned_data)
            except DomainError as error:
                form.add_error(error.field if error.field in form.fields else None, error.text())
            else:
                messages.success(request, gettext("Saved."))
                return redirect("output_settings")
    context = {
        "form": form,
        "workspace": workspace,
        "rule": ExplicitLabel(rule_of(workspace).kind).label,
        "may_be_left_out": label_may_be_left_out(),
    }
    return render(request, "tts/output_settings.html", context, status=status)
