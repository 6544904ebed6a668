"""The one way money moves: a transaction whose entries sum to zero, and the cached balance beside it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.db.models import F

from billing.models import CreditAccount, LedgerAccount, LedgerEntry, LedgerTransaction, TransactionKind
from portal.lib.uniqueness import is_duplicate


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
) -> LedgerTransaction:
    """Write one transaction and move the cached balance with it. Call inside a transaction.

    `entries` maps accounts to signed micros and must sum to zero. Locks the credit account's row, so
    call it before any job, segment, attempt or device is locked.

    Raises:
        BalanceTooLow: available or held would become negative.
        AlreadyPosted: the idempotency key was used before.
    """
    if sum(entries.values()) != 0:
        raise ValueError("a ledger transaction must sum to zero")
    available = entries.get(LedgerAccount.AVAILABLE, 0)
    held = entries.get(LedgerAccount.HELD, 0)
    moved = CreditAccount.objects.filter(
        workspace_id=workspace_id, available_micros__gte=-available, held_micros__gte=-held
    ).update(available_micros=F("available_micros") + available, held_micros=F("held_micros") + held)
    if moved != 1:
        raise BalanceTooLow
    try:
        # The savepoint keeps the caller's transaction usable when the key was used before.
        with transaction.atomic():
            posted = LedgerTransaction.objects.create(
                workspace_id=workspace_id, kind=kind, idempotency_key=idempotency_key, job_id=job_id
            )
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        CreditAccount.objects.filter(workspace_id=workspace_id).update(
            available_micros=F("available_micros") - available, held_micros=F("held_micros") - held
        )
        raise AlreadyPosted from error
    LedgerEntry.objects.bulk_create(
        [
            LedgerEntry(transaction=posted, account=account, amount_micros=amount)
            for account, amount in entries.items()
            if amount
        ]
    )
    return posted
