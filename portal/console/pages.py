"""What every page of the console has in common: its places, and the parts that are refreshed in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.charts import Chart
from portal.lib.csv_export import csv_response

# URL name, label, icon, whether a phone's bottom bar shows it.
PLACES: tuple[tuple[str, str | Promise, str, bool], ...] = (
    ("console", _("Overview"), "usage", True),
    ("console_devices", _("Devices"), "device", True),
    ("console_queue", _("Queue"), "queue", True),
    ("console_jobs", _("Jobs"), "history", True),
    ("console_log", _("Log"), "document", False),
    ("console_customers", _("Customers"), "account", False),
    ("console_money", _("Money"), "billing", True),
    ("console_models", _("Models"), "voices", False),
    ("console_prices", _("Settings"), "settings", False),
    ("console_audit", _("Audit"), "shield", False),
)
# Pages that belong to a place without having its address.
_BELONGS_TO = {
    "console_device": "console_devices",
    "console_device_act": "console_devices",
    "console_model_share": "console_models",
    "console_job": "console_jobs",
    "console_job_act": "console_jobs",
    "console_customer": "console_customers",
    "console_customer_act": "console_customers",
    "console_reconcile": "console_money",
    "console_difference": "console_money",
    "console_pending": "console_money",
    "console_pending_act": "console_money",
    "console_vouchers": "console_money",
    "console_voucher_new": "console_money",
    "console_voucher_void": "console_money",
    "console_payment_refund": "console_customers",
    "console_price_new": "console_prices",
    "console_plans": "console_prices",
    "console_plan_new": "console_prices",
    "console_plan": "console_prices",
    "console_plan_move": "console_prices",
}


@dataclass(frozen=True)
class Place:
    label: str | Promise
    icon: str
    address: str
    current: bool
    on_phone: bool


def places(request: HttpRequest) -> list[Place]:
    """The console's navigation as it stands on this page."""
    here = request.resolver_match.url_name if request.resolver_match is not None else None
    here = _BELONGS_TO.get(here, here) if here else None
    return [
        Place(label, icon, reverse(name), name == here, on_phone) for name, label, icon, on_phone in PLACES
    ]


def live(
    *, now: datetime, every_s: int, parts: Iterable[str], charts: Iterable[Chart] = ()
) -> dict[str, Any]:
    """The context of a page that asks for itself every few seconds and takes over the named parts.

    `every_s` of 0: a page that stands still, such as the second page of a list.
    """
    named = ["console-fresh", *parts, *(part for chart in charts for part in chart.parts)]
    return {
        "fresh_at": now,
        "refresh_s": every_s,
        "live_parts": ",".join(f"#{part}" for part in named),
    }


def chart_file(charts: Iterable[Chart], wanted: str) -> HttpResponseBase:
    """The numbers of one chart as a file. Raises Http404."""
    for chart in charts:
        if chart.id == wanted:
            header = ["day" if chart.by_date else "time", *(str(name) for name in chart.names)]
            rows = ([moment, *cells] for moment, cells in chart.numbers())
            return csv_response(chart.id, header=header, rows=rows)
    raise Http404
