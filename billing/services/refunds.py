"""Giving back what a job had cost: when it failed by our fault, or because an operator decides so."""

from __future__ import annotations

import uuid

from django.db import transaction

from billing.errors import AmountNotPositive, RefundTooHigh
from billing.models import Hold
from billing.selectors.ledger import was_posted
from billing.services import holds, ledger
from billing.services.given_back import left_for_job


def refund_job(*, job_id: uuid.UUID) -> int:
    """Give back all that was captured for the job, less what credit notes gave back of its invoice, and return those
    micros. Once: later calls give back 0.

    Call inside a transaction that has closed the job's hold. Locks the credit account.

    Raises:
        ValueError: the hold is open. What was captured after the refund would never come back.
    """
    hold = _locked(job_id)
    left = hold.captured_micros - hold.refunded_micros
    bound = left_for_job(job_id) if left else None
    left = left if bound is None else min(left, bound)
    if left == 0:
        return 0
    return left if _refund(job_id, left, f"refund:{job_id}", "") else 0


def refund_part(*, job_id: uuid.UUID, amount_micros: int, idempotency_key: str, reason: str) -> bool:
    """Give back a part of what the job had cost; False, and nothing changed, when the key was used before.

    Raises:
        AmountNotPositive
        RefundTooHigh: that is more than was charged and not given back yet, for the job or by credit notes on its
            invoice (billing.services.given_back). Nothing was changed.
        ValueError: the job's hold is open.
    """
    if amount_micros <= 0:
        raise AmountNotPositive
    key = f"refund:{job_id}:{idempotency_key}"
    with transaction.atomic():
        _locked(job_id)
        bound = left_for_job(job_id)
        if bound is not None and amount_micros > bound and not was_posted(idempotency_key=key):
            raise RefundTooHigh
        return _refund(job_id, amount_micros, key, reason)


def _locked(job_id: uuid.UUID) -> Hold:
    """The job's hold as it stands under the lock of the account: notes and refunds wait for one another."""
    workspace_id = Hold.objects.values_list("workspace_id", flat=True).get(job_id=job_id)
    holds.lock_account(workspace_id=workspace_id)
    return Hold.objects.get(job_id=job_id)


def _refund(job_id: uuid.UUID, amount_micros: int, key: str, reason: str) -> bool:
    with transaction.atomic():
        outcome = ledger.call("billing_refund(%s, %s, %s, %s)", [job_id, amount_micros, key, reason])
    if outcome == "hold_open":
        raise ValueError("an open hold is released before it is refunded")
    if outcome == "more_than_charged":
        raise RefundTooHigh
    return outcome == "posted"
