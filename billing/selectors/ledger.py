"""Reads of the ledger."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db.models import QuerySet

from billing.models import LedgerAccount, LedgerTransaction, TransactionKind


def transactions_of_job(job_id: uuid.UUID) -> list[LedgerTransaction]:
    """Every movement of money for a job with its entries, the oldest first. Two queries. For operators."""
    return list(
        LedgerTransaction.objects.filter(job_id=job_id).prefetch_related("entries").order_by("created_at")
    )


def transactions_of(
    workspace_id: uuid.UUID,
    *,
    kinds: list[TransactionKind] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[LedgerTransaction]:
    """The workspace's movements of money with their entries, the newest first; `until` is not included."""
    rows = LedgerTransaction.objects.filter(workspace_id=workspace_id)
    if kinds is not None:
        rows = rows.filter(kind__in=kinds)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    return rows.prefetch_related("entries").order_by("-created_at", "-pk")


def moved(transaction: LedgerTransaction, account: LedgerAccount) -> int:
    """What a transaction added to one account, in micros; negative where it took from it."""
    return sum(entry.amount_micros for entry in transaction.entries.all() if entry.account == account)


def was_posted(*, idempotency_key: str) -> bool:
    """Whether there is a transaction of this key."""
    return LedgerTransaction.objects.filter(idempotency_key=idempotency_key).exists()
