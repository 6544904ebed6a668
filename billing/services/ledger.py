"""The one way money moves: a transaction whose entries sum to zero, and the cached balance beside it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import connection

from billing.models import CreditAccount, LedgerAccount, TransactionKind


class BalanceTooLow(Exception):
    """The conditional update found less than was asked for. Nothing was changed."""


class AlreadyPosted(Exception):
    """A transaction with this idempotency key exists. Nothing was changed."""


def ensure_account(*, workspace_id: uuid.UUID) -> None:
    """Make the workspace's credit account when there is none."""
    CreditAccount.objects.bulk_create([CreditAccount(workspace_id=workspace_id)], ignore_conflicts=True)


def post(
    *,
    workspace_id: uuid.UUID,
    kind: TransactionKind,
    idempotency_key: str,
    entries: Mapping[LedgerAccount, int],
    job_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """Write one transaction, move the cached balance with it, and return the transaction's id. One statement.

    `entries` maps accounts to signed micros and must sum to zero. Locks the credit account's row, so
    call it before any job, segment, attempt or device is locked.

    Raises:
        BalanceTooLow: available or held would become negative.
        AlreadyPosted: the idempotency key was used before.
    """
    if sum(entries.values()) != 0:
        raise ValueError("a ledger transaction must sum to zero")
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


def call(function: str, arguments: Sequence[uuid.UUID | str | int | bool | datetime | None]) -> str:
    """The outcome of one of the database's functions that move money: "posted", or why nothing was changed."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}", arguments)
        outcome: str = cursor.fetchone()[0]
    return outcome
