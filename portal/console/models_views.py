"""The page of models, and putting one on trial."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from portal.console.access import operators_only
from portal.console.device_acts import reason_field
from portal.console.models_page import model_rows
from portal.console.pages import live
from portal.lib.clock import database_now
from portal.lib.errors import InvalidInput
from tts.models.model_share import WHOLE
from tts.services.model_shares import set_share


class ShareForm(forms.Form):
    """The share in percent; "end" in the request ends the trial whatever it says."""

    percent = forms.DecimalField(
        label=gettext_lazy("Share of the jobs, in percent"),
        min_value=Decimal(0),
        max_value=Decimal(100),
        decimal_places=2,
        required=False,
    )
    reason = reason_field()

    def share(self) -> int:
        """In parts of 10,000."""
        return int((self.cleaned_data["percent"] or Decimal(0)) * WHOLE / 100)


@never_cache
@require_safe
@operators_only
def models(request: HttpRequest) -> HttpResponseBase:
    """What runs where?"""
    now = database_now()
    rows = model_rows(now=now)
    context = live(now=now, every_s=5, parts=["model-rows"])
    return render(request, "console/models.html", {"models": rows, **context})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def model_share(request: HttpRequest, engine: str) -> HttpResponseBase:
    """Asks for the share and the reason, and says what the jobs will do."""
    row = next((one for one in model_rows(now=database_now()) if one.engine == engine), None)
    if row is None:
        raise Http404
    form = ShareForm(request.POST or None, initial={"percent": row.share_percent or 5})
    if request.method == "POST" and form.is_valid():
        share = None if "end" in request.POST else form.share()
        try:
            set_share(
                engine=engine,
                share=share,
                changed_by=cast(User, request.user),
                reason=form.cleaned_data["reason"],
            )
        except InvalidInput as error:
            form.add_error("percent" if error.field == "share" else None, error.text())
        else:
            _tell(request, row.name, share)
            return redirect("console_models")
    template = (
        "console/_model_share_form.html" if request.headers.get("HX-Request") else "console/form_page.html"
    )
    context = {"form_template": "console/_model_share_form.html", "form": form, "model": row}
    return render(request, template, context)


def _tell(request: HttpRequest, name: str, share: int | None) -> None:
    if share is None:
        messages.success(request, _("%(model)s is one of the pool’s own models now.") % {"model": name})
    else:
        text = _("%(model)s is on trial with %(share)s %% of the jobs.")
        messages.success(request, text % {"model": name, "share": f"{share / 100:g}"})
