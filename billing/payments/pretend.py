"""The provider with which a newcomer tries everything: a page of our own, and no money moves.

Only the embedded stack has it (settings.PAYMENTS["TEST_PROVIDER"]).
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from billing.payments.base import (
    PaymentProvider,
    PaymentReport,
    PaymentRequest,
    RefundReport,
    RefundRequest,
    ReportState,
    SavedMethod,
)


class PretendProvider(PaymentProvider):
    name = "test"
    title = _("Test payment: no money moves")
    is_test = True
    saves_methods = True

    def begin(self, request: PaymentRequest) -> PaymentReport:
        if request.method:
            return self.paid(request)
        return PaymentReport(
            ReportState.PENDING,
            pay_url=f"{settings.BASE_URL}/billing/test-payment/{request.payment_id}/",
        )

    def paid(self, request: PaymentRequest) -> PaymentReport:
        """What it says once somebody has pressed “succeed”."""
        return PaymentReport(
            ReportState.SUCCEEDED,
            reference=f"test_{request.payment_id}",
            amount_micros=request.amount_micros,
            currency=request.currency,
            method=self.new_method() if request.saves_method else None,
        )

    def new_method(self) -> SavedMethod:
        """A card that nobody has."""
        return SavedMethod(customer="test", reference=f"test_{uuid.uuid4()}", label="Test •••• 0000")

    def ask(self, request: PaymentRequest) -> PaymentReport:
        # Nobody but the page knows, and it tells at once. A charge to a saved method succeeds whenever it is asked for.
        return self.begin(request)

    def withdraw(self, request: PaymentRequest) -> PaymentReport:
        return PaymentReport(ReportState.EXPIRED)

    def refund(self, request: RefundRequest) -> RefundReport:
        return RefundReport(ReportState.SUCCEEDED, reference=f"test_{request.refund_id}")

    def begin_saving(self, workspace_id: uuid.UUID, customer: str, return_url: str) -> str:
        return f"{settings.BASE_URL}/billing/test-method/"
