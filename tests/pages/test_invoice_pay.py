"""An open invoice paid with a saved card: after a question, once, and readable where the bank says no."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from billing.models import CreditAccount, Invoice, Payment, PaymentMethod, PaymentState
from billing.selectors.invoices import name_of
from billing.services.invoices import close_month
from billing.services.payment_asking import ask_open_payments
from billing.services.payment_methods import remove_method
from portal.lib.clock import now
from portal.money.payment_words import failure_words
from tests.billing.books import all_books, assert_books_agree, at_once
from tests.billing.fake_provider import Mishap
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import provider_server, stripe, their_turn
from tests.billing.speech import speak
from tests.billing.test_automatic_top_up import save_card
from tests.cast import client_of
from tests.pages.reading import text_of

__all__ = ["provider_server", "stripe"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def invoice(stripe: FakeStripe, alice_workspace: Workspace) -> Invoice:
    """Of 10 yuan and a part of a cent that are due, for speech beyond the credit of 3.60."""
    at = now() - timedelta(days=40)
    CreditAccount.objects.filter(pk=alice_workspace.pk).update(credit_limit_micros=100_000_000)
    speak(alice_workspace.pk, 13_600_001, finished_at=at)
    made = close_month(workspace_id=alice_workspace.pk, month=at.date())
    assert made is not None
    assert made.due_micros == 10_000_001
    return made


@pytest.fixture
def card(stripe: FakeStripe, alice_workspace: Workspace) -> PaymentMethod:
    return save_card(stripe, alice_workspace.pk)


def address_of(invoice: Invoice) -> str:
    return reverse("invoice_pay", args=[invoice.pk])


def form_of(client: Client, invoice: Invoice) -> dict[str, str]:
    """The question's form as a browser sends it."""
    page = client.get(address_of(invoice)).content.decode()
    fields = dict(re.findall(r'<input type="(?:hidden|radio)" name="(\w+)" value="([^"]*)"', page))
    for other in ("csrfmiddlewaretoken", "next"):
        fields.pop(other, None)
    assert set(fields) == {"form_id", "agreed_micros", "method"}
    return fields


def test_an_open_invoice_is_charged_to_the_saved_card_once(
    invoice: Invoice, card: PaymentMethod, stripe: FakeStripe, alice_client: Client
) -> None:
    assert f'href="{address_of(invoice)}"' in alice_client.get(reverse("invoices")).content.decode()
    books = all_books()
    question = text_of(alice_client.get(address_of(invoice)))
    assert f"Pay {name_of(invoice)} now?" in question
    assert f"Charged to {card.label}" in question
    assert "Pay CN¥10.01" in question
    assert (all_books(), Payment.objects.count()) == (books, 0)
    form = form_of(alice_client, invoice)
    answers = [alice_client.post(address_of(invoice), form) for _ in range(3)]
    payment = Payment.objects.get()
    assert {answer["Location"] for answer in answers} == {reverse("payment", args=[payment.pk])}
    assert (payment.state, payment.amount_micros, payment.method) == (
        PaymentState.SUCCEEDED,
        10_010_000,
        card,
    )
    assert stripe.calls["make_intent"] == 1
    invoice.refresh_from_db()
    assert invoice.paid_micros == invoice.due_micros
    assert "the invoice is paid with it" in text_of(alice_client.get(answers[0]["Location"]))
    assert address_of(invoice) not in alice_client.get(reverse("invoices")).content.decode()
    assert alice_client.get(address_of(invoice))["Location"] == reverse("invoices")
    # Another form of the same question comes too late.
    assert alice_client.post(address_of(invoice), {**form, "form_id": str(uuid.uuid4())}).status_code == 409
    assert Payment.objects.count() == 1
    assert_books_agree(invoice.workspace_id)


def test_a_card_that_is_declined_is_said_in_words_and_the_invoice_stays_open(
    invoice: Invoice, card: PaymentMethod, stripe: FakeStripe, alice_client: Client
) -> None:
    stripe.declining.add(card.provider_reference)
    books = all_books()
    page = alice_client.post(address_of(invoice), form_of(alice_client, invoice), follow=True)
    assert "The bank declined it. Try another card, or ask your bank." in text_of(page)
    assert "Nothing was charged." in text_of(page)
    assert f'href="{reverse("invoices")}">Try again' in page.content.decode()
    assert Payment.objects.get().state == PaymentState.FAILED
    assert all_books() == books
    # A new question is a new payment.
    stripe.declining.clear()
    alice_client.post(address_of(invoice), form_of(alice_client, invoice))
    invoice.refresh_from_db()
    assert invoice.paid_micros == invoice.due_micros


