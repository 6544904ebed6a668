"""Giving back what a job had cost: when it failed by our fault, or because an operator decides so."""

from __future__ import annotations

import uuid

from django.db import transaction

from billing.errors import AmountNotPositive, RefundTooHigh
from billing.models import Hold
from billing.services import ledger


def refund_job(*, job_id: uuid.UUID) -> int:
    """Give back all that was captured for the job and return those micros. Once: later calls give back 0.

    Call inside a transaction that has closed the job's hold. Locks the credit account.

    Raises:
        ValueError: the hold is open. What was captured after the refund would never come back.
    """
    hold = Hold.objects.get(job_id=job_id)
    left = hold.captured_micros - hold.refunded_micros
    if left == 0:
        return 0
    return left if _refund(job_id, left, f"refund:{job_id}", "") else 0


def refund_part(*, job_id: uuid.UUID, amount_micros: int, idempotency_key: str, reason: str) -> bool:
    """Give back a part of what the job had cost; False, and nothing changed, when the key was used before.

    Raises:
        AmountNotPositive
        RefundTooHigh: that is more than was charged and not given back yet. Nothing was changed.
        ValueError: the job's hold is open.
    """
    if amount_micros <= 0:
        raise AmountNotPositive
    return _refund(job_id, amount_micros, f"refund:{job_id}:{idempotency_key}", reason)


def _refund(job_id: uuid.UUID, amount_micros: int, key: str, reason: str) -> bool:
    with transaction.atomic():
        outcome = ledger.call("billing_refund(%s, %s, %s, %s)", [job_id, amount_micros, key, reason])
    if outcome == "hold_open":
        raise ValueError("an open hold is released before it is refunded")
    if outcome == "more_than_charged":
        raise RefundTooHigh
    return outcome == "posted"
