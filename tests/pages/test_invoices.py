"""Invoices on the pages: what is final, its files, and what is due paid once."""

from __future__ import annotations

import csv
import io
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from billing.models import CreditAccount, Invoice, Payment
from billing.selectors.invoices import name_of
from billing.services.invoices import close_month, draft
from billing.services.pretend_payments import decide_test_payment
from portal.lib.clock import now
from portal.lib.display import money_exact
from tests.billing.books import all_books
from tests.billing.speech import speak
from tests.cast import client_of
from tests.pages.money import used
from tests.pages.reading import text_of
from tts.models import Voice
from tts.services.voices import delete_voice

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _test_provider(settings: Any) -> None:
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test"], "TEST_PROVIDER": True}


@pytest.fixture
def invoice(alice_workspace: Workspace) -> Invoice:
    """Of a month that is over, for a yuan and a half of speech."""
    at = now() - timedelta(days=40)
    speak(alice_workspace.pk, 1_500_000, finished_at=at)
    made = close_month(workspace_id=alice_workspace.pk, month=at.date())
    assert made is not None
    return made


def test_final_invoices_stand_there_with_their_files(invoice: Invoice, alice_client: Client) -> None:
    response = alice_client.get(reverse("invoices"))
    page = text_of(response)
    assert name_of(invoice) in page
    assert money_exact(invoice.total_micros, "CNY") in page
    pdf = alice_client.get(reverse("invoice_file", args=[invoice.pk]))
    assert (pdf["Content-Type"], pdf.content[:5]) == ("application/pdf", b"%PDF-")
    assert f'filename="{name_of(invoice)}.pdf"' in pdf["Content-Disposition"]
    receipts = alice_client.get(reverse("invoice_receipts", args=[invoice.pk]))
    content = b"".join(receipts.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    lines = list(csv.DictReader(io.StringIO(content)))
    assert (
        sum(round(float(line["charged"]) * 1_000_000) for line in lines) == invoice.usage_micros == 1_500_000
    )


def receipts_of(client: Client, invoice: Invoice, language: str = "en") -> list[dict[str, str]]:
    answer = client.get(reverse("invoice_receipts", args=[invoice.pk]), headers={"Accept-Language": language})
    content = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(content)))


def test_receipts_name_their_voices_also_those_that_are_deleted(
    alice: User, alice_workspace: Workspace, alice_client: Client, alices_voice: Voice
) -> None:
    at = now() - timedelta(days=40)
    for voice_id in (alices_voice.pk, uuid.UUID(int=3)):
        used(alice_workspace.pk, at.date(), voice_id=voice_id)
    made = close_month(workspace_id=alice_workspace.pk, month=at.date())
    assert made is not None
    Voice.objects.filter(pk=alices_voice.pk).update(name="=cmd|' /C calc'!A0")
    lines = receipts_of(alice_client, made)
    assert [(line["voice_id"], line["voice"]) for line in lines] == [
        (str(alices_voice.pk), "'=cmd|' /C calc'!A0"),
        (str(uuid.UUID(int=3)), "A voice that is gone (00000000)"),
    ]
    delete_voice(workspace=alice_workspace, user=alice, voice_id=alices_voice.pk)
    assert receipts_of(alice_client, made)[0]["voice"] == "'=cmd|' /C calc'!A0 (deleted)"
    assert receipts_of(alice_client, made, "zh-hans")[0]["voice"] == "'=cmd|' /C calc'!A0（已删除）"


def test_drafts_are_not_for_customers(alice_workspace: Workspace, alice_client: Client) -> None:
    speak(alice_workspace.pk, 1_000_000, finished_at=now())
    made = draft(workspace_id=alice_workspace.pk, month=now().date())
    assert made is not None
    assert "No invoices yet" in text_of(alice_client.get(reverse("invoices")))
    for name in ("invoice_file", "invoice_receipts"):
        assert alice_client.get(reverse(name, args=[made.pk])).status_code == 404


def test_what_is_due_is_paid_once(invoice: Invoice, alice_workspace: Workspace, alice_client: Client) -> None:
    address = reverse("invoice_pay", args=[invoice.pk])
    assert address not in alice_client.get(reverse("invoices")).content.decode()
    # Nothing of it is due: it was paid from credit.
    refused = alice_client.post(address, {"provider": "test", "form_id": str(uuid.uuid4())})
    assert refused.status_code == 409
    for sent in ({"provider": "test"}, {"provider": "test", "form_id": "x"}):
        assert alice_client.post(address, sent).status_code == 400
    assert Payment.objects.count() == 0


def test_an_open_invoice_is_paid_by_the_button_beside_it(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    at = now() - timedelta(days=40)
    CreditAccount.objects.filter(pk=alice_workspace.pk).update(credit_limit_micros=100_000_000)
    speak(alice_workspace.pk, 13_600_000, finished_at=at)
    made = close_month(workspace_id=alice_workspace.pk, month=at.date())
    assert made is not None
    assert made.due_micros == 10_000_000
    address = reverse("invoice_pay", args=[made.pk])
    assert address in alice_client.get(reverse("invoices")).content.decode()
    form_id = str(uuid.uuid4())
    for _ in range(2):
        alice_client.post(address, {"provider": "test", "form_id": form_id})
    payment = Payment.objects.get()
    assert (payment.amount_micros, payment.invoice_id) == (10_000_000, made.pk)
    decide_test_payment(workspace_id=alice_workspace.pk, payment_id=payment.pk, succeeds=True)
    made.refresh_from_db()
    assert made.paid_micros == 10_000_000
    assert address not in alice_client.get(reverse("invoices")).content.decode()


@pytest.mark.parametrize("role", [Role.ADMIN, Role.MEMBER])
def test_other_members_do_not_see_invoices(
    invoice: Invoice, alice_workspace: Workspace, bob: User, role: Role
) -> None:
    Membership.objects.create(workspace=alice_workspace, user=bob, role=role)
    client = client_of(bob)
    client.post(reverse("choose_workspace"), {"workspace": str(alice_workspace.pk)})
    books = all_books()
    assert client.get(reverse("invoices")).status_code == 403
    for name in ("invoice_file", "invoice_receipts"):
        assert client.get(reverse(name, args=[invoice.pk])).status_code == 403
    sent = {"provider": "test", "form_id": str(uuid.uuid4())}
    assert client.post(reverse("invoice_pay", args=[invoice.pk]), sent).status_code == 403
    assert all_books() == books
    assert Payment.objects.count() == 0


def test_an_invoice_of_others_is_not_there(invoice: Invoice, charlie_client: Client) -> None:
    for name in ("invoice_file", "invoice_receipts"):
        assert charlie_client.get(reverse(name, args=[invoice.pk])).status_code == 404
    sent = {"provider": "test", "form_id": str(uuid.uuid4())}
    assert charlie_client.post(reverse("invoice_pay", args=[invoice.pk]), sent).status_code == 404
    assert Payment.objects.count() == 0
