"""Settings, prices and documents that cannot be: a stable code, and nothing was changed."""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import cffi
import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Workspace
from billing.errors import InvoicePdfUnavailable, LowBalanceInvalid, PriceInvalid, TimeZoneUnknown
from billing.models import BillingProfile, CreditAccount, Invoice, InvoiceLine, PriceVersion
from billing.services.budgets import MOST_MICROS
from billing.services.invoices import close_month
from billing.services.prices import add_price_version
from billing.services.profiles import set_low_balance_notice, set_time_zone
from portal.lib.clock import now
from tests.billing.books import all_books
from tests.billing.speech import speak
from tests.pages.reading import text_of

pytestmark = pytest.mark.django_db


def settings_and_books() -> tuple[object, ...]:
    return (
        all_books(),
        list(BillingProfile.objects.order_by("pk").values_list()),
        list(PriceVersion.objects.order_by("pk").values_list()),
        list(Invoice.objects.order_by("pk").values_list()),
        list(InvoiceLine.objects.order_by("pk").values_list()),
    )


RATES = {"interactive": 9, "standard": 6, "batch": 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"interactive_gpu_second_micros": -1},
        {"batch_gpu_second_micros": -1},
        {"minimum_charge_micros": -1},
        {"effective_at": datetime(2026, 1, 1, tzinfo=UTC)},  # long over
        {"device_class_rates": {"h200": {**RATES, "batch": -1}}},
        {"device_class_rates": {"h200": {**RATES, "batch": 1.5}}},
        {"device_class_rates": {"h200": {"interactive": 9}}},
        {"device_class_rates": {"H 200": RATES}},
    ],
    ids=str,
)
def test_a_price_that_cannot_be_is_not_stored(price: PriceVersion, wrong: dict[str, Any]) -> None:
    before = settings_and_books()
    right = {f"{name}_gpu_second_micros": micros for name, micros in RATES.items()}
    with pytest.raises(PriceInvalid) as refused:
        add_price_version(version=PriceVersion(**{**right, **wrong}))
    assert (refused.value.code, refused.value.status) == ("price_invalid", 422)
    assert settings_and_books() == before
    assert add_price_version(version=PriceVersion(**right)).number == price.number + 1


@pytest.mark.parametrize("below", [0, -1, MOST_MICROS + 1])
def test_a_notice_below_nothing_is_not_kept(workspace_id: uuid.UUID, below: int) -> None:
    set_low_balance_notice(workspace_id=workspace_id, below_micros=5)
    before = settings_and_books()
    with pytest.raises(LowBalanceInvalid) as refused:
        set_low_balance_notice(workspace_id=workspace_id, below_micros=below)
    assert (refused.value.code, refused.value.status, refused.value.field) == (
        "low_balance_invalid",
        422,
        "below",
    )
    assert settings_and_books() == before


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "localtime", "asia/shanghai", "Asia/Shanghai'; --", "EST5EDT", "../UTC"]
)
def test_a_zone_that_is_none_is_not_kept(workspace_id: uuid.UUID, zone: str) -> None:
    set_time_zone(workspace_id=workspace_id, time_zone="Asia/Tokyo")
    before = settings_and_books()
    with pytest.raises(TimeZoneUnknown) as refused:
        set_time_zone(workspace_id=workspace_id, time_zone=zone)
    assert (refused.value.code, refused.value.status, refused.value.field) == (
        "time_zone_unknown",
        422,
        "time_zone",
    )
    assert settings_and_books() == before
    assert CreditAccount.objects.get(pk=workspace_id).time_zone == "Asia/Tokyo"


def test_a_zone_refused_makes_no_account() -> None:
    with pytest.raises(TimeZoneUnknown):
        set_time_zone(workspace_id=uuid.uuid4(), time_zone="Mars/Olympus")
    assert not CreditAccount.objects.exists()


@pytest.fixture
def without_pango(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a host where Pango is not installed: the loader finds no such library."""
    load = cffi.FFI.dlopen

    def load_but_pango(ffi: cffi.FFI, name: Any, *options: Any) -> Any:
        if "pango" in str(name):
            raise OSError(f"cannot load library '{name}'")
        return load(ffi, name, *options)

    for name in [name for name in sys.modules if name.split(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(cffi.FFI, "dlopen", load_but_pango)


@pytest.mark.usefixtures("without_pango")
def test_without_pango_there_is_no_pdf_and_the_csv_remains(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    at = now() - timedelta(days=40)
    speak(alice_workspace.pk, 1_500_000, finished_at=at)
    invoice = close_month(workspace_id=alice_workspace.pk, month=at.date())
    assert invoice is not None
    before = settings_and_books()
    answer = alice_client.get(reverse("invoice_file", args=[invoice.pk]))
    assert (answer.status_code, InvoicePdfUnavailable.code) == (503, "invoice_pdf_unavailable")
    page = text_of(answer)
    assert "the operator has to install the Pango library" in page
    receipts = alice_client.get(reverse("invoice_receipts", args=[invoice.pk]))
    assert b"1.5" in b"".join(receipts.streaming_content)  # type: ignore[attr-defined]
    assert settings_and_books() == before
