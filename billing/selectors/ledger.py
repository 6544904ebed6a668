"""Reads of the ledger."""

from __future__ import annotations

import uuid

from billing.models import LedgerTransaction


def transactions_of_job(job_id: uuid.UUID) -> list[LedgerTransaction]:
    """Every movement of money for a job with its entries, the oldest first. Two queries. For operators."""
    return list(
        LedgerTransaction.objects.filter(job_id=job_id).prefetch_related("entries").order_by("created_at")
    )
