"""What pages read of invoices, and the command that makes them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from billing.models import CreditAccount, GrantKind, Invoice
from billing.selectors.invoices import (
    any_invoice,
    every_draft,
    every_invoice,
    invoice_of,
    invoices_of,
    name_of,
    notes_of,
    open_invoices,
    receivables,
)
from billing.services.credit_notes import credit
from billing.services.invoices import draft
from portal.lib.errors import NotFound
from tests.billing.books import all_books
from tests.billing.invoicing.months import AFTER, LONG_AGO, NOVEMBER, OCTOBER, YUAN, closed, money, november
from tests.billing.speech import plan, speak, subscribed


def test_customers_see_their_own_final_invoices_and_notes(customer: uuid.UUID) -> None:
    other = uuid.uuid4()
    money(other, 10 * YUAN, GrantKind.PAID)
    for workspace_id in (customer, other):
        speak(workspace_id, YUAN, finished_at=november(3))
    mine, foreign = closed(customer), closed(other)
    note = credit(invoice_id=mine.pk, reason="noise", idempotency_key="1", amount_micros=10_000)
    speak(customer, YUAN, finished_at=datetime(2025, 12, 3, tzinfo=UTC))
    drafted = draft(workspace_id=customer, month=datetime(2025, 12, 1, tzinfo=UTC).date())
    assert drafted is not None
    assert set(invoices_of(customer)) == {mine, note}
    assert invoice_of(customer, note.pk).corrects == mine
    assert notes_of(mine) == [note]
    assert (name_of(mine), name_of(drafted)) == ("INV2025-000001", "")
    for hidden in (foreign.pk, drafted.pk, uuid.uuid4()):
        with pytest.raises(NotFound):
            invoice_of(customer, hidden)
    assert set(every_invoice()) == {mine, note, foreign}
    assert list(every_draft()) == [drafted]
    assert any_invoice(drafted.pk) == drafted
    with pytest.raises(NotFound):
        any_invoice(uuid.uuid4())


def test_what_is_owed_is_told_by_how_late_it_is(customer: uuid.UUID) -> None:
    subscribed(customer, plan(100 * YUAN), LONG_AGO)
    october = closed(customer, OCTOBER, datetime(2025, 11, 1, tzinfo=UTC))
    november_of = closed(customer, NOVEMBER, datetime(2025, 12, 1, tzinfo=UTC))
    assert (october.due_micros, november_of.due_micros) == (6 * YUAN, 106 * YUAN)
    assert list(open_invoices(customer).order_by("number")) == [october, november_of]

    def ages(at: datetime) -> tuple[int, ...]:
        (receivable,) = receivables(at)
        assert (receivable.workspace_id, receivable.currency) == (customer, "CNY")
        assert receivable.total_micros == 112 * YUAN
        return tuple(amount // YUAN for amount in receivable.by_age_micros)

    # Due on the 15th of November and the 15th of December.
    first, second = datetime(2025, 11, 15, tzinfo=UTC), datetime(2025, 12, 15, tzinfo=UTC)
    second_late = timedelta(seconds=1)
    assert ages(first - second_late) == (112, 0, 0, 0, 0)
    assert ages(first) == (106, 6, 0, 0, 0)
    assert ages(second - second_late) == (106, 6, 0, 0, 0)
    assert ages(second + second_late) == (0, 106, 6, 0, 0)
    assert ages(first + timedelta(days=89)) == (0, 0, 106, 6, 0)
    assert ages(first + timedelta(days=91)) == (0, 0, 0, 106, 6)
    money(customer, 200 * YUAN, GrantKind.PAID)
    assert receivables(AFTER) == []
    assert not open_invoices().exists()


def test_the_command_closes_one_month_of_one_workspace_and_all_that_are_due(
    customer: uuid.UUID, capsys: pytest.CaptureFixture[str]
) -> None:
    other = uuid.uuid4()
    money(other, 10 * YUAN, GrantKind.PAID)
    for workspace_id in (customer, other):
        speak(workspace_id, YUAN, finished_at=november(3))
    call_command("invoice", workspace=customer, month=NOVEMBER)
    invoice = Invoice.objects.get()
    assert capsys.readouterr().out == f"{name_of(invoice)}: {invoice.pk}\n"
    call_command("invoice", workspace=customer, month=OCTOBER.replace(month=12))
    assert capsys.readouterr().out == "There is nothing to bill.\n"
    call_command("invoice", "--month", "2025-11")
    assert capsys.readouterr().out == "1 invoices were made.\n"
    assert set(Invoice.objects.values_list("workspace_id", flat=True)) == {customer, other}
    call_command("invoice")
    assert capsys.readouterr().out == "0 invoices were made.\n"


@pytest.mark.parametrize(
    "arguments",
    [["--month", "2025-13"], ["--month", "november"], ["--workspace", "acme"]],
)
def test_the_command_refuses_what_it_cannot_read(db: None, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("invoice", *arguments)


def test_the_command_says_why_a_month_cannot_be_closed(customer: uuid.UUID) -> None:
    speak(customer, YUAN, finished_at=november(3))
    CreditAccount.objects.filter(pk=customer).update(time_zone="UTC")
    before = all_books()
    with pytest.raises(CommandError, match="not over yet"):
        call_command("invoice", workspace=customer, month=datetime(2999, 1, 1, tzinfo=UTC).date())
    assert all_books() == before
