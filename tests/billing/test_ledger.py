"""The ledger: entries are for ever, every transaction is zero in sum, the cached balance moves with them."""

from __future__ import annotations

import uuid

import pytest
from django.db import IntegrityError, connection, transaction

from billing.models import CreditAccount, LedgerAccount, LedgerEntry, LedgerTransaction, TransactionKind
from billing.services import ledger
from tests.billing.books import all_books, assert_books_agree, at_once, balance, grant, post, total


def spend(workspace_id: uuid.UUID, amount: int, *, key: str) -> LedgerTransaction:
    posted_id = post(
        workspace_id=workspace_id,
        kind=TransactionKind.HOLD,
        idempotency_key=key,
        entries={LedgerAccount.AVAILABLE: -amount, LedgerAccount.HELD: amount},
    )
    return LedgerTransaction.objects.get(pk=posted_id)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE billing_ledgerentry SET amount_micros = amount_micros + 1",
        "UPDATE billing_ledgerentry SET account = 'revenue'",
        "DELETE FROM billing_ledgerentry",
        "UPDATE billing_ledgertransaction SET kind = 'release'",
        "DELETE FROM billing_ledgertransaction",
    ],
)
def test_the_database_refuses_to_change_or_delete_what_is_written(
    workspace_id: uuid.UUID, statement: str
) -> None:
    before = all_books()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement)
    assert all_books() == before
    assert len(before.entries) == 2


def test_the_models_cannot_change_or_delete_what_is_written(workspace_id: uuid.UUID) -> None:
    before = all_books()
    entry = LedgerEntry.objects.filter(account=LedgerAccount.AVAILABLE).get()
    entry.amount_micros = 10**9
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        entry.save()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        entry.delete()
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_not_zero_in_sum_does_not_commit() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    before = all_books()

    @transaction.atomic
    def forge() -> None:
        posted = LedgerTransaction.objects.create(
            workspace_id=workspace_id, kind=TransactionKind.GRANT, idempotency_key="forged"
        )
        LedgerEntry.objects.create(transaction=posted, account=LedgerAccount.AVAILABLE, amount_micros=5)

    with pytest.raises(IntegrityError, match="does not sum to zero"):
        forge()
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_an_entry_slipped_into_an_old_transaction_does_not_commit() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    before = all_books()
    with pytest.raises(IntegrityError, match="does not sum to zero"):
        LedgerEntry.objects.create(
            transaction=LedgerTransaction.objects.get(), account=LedgerAccount.AVAILABLE, amount_micros=5
        )
    assert all_books() == before


def test_entries_of_a_transaction_that_is_not_there_are_refused(workspace_id: uuid.UUID) -> None:
    before = all_books()
    entries = [
        LedgerEntry(transaction_id=uuid.uuid4(), account=LedgerAccount.AVAILABLE, amount_micros=0),
        *(
            LedgerEntry(
                transaction=LedgerTransaction.objects.get(),
                account=LedgerAccount.AVAILABLE,
                amount_micros=amount,
            )
            for amount in (5, -5)
        ),
    ]
    with pytest.raises(IntegrityError, match="there is no ledger transaction"), transaction.atomic():
        LedgerEntry.objects.bulk_create(entries)
    assert all_books() == before


def test_a_posting_writes_its_entries_and_moves_the_balance(workspace_id: uuid.UUID) -> None:
    job_id = uuid.uuid4()
    posted_id = post(
        workspace_id=workspace_id,
        kind=TransactionKind.HOLD,
        idempotency_key="hold-1",
        job_id=job_id,
        entries={LedgerAccount.AVAILABLE: -300, LedgerAccount.HELD: 300},
    )
    posted = LedgerTransaction.objects.get(pk=posted_id)
    assert (posted.workspace_id, posted.kind, posted.job_id) == (workspace_id, "hold", job_id)
    entries = posted.entries.order_by("account").values_list("account", "amount_micros")
    assert list(entries) == [("available", -300), ("held", 300)]
    assert balance(workspace_id) == (700, 300)
    assert_books_agree(workspace_id)


def test_an_entry_of_nothing_is_not_written(workspace_id: uuid.UUID) -> None:
    posted = spend(workspace_id, 0, key="nothing")
    assert posted.entries.count() == 0
    assert balance(workspace_id) == (1_000, 0)


