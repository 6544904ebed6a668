"""The inbox of what providers tell us: stored before it is understood, worked on as often as it takes."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db import connection
from django.db.models.functions import Now

from billing.errors import PaymentNotRefundable, PaymentProviderUnknown
from billing.models import Payment, ProviderEvent, Refund
from billing.payments import registry
from billing.payments.base import (
    DisputeFinding,
    Finding,
    IncomingEvent,
    MethodFinding,
    PaymentFinding,
    ProviderRefused,
    ProviderUnreachable,
    RefundFinding,
)
from billing.services import disputes, payment_asking, payment_methods, payment_refunds, payment_settlement
from portal.lib.clock import database_now

logger = logging.getLogger(__name__)
AT_ONCE: Final = 20
# What could not be worked on for so long is put aside, with its error, for a person to look at.
GIVEN_UP_AFTER: Final = timedelta(days=3)
FIRST_DELAY_S: Final = 2
LAST_DELAY_S: Final = 3600
# Taken for a minute: whoever dies with it lets it go by itself. Two clocks never take the same.
_CLAIM: Final = """
UPDATE billing_providerevent SET tries = tries + 1, next_try_at = clock_timestamp() + interval '1 minute'
WHERE id IN (
    SELECT id FROM billing_providerevent
    WHERE processed_at IS NULL AND (next_try_at IS NULL OR next_try_at <= clock_timestamp())
    ORDER BY received_at LIMIT %s
    FOR UPDATE SKIP LOCKED
)
RETURNING id
"""


def store_event(*, provider_name: str, event: IncomingEvent) -> None:
    """Put a message into the inbox. One that is there already changes nothing."""
    ProviderEvent.objects.bulk_create(
        [
            ProviderEvent(
                provider=provider_name, event_id=event.event_id, kind=event.kind, subject=event.subject
            )
        ],
        ignore_conflicts=True,
    )


def work_inbox() -> int:
    """Work on messages whose turn it is, and return about how many there were. For the clock, every second."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [AT_ONCE])
        ids = [row[0] for row in cursor.fetchall()]
    for event in ProviderEvent.objects.filter(pk__in=ids).order_by("received_at"):
        _work_on(event)
    return len(ids)


def _work_on(event: ProviderEvent) -> None:
    try:
        finding = registry.provider(event.provider).look_at(event.kind, event.subject)
        outcome = "" if finding is not None and _apply(event.provider, finding) else "not_ours"
    except (ProviderUnreachable, ProviderRefused) as error:
        _later(event, error.code)
    except PaymentProviderUnknown:
        _later(event, "provider_not_set_up")
    except PaymentNotRefundable:
        # It came before the payment that it is about was booked.
        _later(event, "payment_not_booked")
    except Exception:
        # One message that breaks something must not keep the others from being worked on.
        logger.exception("provider_event_failed", extra={"event": event.pk, "kind": event.kind})
        _later(event, "internal_error")
    else:
        ProviderEvent.objects.filter(pk=event.pk).update(processed_at=Now(), error_code=outcome)


def _later(event: ProviderEvent, reason: str) -> None:
    moment = database_now()
    mine = ProviderEvent.objects.filter(pk=event.pk, processed_at__isnull=True)
    if moment - event.received_at > GIVEN_UP_AFTER:
        logger.error("provider_event_given_up", extra={"event": event.pk, "reason": reason})
        mine.update(processed_at=moment, error_code=reason[:60])
        return
    delay = timedelta(seconds=min(LAST_DELAY_S, FIRST_DELAY_S * 2 ** min(event.tries, 12)))
    mine.update(next_try_at=moment + delay, error_code=reason[:60])


def _apply(provider_name: str, finding: Finding) -> bool:
    """Book what was found; False where it is about nothing of ours."""
    if isinstance(finding, MethodFinding):
        payment_methods.store_method(
            workspace_id=finding.workspace_id, provider_name=provider_name, method=finding.method
        )
        return True
    payment = Payment.objects.filter(pk=finding.payment_id, provider=provider_name).first()
    if payment is None:
        return False
    if isinstance(finding, PaymentFinding):
        payment_settlement.apply_report(payment_id=payment.pk, report=finding.report)
        return True
    if payment.state in payment_settlement.OPEN:
        # Its own message is late, or lost.
        payment_asking.refresh_payment(payment_id=payment.pk)
    if isinstance(finding, DisputeFinding):
        disputes.apply_dispute(payment_id=payment.pk, report=finding.report)
    else:
        _apply_refund(finding)
    return True


def _apply_refund(finding: RefundFinding) -> None:
    ours = Refund.objects.filter(payment_id=finding.payment_id)
    # One that was made there, without us, is known by its name there: it can still bounce.
    there = ours.filter(provider_reference=finding.report.reference).exclude(provider_reference="")
    refund = (ours.filter(pk=finding.refund_id).first() if finding.refund_id else None) or there.first()
    if refund is not None:
        payment_refunds.apply_refund_report(refund_id=refund.pk, report=finding.report)
    else:
        payment_refunds.record_refund_made_there(payment_id=finding.payment_id, report=finding.report)
