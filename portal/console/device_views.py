"""The pages of devices, and what operators ask of them."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from portal.console.access import operators_only
from portal.console.device_acts import ACTS, DeviceActForm
from portal.console.device_cards import DEVICES_PER_PAGE, device_cards, device_count
from portal.console.device_page import device_of, device_row_of, read_device
from portal.console.pages import chart_file, live
from portal.console.selectors import device_rows, live_attempts
from portal.lib.clock import database_now
from tts.models import DeviceCommandKind
from tts.services.commands import request_command


def _page_number(request: HttpRequest, pages: int) -> int:
    wanted = request.GET.get("page", "1")
    return min(max(1, int(wanted)), pages) if wanted.isdecimal() and len(wanted) < 7 else 1


@never_cache
@require_safe
@operators_only
def devices(request: HttpRequest) -> HttpResponseBase:
    """A card per device."""
    now = database_now()
    pages = max(1, -(-device_count() // DEVICES_PER_PAGE))
    page = _page_number(request, pages)
    cards = device_cards(now=now, page=page)
    parts = [f"device-card-{card.row.id}" for card in cards]
    context = live(now=now, every_s=3, parts=parts, charts=[card.chart for card in cards])
    return render(
        request, "console/devices.html", {"cards": cards, "page_number": page, "pages": pages, **context}
    )


@never_cache
@require_safe
@operators_only
def device(request: HttpRequest, device_id: int) -> HttpResponseBase:
    """Why did it stop, and what has it done?"""
    now = database_now()
    shown = read_device(device_id, now=now)
    charts = [shown.card.chart, *shown.charts]
    if wanted := request.GET.get("csv"):
        return chart_file(charts, wanted)
    parts = (f"device-card-{device_id}", "event-rows", "line-rows", "command-rows", "time-account")
    context = live(now=now, every_s=3, parts=parts, charts=charts)
    return render(request, "console/device.html", {"device": shown, "charts": charts, **context})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def device_act(request: HttpRequest, device_id: int, act: str) -> HttpResponseBase:
    """Asks for the reason, says what will happen, and hands the wish to the device's agent."""
    if act not in DeviceCommandKind.values:
        raise Http404
    kind = DeviceCommandKind(act)
    row = device_row_of(device_id, now=database_now())
    offered = kind in [one.kind for one in row.acts]
    seen_epoch = request.GET.get("epoch", "")
    epoch = int(seen_epoch) if seen_epoch.isdecimal() and len(seen_epoch) < 10 else row.row.epoch
    form = DeviceActForm(request.POST or None, row=row.row, kind=kind, initial={"epoch": epoch})
    if request.method == "POST" and offered and form.is_valid():
        request_command(
            device=device_of(device_id),
            kind=kind,
            requested_by=cast(User, request.user),
            reason=form.cleaned_data["reason"],
            expected_epoch=form.cleaned_data["epoch"],
            engine=form.cleaned_data.get("engine", ""),
        )
        text = _("“%(act)s” was asked of %(device)s. What comes of it shows below.")
        messages.success(request, text % {"act": kind.label, "device": row.row.name})
        return redirect("console_device", device_id)
    context = {"card": row, "act": ACTS[kind], "offered": offered, "form": form}
    template = "console/_act_form.html" if request.headers.get("HX-Request") else "console/act.html"
    return render(request, template, context, status=200 if offered or request.method != "POST" else 409)


@never_cache
@require_safe
@operators_only
def devices_json(request: HttpRequest) -> JsonResponse:
    """Every device's state and memory, for programs of operators."""
    rows = device_rows(attempts=live_attempts(), now=database_now())
    found = [
        {
            "id": row.id,
            "name": row.name,
            "node": row.node_name,
            "state": row.state,
            "takes_work": row.takes_work,
            "engine": row.engine,
            "epoch": row.epoch,
            "heartbeat_age_ms": row.heartbeat_age_ms,
            "memory_used_bytes": row.memory_used_bytes,
            "memory_total_bytes": row.memory_total_bytes,
            "utilisation_percent": row.utilisation_percent,
            "temperature_c": row.temperature_c,
            "power_mw": row.power_mw,
        }
        for row in rows
    ]
    return JsonResponse({"devices": found})
