"""Credit notes: never more than the invoice, the tax in shares, the money back in the wallet."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

import pytest

from billing.errors import AmountNotPositive, CreditNoteTooHigh, NotAnInvoice, ReasonMissing
from billing.models import BillingProfile, CreditAccount, GrantKind, Invoice, LedgerAccount
from billing.services import grants
from billing.services.credit_notes import credit, creditable
from billing.services.invoices import close_month, draft
from portal.lib.errors import DomainError
from tests.billing.books import all_books, assert_books_agree, at_once, balance, total
from tests.billing.speech import plan, speak, subscribed

YUAN = 1_000_000
NOVEMBER = date(2025, 11, 1)


def invoiced(fee_micros: int, *, paid_micros: int, tax_inclusive: bool = False) -> Invoice:
    workspace_id = uuid.uuid4()
    grants.grant(
        workspace_id=workspace_id,
        amount_micros=paid_micros,
        kind=GrantKind.PAID,
        idempotency_key=str(uuid.uuid4()),
    )
    BillingProfile.objects.create(
        workspace_id=workspace_id, tax_rate_basis_points=600, tax_inclusive=tax_inclusive
    )
    subscribed(workspace_id, plan(fee_micros), datetime(2025, 11, 1, tzinfo=UTC))
    invoice = close_month(workspace_id=workspace_id, month=NOVEMBER, at=datetime(2025, 12, 2, tzinfo=UTC))
    assert invoice is not None
    return invoice


@pytest.mark.parametrize("tax_inclusive", [False, True])
def test_a_whole_invoice_is_credited(db: None, tax_inclusive: bool) -> None:
    invoice = invoiced(100 * YUAN, paid_micros=200 * YUAN, tax_inclusive=tax_inclusive)
    note = credit(invoice_id=invoice.pk, reason="wrong plan", idempotency_key="1")
    assert (note.kind, note.series, note.number, note.corrects_id) == (
        "credit_note",
        f"CN{datetime.now(UTC).year}",
        1,
        invoice.pk,
    )
    assert (note.net_micros, note.tax_micros, note.total_micros) == (
        invoice.net_micros,
        invoice.tax_micros,
        invoice.total_micros,
    )
    assert balance(invoice.workspace_id) == (200 * YUAN, 0)
    assert total(invoice.workspace_id, LedgerAccount.TAX) == 0
    assert total(invoice.workspace_id, LedgerAccount.REVENUE) == 0
    assert creditable(invoice) == 0
    assert_books_agree(invoice.workspace_id)


def test_the_last_of_several_notes_takes_what_is_left_of_the_tax(db: None) -> None:
    invoice = invoiced(3_330_000, paid_micros=200 * YUAN)
    assert (invoice.tax_micros, invoice.total_micros) == (200_000, 3_530_000)
    thirds = [
        credit(invoice_id=invoice.pk, reason="noise", idempotency_key=str(n), amount_micros=1_170_000)
        for n in range(3)
    ]
    assert [note.tax_micros for note in thirds] == [70_000, 60_000, 70_000]
    rest = credit(invoice_id=invoice.pk, reason="noise", idempotency_key="rest")
    assert (rest.total_micros, rest.tax_micros) == (20_000, 0)
    assert sum(note.tax_micros for note in [*thirds, rest]) == invoice.tax_micros
    assert balance(invoice.workspace_id) == (200 * YUAN, 0)


def test_what_is_due_is_paid_by_the_note_first(db: None) -> None:
    invoice = invoiced(100 * YUAN, paid_micros=50 * YUAN)
    assert invoice.due_micros == 56 * YUAN
    credit(invoice_id=invoice.pk, reason="noise", idempotency_key="1", amount_micros=30 * YUAN)
    invoice.refresh_from_db()
    assert invoice.paid_micros == 30 * YUAN
    credit(invoice_id=invoice.pk, reason="noise", idempotency_key="2")
    invoice.refresh_from_db()
    assert invoice.paid_micros == 56 * YUAN
    assert CreditAccount.objects.get(pk=invoice.workspace_id).owed_micros == 0
    assert balance(invoice.workspace_id) == (50 * YUAN, 0)
    assert_books_agree(invoice.workspace_id)


def test_a_note_pays_the_invoice_that_it_corrects_before_older_ones(db: None) -> None:
    older = invoiced(100 * YUAN, paid_micros=YUAN)
    newer = close_month(
        workspace_id=older.workspace_id, month=date(2025, 12, 1), at=datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert newer is not None
    credit(invoice_id=newer.pk, reason="noise", idempotency_key="1", amount_micros=7 * YUAN)
    older.refresh_from_db()
    newer.refresh_from_db()
    assert (older.paid_micros, newer.paid_micros) == (0, 7 * YUAN)


def test_the_same_key_makes_one_note(db: None) -> None:
    invoice = invoiced(100 * YUAN, paid_micros=200 * YUAN)
    first = credit(invoice_id=invoice.pk, reason="noise", idempotency_key="1", amount_micros=YUAN)
    before = all_books()
    again = credit(invoice_id=invoice.pk, reason="noise", idempotency_key="1", amount_micros=YUAN)
    assert again.pk == first.pk
    assert all_books() == before


@pytest.mark.parametrize(
    ("reason", "amount", "error"),
    [
        ("noise", 0, AmountNotPositive),
        ("noise", -1, AmountNotPositive),
        ("noise", 106 * YUAN + 1, CreditNoteTooHigh),
        ("noise", 2**62, CreditNoteTooHigh),
        ("  ", YUAN, ReasonMissing),
    ],
)
def test_a_note_that_cannot_be_changes_nothing(
    db: None, reason: str, amount: int, error: type[DomainError]
) -> None:
    invoice = invoiced(100 * YUAN, paid_micros=200 * YUAN)
    before = all_books()
    with pytest.raises(error):
        credit(invoice_id=invoice.pk, reason=reason, idempotency_key="1", amount_micros=amount)
    assert all_books() == before
    assert Invoice.objects.count() == 1


def test_codes_of_refusals_are_stable() -> None:
    assert (CreditNoteTooHigh.code, CreditNoteTooHigh.status) == ("credit_note_too_high", 409)
    assert (NotAnInvoice.code, NotAnInvoice.status) == ("not_an_invoice", 409)
    assert (ReasonMissing.code, ReasonMissing.status) == ("reason_missing", 422)


def test_only_final_invoices_are_corrected(db: None) -> None:
    invoice = invoiced(100 * YUAN, paid_micros=200 * YUAN)
    note = credit(invoice_id=invoice.pk, reason="noise", idempotency_key="1")
    speak(invoice.workspace_id, YUAN, finished_at=datetime(2025, 12, 5, tzinfo=UTC))
    drafted = draft(workspace_id=invoice.workspace_id, month=date(2025, 12, 1))
    assert drafted is not None
    before = all_books()
    for document in (note, drafted):
        with pytest.raises(NotAnInvoice):
            credit(invoice_id=document.pk, reason="noise", idempotency_key="2")
    with pytest.raises(CreditNoteTooHigh):
        credit(invoice_id=invoice.pk, reason="noise", idempotency_key="3")
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_notes_made_at_once_never_exceed_the_invoice() -> None:
    invoice = invoiced(100 * YUAN, paid_micros=200 * YUAN)

    def half(number: int) -> Invoice:
        return credit(
            invoice_id=invoice.pk, reason="noise", idempotency_key=str(number), amount_micros=53 * YUAN
        )

    outcomes = at_once(6, half)
    assert sum(isinstance(outcome, Invoice) for outcome in outcomes) == 2
    assert sum(isinstance(outcome, CreditNoteTooHigh) for outcome in outcomes) == 4
    assert sorted(Invoice.objects.filter(kind="credit_note").values_list("number", flat=True)) == [1, 2]
    assert balance(invoice.workspace_id) == (200 * YUAN, 0)
