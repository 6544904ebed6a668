"""Prices: the versions that were and are in force, and a new one with its effect shown before it is saved."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from accounts.services.audit import record_act
from billing.errors import NoPrice, PriceInvalid
from billing.models import PriceVersion
from billing.selectors.prices import current_price
from billing.services.prices import add_price_version
from portal.console.access import operators_only
from portal.console.price_form import DeviceRates, PriceForm, digest, first_values, version_of
from portal.console.price_preview import all_versions, preview, rate_changes
from portal.lib.clock import database_now

CURRENCY = "CNY"


def _in_force() -> PriceVersion | None:
    try:
        return current_price()
    except NoPrice:
        return None


@never_cache
@require_safe
@operators_only
def prices(request: HttpRequest) -> HttpResponseBase:
    """What does a GPU-second cost, and what did it cost?"""
    now = database_now()
    in_force = _in_force()
    versions = all_versions()
    context = {
        "versions": versions,
        "in_force": in_force,
        "now": now,
        "rates": rate_changes(in_force, None) if in_force is not None else [],
    }
    return render(request, "console/prices.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def price_new(request: HttpRequest) -> HttpResponseBase:
    """Shows what the new price changes and for whom; then, and only then, it can be saved."""
    before = _in_force()
    values, rows = first_values(before)
    form = PriceForm(request.POST or None, initial=values)
    rates = DeviceRates(request.POST or None, initial=rows, prefix="rates")
    context: dict[str, Any] = {"form": form, "rates": rates, "before": before, "currency": CURRENCY}
    # Both are looked at, so that all that is wrong is said at once.
    if request.method == "POST" and all([form.is_valid(), rates.is_valid()]):
        version = version_of(form, rates, before.currency if before is not None else CURRENCY)
        shown = digest(version, before)
        if form.cleaned_data["seen"] == shown and "save" in request.POST:
            try:
                stored = _save(version, before, cast(User, request.user), form.cleaned_data["reason"])
            except PriceInvalid as error:
                form.add_error(None, error.text())
            else:
                messages.success(request, _("Price %(number)d is stored.") % {"number": stored.number})
                return redirect("console_prices")
        else:
            context["preview"] = preview(version=version, before=before, now=database_now())
            context["seen"] = shown
    return render(request, "console/price_new.html", context)


@transaction.atomic
def _save(version: PriceVersion, before: PriceVersion | None, actor: User, reason: str) -> PriceVersion:
    stored = add_price_version(version=version)
    record_act(
        actor=actor,
        act="price.add",
        object_kind="price",
        object_id=stored.pk,
        object_name=str(stored),
        reason=reason,
        before=_words(before) if before is not None else {},
        after=_words(stored),
    )
    return stored


def _words(price: PriceVersion) -> dict[str, Any]:
    return {
        "number": price.number,
        "interactive_gpu_second_micros": price.interactive_gpu_second_micros,
        "standard_gpu_second_micros": price.standard_gpu_second_micros,
        "batch_gpu_second_micros": price.batch_gpu_second_micros,
        "minimum_charge_micros": price.minimum_charge_micros,
        "device_class_rates": price.device_class_rates,
        "effective_at": price.effective_at.isoformat(timespec="seconds"),
    }
