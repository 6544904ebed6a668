"""Money that an operator saw arrive: on the bank's statement, or in their hand."""

from __future__ import annotations

from typing import NoReturn

from django.utils.translation import gettext_lazy as _

from billing.errors import PaymentProviderUnknown
from billing.payments.base import (
    PaymentProvider,
    PaymentReport,
    PaymentRequest,
    RefundReport,
    RefundRequest,
    ReportState,
)


class _Recorded(PaymentProvider):
    is_recorded = True

    def begin(self, request: PaymentRequest) -> NoReturn:
        raise PaymentProviderUnknown

    def ask(self, request: PaymentRequest) -> PaymentReport:
        return PaymentReport(ReportState.PENDING)

    def withdraw(self, request: PaymentRequest) -> PaymentReport:
        return PaymentReport(ReportState.EXPIRED)

    def refund(self, request: RefundRequest) -> RefundReport:
        """The operator pays it back by hand; what is written down here is that they did."""
        return RefundReport(ReportState.SUCCEEDED)


class BankTransfer(_Recorded):
    name = "bank_transfer"
    title = _("Bank transfer")


class Cash(_Recorded):
    name = "cash"
    title = _("Cash")
