"""Asking providers how payments and refunds stand that have no end yet: lost answers, lost messages, lost customers."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from typing import Final

from django.db import connection
from django.db.models.functions import Now

from billing.errors import PaymentProviderUnknown
from billing.models import Payment, PaymentState
from billing.payments import registry
from billing.payments.base import (
    PaymentProvider,
    PaymentReport,
    ProviderRefused,
    ProviderUnreachable,
    ReportState,
)
from billing.services import payment_settlement, payments
from billing.services.automatic_top_up import claim, due_workspaces
from billing.services.payment_requests import request_of
from portal.lib.clock import database_now

logger = logging.getLogger(__name__)
# After so long a page that nobody paid on is given up; the providers close theirs some minutes before.
EXPIRES_AFTER: Final = timedelta(hours=2, minutes=10)
# One round waits for so many providers at most.
AT_ONCE: Final = 20
# A customer who came back from the provider's page, and reloads ours.
ASKED_AGAIN_AFTER: Final = timedelta(seconds=2)

# Payments whose turn it is, marked as asked now: a fifth of their age after the last time, at least as long as a call
# to the provider takes (15 s) and at most an hour. Two clocks never take the same.
_CLAIM: Final = """
UPDATE billing_payment SET asked_at = clock_timestamp()
WHERE id IN (
    SELECT id FROM billing_payment
    WHERE state IN ('created', 'unknown')
        AND COALESCE(asked_at, created_at) < clock_timestamp() - LEAST(
            GREATEST((clock_timestamp() - created_at) / 5, interval '15 seconds'), interval '1 hour')
    ORDER BY asked_at NULLS FIRST LIMIT %s
    FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


def ask_open_payments() -> int:
    """Ask about payments whose turn it is, and book what is said; returns about how many. Ends those out of time."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [AT_ONCE])
        ids = [row[0] for row in cursor.fetchall()]
    for payment in Payment.objects.filter(pk__in=ids).select_related("method"):
        try:
            _ask(payment)
        except Exception:
            # One payment that breaks something must not keep the others from being asked about.
            logger.exception("payment_failed_to_be_asked_about", extra={"payment": payment.pk})
    return len(ids)


def refresh_payment(*, payment_id: uuid.UUID) -> Payment:
    """Ask about a payment now, as when its customer comes back from the provider's page, and return it.

    At most every two seconds. An end is an end: nobody is asked about it.
    """
    asked_before = database_now() - ASKED_AGAIN_AFTER
    open_now = Payment.objects.filter(pk=payment_id, state__in=payment_settlement.OPEN)
    if open_now.exclude(asked_at__gt=asked_before).update(asked_at=Now()):
        _ask(Payment.objects.select_related("method").get(pk=payment_id))
    return Payment.objects.get(pk=payment_id)


def _ask(payment: Payment) -> None:
    try:
        provider = registry.provider(payment.provider)
        report = _report(payment, provider)
    except PaymentProviderUnknown:
        logger.warning("provider_not_set_up", extra={"payment": payment.pk, "provider": payment.provider})
    except ProviderUnreachable as error:
        logger.warning("provider_unreachable", extra={"payment": payment.pk, "reason": error.code})
        if _is_late(payment) and not payment.pay_url:
            # Nobody was ever given its page, so nobody can have paid on it, whatever the provider would say.
            payment_settlement.give_up(
                payment_id=payment.pk, state=PaymentState.EXPIRED, failure_code=error.code
            )
        else:
            payment_settlement.mark_unknown(payment_id=payment.pk, reason=error.code)
    except ProviderRefused as error:
        payment_settlement.give_up(payment_id=payment.pk, state=PaymentState.FAILED, failure_code=error.code)
    else:
        payment_settlement.apply_report(payment_id=payment.pk, report=report)


def _report(payment: Payment, provider: PaymentProvider) -> PaymentReport:
    """How the payment stands. One that has waited for its customer for too long is withdrawn."""
    request = request_of(payment)
    report = provider.ask(request)
    if report.state is ReportState.PENDING and _is_late(payment):
        return provider.withdraw(request)
    return report


def _is_late(payment: Payment) -> bool:
    """Whether its customer's time is over. What is charged without one has no page: the provider says how it ended."""
    return payment.method_id is None and database_now() - payment.created_at > EXPIRES_AFTER


def run_automatic_top_ups() -> int:
    """Begin the automatic top-ups that are due, and return how many."""
    begun = 0
    for workspace_id in due_workspaces():
        try:
            begun += _top_up(workspace_id)
        except Exception:
            # One workspace that breaks something must not keep the others from being topped up.
            logger.exception("automatic_top_up_failed", extra={"workspace": workspace_id})
    return begun


def _top_up(workspace_id: uuid.UUID) -> bool:
    """Whether there was one to begin."""
    payment = claim(workspace_id=workspace_id)
    if payment is None:
        return False
    try:
        payments.send(payment=payment, provider=registry.provider(payment.provider))
    except PaymentProviderUnknown:
        payment_settlement.give_up(
            payment_id=payment.pk, state=PaymentState.FAILED, failure_code="provider_not_set_up"
        )
    return True
