"""Giving back what a job had cost, when it failed by our fault."""

from __future__ import annotations

import uuid

from django.db import transaction

from billing.models import Hold, HoldState, LedgerAccount, TransactionKind
from billing.services import ledger


def refund_job(*, job_id: uuid.UUID) -> int:
    """Give back all that was captured for the job and return those micros. Once: later calls give back 0.

    Call inside a transaction that has closed the job's hold. Locks the credit account.

    Raises:
        ValueError: the hold is open. What was captured after the refund would never come back.
    """
    hold = Hold.objects.get(job_id=job_id)
    if hold.state == HoldState.OPEN:
        raise ValueError("an open hold is released before it is refunded")
    if hold.captured_micros == 0:
        return 0
    try:
        with transaction.atomic():
            ledger.post(
                workspace_id=hold.workspace_id,
                kind=TransactionKind.REFUND,
                idempotency_key=f"refund:{job_id}",
                job_id=job_id,
                entries={
                    LedgerAccount.REVENUE: -hold.captured_micros,
                    LedgerAccount.AVAILABLE: hold.captured_micros,
                },
            )
    except ledger.AlreadyPosted:
        return 0
    return hold.captured_micros