def test_entries_that_are_not_zero_in_sum_are_refused(workspace_id: uuid.UUID) -> None:
    before = all_books()
    with pytest.raises(IntegrityError, match="sum to zero"), transaction.atomic():
        post(
            workspace_id=workspace_id,
            kind=TransactionKind.GRANT,
            idempotency_key="uneven",
            entries={LedgerAccount.PROMOTION: -10, LedgerAccount.AVAILABLE: 11},
        )
    assert all_books() == before


def test_the_last_micro_can_be_spent_and_not_one_more(workspace_id: uuid.UUID) -> None:
    before = all_books()
    with pytest.raises(ledger.BalanceTooLow):
        spend(workspace_id, 1_001, key="too-much")
    assert all_books() == before
    spend(workspace_id, 1_000, key="all")
    assert balance(workspace_id) == (0, 1_000)


def test_what_is_not_held_cannot_be_captured(workspace_id: uuid.UUID) -> None:
    spend(workspace_id, 400, key="hold")
    before = all_books()
    with pytest.raises(ledger.BalanceTooLow):
        post(
            workspace_id=workspace_id,
            kind=TransactionKind.CAPTURE,
            idempotency_key="capture",
            entries={LedgerAccount.HELD: -401, LedgerAccount.REVENUE: 401},
        )
    assert all_books() == before


def test_a_workspace_without_an_account_has_nothing_to_spend(db: None) -> None:
    before = all_books()
    with pytest.raises(ledger.BalanceTooLow):
        spend(uuid.uuid4(), 1, key="nobody")
    assert all_books() == before


def test_a_key_posts_once_and_the_callers_transaction_goes_on(workspace_id: uuid.UUID) -> None:
    spend(workspace_id, 100, key="once")
    before = all_books()
    with transaction.atomic():
        with pytest.raises(ledger.AlreadyPosted):
            spend(workspace_id, 100, key="once")
        assert all_books() == before
        spend(workspace_id, 50, key="another")
    assert balance(workspace_id) == (850, 150)
    assert_books_agree(workspace_id)


def test_a_key_of_another_workspace_is_the_same_key(workspace_id: uuid.UUID) -> None:
    other = uuid.uuid4()
    grant(other, 1_000)
    spend(workspace_id, 100, key="shared")
    before = all_books()
    with pytest.raises(ledger.AlreadyPosted):
        spend(other, 100, key="shared")
    assert all_books() == before


def test_a_broken_row_is_a_fault_and_not_taken_for_a_duplicate(workspace_id: uuid.UUID) -> None:
    before = all_books()
    with pytest.raises(IntegrityError, match="null value"), transaction.atomic():
        post(
            workspace_id=workspace_id,
            kind=TransactionKind.HOLD,
            idempotency_key=None,  # type: ignore[arg-type]
            entries={LedgerAccount.AVAILABLE: -1, LedgerAccount.HELD: 1},
        )
    assert all_books() == before


def test_an_account_is_made_once_and_empty(db: None) -> None:
    workspace_id = uuid.uuid4()
    ledger.ensure_account(workspace_id=workspace_id)
    grant(workspace_id, 70)
    ledger.ensure_account(workspace_id=workspace_id)
    assert CreditAccount.objects.filter(workspace_id=workspace_id).count() == 1
    assert balance(workspace_id) == (70, 0)


@pytest.mark.parametrize("column", ["owed_micros", "credit_limit_micros", "held_micros"])
def test_the_database_refuses_a_negative_balance(workspace_id: uuid.UUID, column: str) -> None:
    before = all_books()
    with pytest.raises(IntegrityError, match="never_negative"), transaction.atomic():
        CreditAccount.objects.filter(workspace_id=workspace_id).update(**{column: -1})
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_one_key_posted_by_many_at_once_posts_once() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)

    def post_it(number: int) -> str:
        with transaction.atomic():
            return str(spend(workspace_id, 100, key="race").pk)

    outcomes = at_once(12, post_it)
    assert sum(isinstance(outcome, str) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, ledger.AlreadyPosted) for outcome in outcomes) == 11
    assert balance(workspace_id) == (900, 100)
    assert total(workspace_id, LedgerAccount.HELD) == 100
    assert_books_agree(workspace_id)
