"""Booking what a provider says about a payment: once, whoever says it, in any order and as often as they like."""

from __future__ import annotations

import logging
import uuid

from django.db import transaction
from django.db.models.functions import Now

from accounts.services.webhook_events import note_fact
from accounts.webhooks.catalogue import PAYMENT_FAILED, PAYMENT_SUCCEEDED
from billing.models import (
    GrantKind,
    Payment,
    PaymentPurpose,
    PaymentState,
)
from billing.payments.base import PaymentReport, ReportState
from billing.services import automatic_top_up, grants, holds, ledger, payment_methods
from billing.services.invoice_paying import paying

logger = logging.getLogger(__name__)
OPEN = (PaymentState.CREATED, PaymentState.UNKNOWN)
# The provider says another amount than was asked for. A person has to look; nothing is booked.
MISMATCH = "amount_mismatch"


def apply_report(*, payment_id: uuid.UUID, report: PaymentReport) -> bool:
    """Book what the provider says. True when it changed the payment's state.

    Money that arrives late is booked also when the payment was given up. Locks the credit account, then the payment.
    """
    if report.state is ReportState.SUCCEEDED:
        return _succeed(payment_id, report)
    if report.state is ReportState.PENDING:
        return _go_on(payment_id, report)
    state = PaymentState.FAILED if report.state is ReportState.FAILED else PaymentState.EXPIRED
    return give_up(payment_id=payment_id, state=state, failure_code=report.failure_code)


def _go_on(payment_id: uuid.UUID, report: PaymentReport) -> bool:
    """The provider knows it, and has no money yet."""
    if report.reference:
        Payment.objects.filter(pk=payment_id, state__in=OPEN, provider_reference="").update(
            provider_reference=report.reference
        )
    if report.pay_url:
        Payment.objects.filter(pk=payment_id, state__in=OPEN).update(pay_url=report.pay_url)
    return bool(
        Payment.objects.filter(pk=payment_id, state=PaymentState.UNKNOWN).update(state=PaymentState.CREATED)
    )


def give_up(*, payment_id: uuid.UUID, state: PaymentState, failure_code: str = "") -> bool:
    """End a payment without money: FAILED or EXPIRED. False, and nothing changed, when it was over before."""
    with transaction.atomic():
        ended = Payment.objects.filter(pk=payment_id, state__in=OPEN).update(
            state=state, failure_code=failure_code, settled_at=Now()
        )
        if not ended:
            return False
        payment = Payment.objects.get(pk=payment_id)
        if payment.purpose == PaymentPurpose.AUTOMATIC_TOP_UP:
            automatic_top_up.note_failure(payment=payment)
        _tell_programs(PAYMENT_FAILED, payment)
    logger.info("payment_not_made", extra={"payment": payment_id, "state": state, "reason": failure_code})
    return True


def mark_unknown(*, payment_id: uuid.UUID, reason: str) -> None:
    """The provider was asked, and it is not known what it did."""
    Payment.objects.filter(pk=payment_id, state__in=OPEN).update(
        state=PaymentState.UNKNOWN, failure_code=reason[:60]
    )


def _succeed(payment_id: uuid.UUID, report: PaymentReport) -> bool:
    payment = Payment.objects.get(pk=payment_id)
    if (report.amount_micros, report.currency) != (payment.amount_micros, payment.currency):
        logger.error("payment_amount_mismatch", extra={"payment": payment_id})
        mark_unknown(payment_id=payment_id, reason=MISMATCH)
        return False
    # Together: nobody asks again about a payment that is booked, so its card would be lost.
    with transaction.atomic():
        settled = settle(payment=payment, reference=report.reference)
        if report.method is not None:
            payment_methods.store_method(
                workspace_id=payment.workspace_id, provider_name=payment.provider, method=report.method
            )
    return settled


@transaction.atomic
def settle(*, payment: Payment, reference: str) -> bool:
    """Book the payment's credit and its state together; False, and nothing changed, when it was booked before.

    Locks the credit account, then the payment.
    """
    ledger.ensure_account(workspace_id=payment.workspace_id)
    holds.lock_account(workspace_id=payment.workspace_id)
    # Whoever came first has committed both by the time that the account's lock is ours.
    if Payment.objects.filter(pk=payment.pk, state=PaymentState.SUCCEEDED).exists():
        return False
    # Its own invoice before older ones; what is paid beyond what is owed is credit.
    with paying(payment.invoice_id):
        grant_id = grants.grant(
            workspace_id=payment.workspace_id,
            amount_micros=payment.amount_micros,
            idempotency_key=f"payment:{payment.pk}",
            kind=GrantKind.PAID,
        )
    if grant_id is None:
        raise RuntimeError("a payment's credit was booked without the payment")
    booked = (
        Payment.objects.filter(pk=payment.pk)
        .exclude(state=PaymentState.SUCCEEDED)
        .update(
            state=PaymentState.SUCCEEDED,
            grant_id=grant_id,
            provider_reference=reference or payment.provider_reference,
            failure_code="",
            settled_at=Now(),
        )
    )
    if booked != 1:
        raise RuntimeError("a payment was booked beside its account's lock")
    _tell_programs(PAYMENT_SUCCEEDED, Payment.objects.get(pk=payment.pk))
    if payment.purpose == PaymentPurpose.AUTOMATIC_TOP_UP:
        automatic_top_up.note_success(workspace_id=payment.workspace_id)
    logger.info("payment_booked", extra={"payment": payment.pk, "workspace": payment.workspace_id})
    return True


def _tell_programs(event_type: str, payment: Payment) -> None:
    note_fact(
        workspace_id=payment.workspace_id,
        event_type=event_type,
        subject=payment.pk,
        data={
            "payment_id": str(payment.pk),
            "state": payment.state,
            "purpose": payment.purpose,
            "provider": payment.provider,
            "currency": payment.currency,
            "amount_micros": payment.amount_micros,
            "invoice_id": str(payment.invoice_id) if payment.invoice_id else None,
            "failure_code": payment.failure_code,
        },
    )