def test_a_payment_on_its_way_stands_in_place_of_the_buttons(
    invoice: Invoice, card: PaymentMethod, stripe: FakeStripe, alice_client: Client
) -> None:
    form = form_of(alice_client, invoice)
    stripe.mishap(Mishap.DONE_BUT_BROKEN)
    alice_client.post(address_of(invoice), form)
    payment = Payment.objects.get()
    assert payment.state == PaymentState.UNKNOWN
    page = alice_client.get(reverse("invoices"))
    assert "A payment is on its way" in text_of(page)
    assert address_of(invoice) not in page.content.decode()
    where = reverse("payment", args=[payment.pk])
    assert alice_client.get(address_of(invoice))["Location"] == where
    assert alice_client.post(address_of(invoice), {**form, "form_id": str(uuid.uuid4())}).status_code == 409
    assert Payment.objects.count() == 1


@pytest.mark.parametrize("case", ["amount", "no number", "not a card", "removed card", "no form"])
def test_what_was_not_asked_is_not_charged(
    invoice: Invoice, card: PaymentMethod, stripe: FakeStripe, alice_client: Client, case: str
) -> None:
    form = form_of(alice_client, invoice)
    changed: dict[str, tuple[dict[str, Any], int]] = {
        "amount": ({"agreed_micros": "10000000"}, 409),
        "no number": ({"agreed_micros": "much"}, 400),
        "not a card": ({"method": str(uuid.uuid4())}, 404),
        "removed card": ({}, 404),
        "no form": ({"form_id": ""}, 400),
    }
    fields, status = changed[case]
    if case == "removed card":
        remove_method(workspace_id=invoice.workspace_id, method_id=card.pk)
    books = all_books()
    assert alice_client.post(address_of(invoice), {**form, **fields}).status_code == status
    assert (all_books(), Payment.objects.count(), stripe.calls["make_intent"]) == (books, 0, 0)


def test_nobody_pays_with_another_workspaces_card(
    invoice: Invoice,
    card: PaymentMethod,
    stripe: FakeStripe,
    alice_client: Client,
    charlie_workspace: Workspace,
) -> None:
    theirs = save_card(stripe, charlie_workspace.pk)
    form = {**form_of(alice_client, invoice), "method": str(theirs.pk)}
    assert alice_client.post(address_of(invoice), form).status_code == 404
    assert Payment.objects.count() == 0


def test_without_a_saved_card_there_is_no_such_button(invoice: Invoice, alice_client: Client) -> None:
    page = alice_client.get(reverse("invoices"))
    assert "Pay now" not in text_of(page)
    assert "Pay (" in text_of(page)
    assert alice_client.get(address_of(invoice))["Location"] == reverse("invoices")


@pytest.mark.django_db(transaction=True)
def test_a_button_pressed_many_times_at_once_charges_once(
    invoice: Invoice, card: PaymentMethod, stripe: FakeStripe, alice: User
) -> None:
    form = form_of(client_of(alice), invoice)
    clients = [client_of(alice) for _ in range(6)]
    answers = at_once(6, lambda number: clients[number].post(address_of(invoice), form).status_code)
    assert set(answers) == {302}
    intents = [thing for thing in stripe.things.values() if thing["object"] == "payment_intent"]
    assert len(intents) == 1
    # Who asked while the first was being answered may have been told that it is not known yet.
    their_turn()
    ask_open_payments()
    assert Payment.objects.get().state == PaymentState.SUCCEEDED
    invoice.refresh_from_db()
    assert invoice.paid_micros == invoice.due_micros
    assert_books_agree(invoice.workspace_id)


def test_reasons_that_are_not_known_are_given_as_they_came() -> None:
    assert str(failure_words("lost_card_of_the_moon")) == "lost_card_of_the_moon"
    assert failure_words("") == ""
