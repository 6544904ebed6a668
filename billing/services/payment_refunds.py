"""Paying a payment back, in whole or in part: never more than was paid and is left of its credit.

The credit is taken out before the provider is asked, so that nobody can spend it meanwhile, and put back when the
provider could not pay it out.
"""

from __future__ import annotations

import logging
import uuid
from typing import Final

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from billing.amounts import coins_of
from billing.errors import (
    AmountInvalid,
    AmountNotPositive,
    IdempotencyKeyReused,
    PaymentNotRefundable,
    PaymentProviderUnknown,
    RefundExceedsPayment,
)
from billing.models import CreditAccount, CreditGrant, Payment, PaymentState, Refund, TransactionKind
from billing.payments import registry
from billing.payments.base import ProviderRefused, ProviderUnreachable, RefundReport, ReportState
from billing.services import grants, holds, ledger
from billing.services.invoice_paying import reopen
from billing.services.payment_requests import refund_request_of
from portal.lib.clock import now
from portal.lib.display import money_exact

logger = logging.getLogger(__name__)
OPEN = (PaymentState.CREATED, PaymentState.UNKNOWN)
AT_ONCE: Final = 20
# As payments are (billing.services.payment_asking).
_CLAIM: Final = """
UPDATE billing_refund SET asked_at = clock_timestamp()
WHERE id IN (
    SELECT id FROM billing_refund
    WHERE state IN ('created', 'unknown')
        AND COALESCE(asked_at, created_at) < clock_timestamp() - LEAST(
            GREATEST((clock_timestamp() - created_at) / 5, interval '15 seconds'), interval '1 hour')
    ORDER BY asked_at NULLS FIRST LIMIT %s
    FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


def refundable_micros(payment: Payment) -> int:
    """How much of the payment can be refunded now."""
    if payment.state != PaymentState.SUCCEEDED or payment.grant_id is None:
        return 0
    left = payment.amount_micros - payment.refunded_micros - payment.disputed_micros
    remaining = CreditGrant.objects.values_list("remaining_micros", flat=True).get(pk=payment.grant_id)
    available = CreditAccount.objects.values_list("available_micros", flat=True).get(pk=payment.workspace_id)
    return max(0, min(left, remaining, available))


def refund_payment(
    *,
    payment_id: uuid.UUID,
    amount_micros: int,
    reason: str,
    idempotency_key: str,
    requested_by_id: uuid.UUID | None,
) -> Refund:
    """Take the credit out and have the provider pay it back; returns the refund as it is then.

    The same key gives the same refund. `state` is UNKNOWN where the provider did not answer (the clock asks again with
    the same id), FAILED where it refused, with the credit back in its place. Call outside of a transaction.

    Raises:
        PaymentNotRefundable: it did not arrive.
        RefundExceedsPayment: more than was paid and not given back, or than is left of its credit.
        AmountInvalid, AmountNotPositive, AmountTooPrecise, IdempotencyKeyReused
    """
    refund = book_refund(
        payment_id=payment_id,
        amount_micros=amount_micros,
        reason=reason,
        idempotency_key=idempotency_key,
        requested_by_id=requested_by_id,
    )
    return send_refund(refund)


def book_refund(
    *,
    payment_id: uuid.UUID,
    amount_micros: int,
    reason: str,
    idempotency_key: str,
    requested_by_id: uuid.UUID | None,
) -> Refund:
    """The first half of `refund_payment`, for who has more to write down with it: take the credit out, and return the
    refund. Then, outside of the transaction, `send_refund`; the clock does it where that is never come to.

    Raises: as `refund_payment`.
    """
    if type(amount_micros) is not int:
        raise AmountInvalid
    if amount_micros <= 0:
        raise AmountNotPositive
    return _book(
        Refund(
            payment=Payment.objects.get(pk=payment_id),
            amount_micros=amount_micros,
            reason=reason,
            idempotency_key=f"{payment_id}:{idempotency_key}",
            requested_by_id=requested_by_id,
        ),
        may_owe=False,
    )


def send_refund(refund: Refund) -> Refund:
    """Have the provider pay out what was booked; returns the refund as it is then. Call outside of a transaction."""
    if refund.state == PaymentState.CREATED:
        _send(refund)
        refund.refresh_from_db()
    return refund


def refund_of_key(*, payment_id: uuid.UUID, idempotency_key: str) -> Refund | None:
    """The refund that was booked under this key."""
    return (
        Refund.objects.select_related("payment")
        .filter(payment_id=payment_id, idempotency_key=f"{payment_id}:{idempotency_key}")
        .first()
    )


@transaction.atomic
def _book(refund: Refund, *, may_owe: bool) -> Refund:
    """Store the refund and take its credit out; or the refund of this key. Locks the account, then the payment."""
    holds.lock_account(workspace_id=refund.payment.workspace_id)
    payment = Payment.objects.select_for_update(no_key=True).get(pk=refund.payment_id)
    first = Refund.objects.filter(idempotency_key=refund.idempotency_key).first()
    if first is not None:
        if (first.payment_id, first.amount_micros) != (refund.payment_id, refund.amount_micros):
            raise IdempotencyKeyReused
        return first
    if payment.state != PaymentState.SUCCEEDED or payment.grant_id is None:
        raise PaymentNotRefundable
    coins_of(refund.amount_micros, payment.currency)
    most = refundable_micros(payment)
    if may_owe:
        most = payment.amount_micros - payment.refunded_micros
    if refund.amount_micros > most:
        raise RefundExceedsPayment(most=money_exact(most, payment.currency))
    refund.save(force_insert=True)
    grants.take_back(
        grant_id=payment.grant_id,
        amount_micros=refund.amount_micros,
        kind=TransactionKind.PAYOUT,
        idempotency_key=f"payout:{refund.pk}",
        may_owe=may_owe,
        reason=refund.reason,
    )
    _move(payment, refund.amount_micros)
    return refund


def _move(payment: Payment, amount_micros: int) -> None:
    Payment.objects.filter(pk=payment.pk).update(refunded_micros=F("refunded_micros") + amount_micros)
    reopen(invoice_id=payment.invoice_id, amount_micros=amount_micros)


def _send(refund: Refund) -> None:
    Refund.objects.filter(pk=refund.pk).update(asked_at=Now())
    try:
        report = registry.provider(refund.payment.provider).refund(refund_request_of(refund))
    except ProviderUnreachable as error:
        logger.warning("provider_unreachable", extra={"refund": refund.pk, "reason": error.code})
        Refund.objects.filter(pk=refund.pk, state__in=OPEN).update(
            state=PaymentState.UNKNOWN, failure_code=error.code[:60]
        )
    except PaymentProviderUnknown:
        logger.warning("provider_not_set_up", extra={"refund": refund.pk})
    except ProviderRefused as error:
        apply_refund_report(
            refund_id=refund.pk, report=RefundReport(ReportState.FAILED, failure_code=error.code)
        )
    else:
        apply_refund_report(refund_id=refund.pk, report=report)


def apply_refund_report(*, refund_id: uuid.UUID, report: RefundReport) -> bool:
    """Book what the provider says about a refund, once; True when it changed its state.

    A refund that was paid out can still bounce; one that failed stays failed. Locks the credit account.
    """
    known = Refund.objects.filter(pk=refund_id)
    if report.reference:
        known.filter(provider_reference="").update(provider_reference=report.reference)
    if report.state is ReportState.PENDING:
        return bool(known.filter(state=PaymentState.UNKNOWN).update(state=PaymentState.CREATED))
    if report.state is ReportState.SUCCEEDED:
        return bool(
            known.filter(state__in=OPEN).update(
                state=PaymentState.SUCCEEDED, failure_code="", settled_at=Now()
            )
        )
    return _put_back(refund_id, report.failure_code)


@transaction.atomic
def _put_back(refund_id: uuid.UUID, failure_code: str) -> bool:
    refund = Refund.objects.select_related("payment").get(pk=refund_id)
    payment = refund.payment
    holds.lock_account(workspace_id=payment.workspace_id)
    failed = Refund.objects.filter(pk=refund_id).exclude(state=PaymentState.FAILED)
    if not failed.update(state=PaymentState.FAILED, failure_code=failure_code, settled_at=Now()):
        return False
    ledger.call(
        "billing_put_back(%s, %s, %s, %s, %s)",
        [
            payment.grant_id,
            refund.amount_micros,
            TransactionKind.PAYOUT.value,
            f"payout-failed:{refund.pk}",
            refund.reason,
        ],
    )
    _move(payment, -refund.amount_micros)
    logger.warning("refund_failed", extra={"refund": refund_id, "reason": failure_code})
    return True


def record_refund_made_there(*, payment_id: uuid.UUID, report: RefundReport) -> bool:
    """Book a refund that somebody made at the provider, without us: the money is gone, whatever was spent of it.

    True when it was new. What the payment no longer holds is not booked twice.
    """
    if report.state is not ReportState.SUCCEEDED:
        return False
    refund = Refund(
        payment=Payment.objects.get(pk=payment_id),
        state=PaymentState.SUCCEEDED,
        amount_micros=report.amount_micros,
        reason="",
        idempotency_key=f"{payment_id}:there:{report.reference}"[:120],
        provider_reference=report.reference,
        settled_at=now(),
    )
    try:
        booked = _book(refund, may_owe=True)
    except RefundExceedsPayment:
        logger.exception("refund_larger_than_payment", extra={"payment": payment_id})
        return False
    return booked.pk == refund.pk


def ask_open_refunds() -> int:
    """Ask about refunds that have no end yet, and book what is said; returns about how many."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [AT_ONCE])
        ids = [row[0] for row in cursor.fetchall()]
    for refund in Refund.objects.filter(pk__in=ids).select_related("payment"):
        try:
            _send(refund)
        except Exception:
            # One refund that breaks something must not keep the others from being asked about.
            logger.exception("refund_failed_to_be_asked_about", extra={"refund": refund.pk})
    return len(ids)
