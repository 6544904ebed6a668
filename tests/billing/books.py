"""The books read whole, so that a test can say that nothing in them changed; and work on them at once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from django.db import connection, connections
from django.db.models import Sum

from billing.models import (
    CreditAccount,
    CreditGrant,
    GrantUse,
    Hold,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    TransactionKind,
)
from billing.services import grants
from billing.services.ledger import AlreadyPosted, BalanceTooLow

Outcome = TypeVar("Outcome")


def grant(workspace_id: uuid.UUID, amount_micros: int) -> None:
    """Give the workspace money, and an account when it has none."""
    grants.grant(
        workspace_id=workspace_id, amount_micros=amount_micros, idempotency_key=f"test-grant:{uuid.uuid4()}"
    )


def balance(workspace_id: uuid.UUID) -> tuple[int, int]:
    """The cached balance: available and held micros."""
    account = CreditAccount.objects.get(workspace_id=workspace_id)
    return account.available_micros, account.held_micros


def total(workspace_id: uuid.UUID, account: LedgerAccount) -> int:
    """What the entries of one account add up to."""
    entries = LedgerEntry.objects.filter(transaction__workspace_id=workspace_id, account=account)
    return entries.aggregate(total=Sum("amount_micros"))["total"] or 0


def post(
    *,
    workspace_id: uuid.UUID,
    kind: TransactionKind,
    idempotency_key: str,
    entries: Mapping[LedgerAccount, int],
    job_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """Write one transaction by the function of the database that all others stand on, and return its id.

    Raises:
        BalanceTooLow, AlreadyPosted
    """
    posted_id = uuid.uuid4()
    written = [(account.value, amount) for account, amount in entries.items() if amount]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT billing_post(%s, %s, %s, %s, %s, %s, %s, %s::varchar[], %s::bigint[])",
            [
                posted_id,
                workspace_id,
                kind,
                idempotency_key,
                job_id,
                entries.get(LedgerAccount.AVAILABLE, 0),
                entries.get(LedgerAccount.HELD, 0),
                [account for account, _ in written],
                [amount for _, amount in written],
            ],
        )
        (outcome,) = cursor.fetchone()
    if outcome == "balance_too_low":
        raise BalanceTooLow
    if outcome == "already_posted":
        raise AlreadyPosted
    return posted_id


@dataclass(frozen=True)
class Books:
    """Every row of the books."""

    accounts: tuple[object, ...]
    holds: tuple[object, ...]
    transactions: tuple[object, ...]
    entries: tuple[object, ...]
    grants: tuple[object, ...]
    grant_uses: tuple[object, ...]


def all_books() -> Books:
    return Books(
        accounts=tuple(CreditAccount.objects.order_by("pk").values_list()),
        holds=tuple(Hold.objects.order_by("pk").values_list()),
        transactions=tuple(LedgerTransaction.objects.order_by("pk").values_list()),
        entries=tuple(LedgerEntry.objects.order_by("pk").values_list()),
        grants=tuple(CreditGrant.objects.order_by("pk").values_list()),
        grant_uses=tuple(GrantUse.objects.order_by("pk").values_list()),
    )


def assert_books_agree(workspace_id: uuid.UUID) -> None:
    """The cached balance is what the entries add up to, and all entries together are zero; what is left of the
    grants, less what is owed, is what there is."""
    assert balance(workspace_id) == (
        total(workspace_id, LedgerAccount.AVAILABLE),
        total(workspace_id, LedgerAccount.HELD),
    )
    account = CreditAccount.objects.get(workspace_id=workspace_id)
    remaining = CreditGrant.objects.filter(workspace_id=workspace_id).aggregate(
        total=Sum("remaining_micros")
    )["total"]
    assert (remaining or 0) - account.owed_micros == account.available_micros + account.held_micros
    for grant in CreditGrant.objects.filter(workspace_id=workspace_id):
        used = grant.uses.aggregate(total=Sum("amount_micros"))["total"] or 0
        assert used == grant.amount_micros - grant.remaining_micros
        assert grant.is_spent == (grant.remaining_micros == 0)
    entries = LedgerEntry.objects.filter(transaction__workspace_id=workspace_id)
    assert (entries.aggregate(total=Sum("amount_micros"))["total"] or 0) == 0


def at_once(count: int, work: Callable[[int], Outcome]) -> list[Outcome | Exception]:
    """What `count` threads, each with its own database connection, got or raised when let go together."""
    start = threading.Barrier(count)

    def run(number: int) -> Outcome | Exception:
        try:
            connections["default"].ensure_connection()
            start.wait(timeout=60)
            return work(number)
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
