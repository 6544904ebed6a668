"""Alipay's page pay, by python-alipay-sdk with RSA2: pay, notify, query, close, refund.

Alipay knows a payment by our id (`out_trade_no`) and a refund by its own (`out_request_no`), so all that is asked for
twice is done once. A trade exists there only from when the customer has opened it on their phone.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

from alipay import AliPay
from alipay.exceptions import AliPayException, AliPayValidationError
from alipay.utils import AliPayConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from billing.amounts import amount_from_text
from billing.errors import AmountInvalid, AmountTooPrecise, PaymentProviderUnknown, WebhookRefused
from billing.payments.base import (
    Finding,
    IncomingEvent,
    PaymentFinding,
    PaymentProvider,
    PaymentReport,
    PaymentRequest,
    ProviderRefused,
    ProviderUnreachable,
    RefundReport,
    RefundRequest,
    ReportState,
)
from portal.lib.clock import now
from portal.lib.money import micros_as_decimal

# Alipay's clock.
ZONE: Final = ZoneInfo("Asia/Shanghai")
TIME: Final = "%Y-%m-%d %H:%M:%S"
PAGE_OPEN: Final = timedelta(hours=2)
# It repeats a message for 25 hours. Older ones are replays; newer ones are told apart by their id.
MESSAGES_REPEATED: Final = timedelta(hours=26)
# The answer's code: done; refused for a reason of the trade; all else is no answer.
DONE: Final = "10000"
REFUSED: Final = "40004"
NOT_THERE: Final = "ACQ.TRADE_NOT_EXIST"
# Refusals that say: ask again.
UNSURE: Final = frozenset({"ACQ.SYSTEM_ERROR", "aop.ACQ.SYSTEM_ERROR"})


def _yuan(amount_micros: int) -> str:
    return f"{micros_as_decimal(amount_micros):.2f}"


class AlipayProvider(PaymentProvider):
    name = "alipay"
    title = _("Alipay")
    currencies = frozenset({"CNY"})
    acknowledgement = "success"

    def __init__(self) -> None:
        keys = settings.PAYMENTS
        if not (keys["ALIPAY_APP_ID"] and keys["ALIPAY_PRIVATE_KEY"] and keys["ALIPAY_PUBLIC_KEY"]):
            raise PaymentProviderUnknown
        self._client = AliPay(
            appid=keys["ALIPAY_APP_ID"],
            app_private_key_string=keys["ALIPAY_PRIVATE_KEY"],
            alipay_public_key_string=keys["ALIPAY_PUBLIC_KEY"],
            sign_type="RSA2",
            config=AliPayConfig(timeout=keys["TIMEOUT_S"]),
        )
        # The library knows two addresses, and takes no other by its arguments.
        self._client._gateway = keys["ALIPAY_GATEWAY"]

    def begin(self, request: PaymentRequest) -> PaymentReport:
        """The page's address, signed by us: Alipay is not asked for it, so the same is made again each time."""
        signed = self._client.client_api(
            "alipay.trade.page.pay",
            {
                "out_trade_no": str(request.payment_id),
                "total_amount": _yuan(request.amount_micros),
                "subject": request.description,
                "product_code": "FAST_INSTANT_TRADE_PAY",
                "time_expire": (request.created_at + PAGE_OPEN).astimezone(ZONE).strftime(TIME),
            },
            timestamp=_timestamp(),
            return_url=request.return_url,
            notify_url=f"{settings.BASE_URL}/billing/webhooks/alipay",
        )
        return PaymentReport(
            ReportState.PENDING,
            reference=str(request.payment_id),
            pay_url=f"{settings.PAYMENTS['ALIPAY_GATEWAY']}?{signed}",
        )

    def ask(self, request: PaymentRequest) -> PaymentReport:
        report = self._query(request.payment_id)
        # Known to nobody but us: the customer has not opened it yet, or we had not even made its address.
        return self.begin(request) if report is None else report

    def _query(self, payment_id: uuid.UUID) -> PaymentReport | None:
        """How the trade stands; None where Alipay does not know it."""
        try:
            trade = self._call("alipay.trade.query", {"out_trade_no": str(payment_id)})
        except ProviderRefused as refusal:
            if refusal.code == NOT_THERE:
                return None
            # A question that is refused says nothing about the money.
            raise ProviderUnreachable(refusal.code) from refusal
        return _report(trade)

    def withdraw(self, request: PaymentRequest) -> PaymentReport:
        try:
            self._call("alipay.trade.close", {"out_trade_no": str(request.payment_id)})
        except ProviderRefused:
            # Unknown there, closed already, or just paid: the trade itself says which.
            return self._query(request.payment_id) or PaymentReport(ReportState.EXPIRED)
        return PaymentReport(ReportState.EXPIRED)

    def refund(self, request: RefundRequest) -> RefundReport:
        names = {"out_trade_no": str(request.payment_id), "out_request_no": str(request.refund_id)}
        answer = self._call("alipay.trade.refund", {**names, "refund_amount": _yuan(request.amount_micros)})
        if answer.get("fund_change") != "Y":
            # Nothing moved by this request: it was done by one before, or is on its way.
            try:
                answer = self._call("alipay.trade.fastpay.refund.query", names)
            except ProviderRefused as refusal:
                # A question that is refused says nothing about the money.
                raise ProviderUnreachable(refusal.code) from refusal
            if answer.get("refund_status") != "REFUND_SUCCESS":
                return RefundReport(ReportState.PENDING, reference=str(request.refund_id))
        return RefundReport(ReportState.SUCCEEDED, reference=str(request.refund_id))

    def read_event(self, body: bytes, headers: Mapping[str, str]) -> IncomingEvent:
        try:
            pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, strict_parsing=True)
            fields = dict(pairs)
            if len(fields) != len(pairs):
                raise WebhookRefused
            event = IncomingEvent(
                event_id=fields["notify_id"][:200],
                kind=fields.get("trade_status", "")[:100],
                subject=fields["out_trade_no"][:200],
            )
            sent_at = datetime.strptime(fields["notify_time"], TIME).replace(tzinfo=ZONE)
            is_ours = fields["app_id"] == settings.PAYMENTS["ALIPAY_APP_ID"]
            signature = fields.pop("sign")
            if fields.get("sign_type") != "RSA2" or not self._client.verify(fields, signature):
                raise WebhookRefused
        except (ValueError, KeyError) as error:
            raise WebhookRefused from error
        if not is_ours or not event.event_id or now() - sent_at.astimezone(UTC) > MESSAGES_REPEATED:
            raise WebhookRefused
        return event

    def look_at(self, kind: str, subject: str) -> Finding | None:
        try:
            payment_id = uuid.UUID(subject)
        except ValueError:
            return None
        report = self._query(payment_id)
        return None if report is None else PaymentFinding(payment_id, report)

    def _call(self, method: str, content: dict[str, str]) -> dict[str, Any]:
        """Alipay's answer, its signature checked."""
        try:
            answer: dict[str, Any] = self._client.server_api(method, content, timestamp=_timestamp())
        except (
            AliPayValidationError,
            AliPayException,
            OSError,
            ValueError,
            KeyError,
            AttributeError,
        ) as error:
            # Not signed, not readable, or nothing at all. Its own text may hold what was sent.
            raise ProviderUnreachable(type(error).__name__) from None
        code, reason = str(answer.get("code")), str(answer.get("sub_code") or "")
        if code == DONE:
            return answer
        if code == REFUSED and reason not in UNSURE:
            raise ProviderRefused(reason[:60] or "refused")
        raise ProviderUnreachable(reason or code)


def _timestamp() -> str:
    return now().astimezone(ZONE).strftime(TIME)


def _report(trade: dict[str, Any]) -> PaymentReport:
    status = trade.get("trade_status")
    reference = str(trade.get("out_trade_no", ""))
    if status in ("TRADE_SUCCESS", "TRADE_FINISHED"):
        try:
            amount_micros = amount_from_text(str(Decimal(str(trade.get("total_amount")))), "CNY")
        except (ArithmeticError, AmountInvalid, AmountTooPrecise) as error:
            raise ProviderUnreachable("amount_unreadable") from error
        return PaymentReport(
            ReportState.SUCCEEDED, reference=reference, amount_micros=amount_micros, currency="CNY"
        )
    if status == "TRADE_CLOSED":
        return PaymentReport(ReportState.EXPIRED, reference=reference)
    return PaymentReport(ReportState.PENDING, reference=reference)
