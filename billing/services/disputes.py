"""A payer's bank takes money back, and sometimes returns it: each is booked once, when the money moves."""

from __future__ import annotations

import logging
import uuid

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from billing.errors import PaymentNotRefundable
from billing.models import (
    Dispute,
    DisputeState,
    GrantKind,
    Payment,
    PaymentState,
    TransactionKind,
)
from billing.payments.base import DisputeReport
from billing.services import automatic_top_up, grants, holds
from billing.services.invoice_paying import paying, reopen

logger = logging.getLogger(__name__)


@transaction.atomic
def apply_dispute(*, payment_id: uuid.UUID, report: DisputeReport) -> None:
    """Book how a dispute stands. Any number of times, in any order: what moved before does not move again.

    What was spent already of the money that is taken is owed. Locks the credit account, then the payment.

    Raises PaymentNotRefundable: the payment itself is not booked yet. Ask about it first.
    """
    payment = Payment.objects.get(pk=payment_id)
    if payment.state != PaymentState.SUCCEEDED or payment.grant_id is None:
        raise PaymentNotRefundable
    holds.lock_account(workspace_id=payment.workspace_id)
    Dispute.objects.bulk_create(
        [Dispute(payment=payment, provider_reference=report.reference, amount_micros=report.amount_micros)],
        ignore_conflicts=True,
    )
    dispute = Dispute.objects.get(payment=payment, provider_reference=report.reference)
    if report.withdrawn:
        _withdraw(payment, dispute)
    if report.reinstated:
        _reinstate(payment, dispute)
    if report.won is not None:
        # An end is an end: an older answer that comes late does not open it again.
        Dispute.objects.filter(pk=dispute.pk).update(
            state=DisputeState.WON if report.won else DisputeState.LOST
        )


def _withdraw(payment: Payment, dispute: Dispute) -> None:
    taken = Dispute.objects.filter(pk=dispute.pk, withdrawn_at__isnull=True).update(withdrawn_at=Now())
    if not taken or payment.grant_id is None:
        return
    grants.take_back(
        grant_id=payment.grant_id,
        amount_micros=dispute.amount_micros,
        kind=TransactionKind.DISPUTE,
        idempotency_key=f"dispute:{dispute.pk}",
        may_owe=True,
    )
    _move(payment, dispute.amount_micros)
    automatic_top_up.turn_off_after_dispute(payment=payment)
    logger.warning("payment_disputed", extra={"payment": payment.pk, "dispute": dispute.pk})


def _reinstate(payment: Payment, dispute: Dispute) -> None:
    # Only what was taken can come back.
    given = Dispute.objects.filter(
        pk=dispute.pk, withdrawn_at__isnull=False, reinstated_at__isnull=True
    ).update(reinstated_at=Now())
    if not given:
        return
    with paying(payment.invoice_id):
        grants.grant(
            workspace_id=payment.workspace_id,
            amount_micros=dispute.amount_micros,
            idempotency_key=f"dispute-won:{dispute.pk}",
            kind=GrantKind.PAID,
            ledger_kind=TransactionKind.DISPUTE_WON,
        )
    _move(payment, -dispute.amount_micros)


def _move(payment: Payment, amount_micros: int) -> None:
    Payment.objects.filter(pk=payment.pk).update(disputed_micros=F("disputed_micros") + amount_micros)
    reopen(invoice_id=payment.invoice_id, amount_micros=amount_micros)
