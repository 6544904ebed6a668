"""Our payments and refunds as their provider is told of them: the same words each time."""

from __future__ import annotations

import uuid

from django.conf import settings

from billing.models import Payment, PaymentState, Refund
from billing.payments.base import PaymentRequest, RefundRequest

# On the provider's page and on the customer's bank statement; the same in every language, as the request must be.
DESCRIPTION = "VoicePool credit"


def return_url(payment_id: uuid.UUID) -> str:
    """Where a customer comes back to from the provider's page."""
    return f"{settings.BASE_URL}/billing/payments/{payment_id}/"


def request_of(payment: Payment) -> PaymentRequest:
    """The payment, to be sent to its provider. Nothing in it changes from one call to the next but the reference."""
    return PaymentRequest(
        payment_id=payment.pk,
        workspace_id=payment.workspace_id,
        amount_micros=payment.amount_micros,
        currency=payment.currency,
        description=DESCRIPTION,
        created_at=payment.created_at,
        return_url=return_url(payment.pk),
        reference=payment.provider_reference,
        customer=payment.method.provider_customer if payment.method else "",
        method=payment.method.provider_reference if payment.method else "",
        saves_method=payment.saves_method,
    )


def refund_request_of(refund: Refund) -> RefundRequest:
    return RefundRequest(
        refund_id=refund.pk,
        payment_id=refund.payment_id,
        payment_reference=refund.payment.provider_reference,
        amount_micros=refund.amount_micros,
        currency=refund.payment.currency,
        created_at=refund.created_at,
        reference=refund.provider_reference,
        is_repeated=refund.state == PaymentState.UNKNOWN,
    )
