"""The embedded stack's test payments: what its page's two buttons do. No money moves."""

from __future__ import annotations

import uuid

from billing.errors import PaymentProviderUnknown
from billing.models import Payment, PaymentMethod
from billing.payments import registry
from billing.payments.base import PaymentReport, ReportState
from billing.payments.pretend import PretendProvider
from billing.services import payment_methods, payment_settlement
from billing.services.payment_requests import request_of
from portal.lib.errors import NotFound


def _provider() -> PretendProvider:
    provider = registry.provider(PretendProvider.name)
    if not isinstance(provider, PretendProvider):
        raise PaymentProviderUnknown
    return provider


def decide_test_payment(*, workspace_id: uuid.UUID, payment_id: uuid.UUID, succeeds: bool) -> Payment:
    """End a test payment as its page's button says, and return it. One that has an end keeps it.

    Raises:
        PaymentProviderUnknown: there are no test payments here.
        NotFound: it is no test payment of this workspace's.
    """
    provider = _provider()
    payment = Payment.objects.filter(pk=payment_id, workspace_id=workspace_id, provider=provider.name).first()
    if payment is None:
        raise NotFound
    if payment.state in payment_settlement.OPEN:
        report = provider.paid(request_of(payment))
        if not succeeds:
            report = PaymentReport(ReportState.FAILED, failure_code="declined")
        payment_settlement.apply_report(payment_id=payment.pk, report=report)
    payment.refresh_from_db()
    return payment


def save_test_method(*, workspace_id: uuid.UUID) -> PaymentMethod:
    """Save a card that nobody has. Raises PaymentProviderUnknown."""
    provider = _provider()
    return payment_methods.store_method(
        workspace_id=workspace_id, provider_name=provider.name, method=provider.new_method()
    )
