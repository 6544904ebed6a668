"""A double of Alipay's gateway, as far as it is used: signed requests and answers, trades, refunds, messages."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from Cryptodome.Hash import SHA256
from Cryptodome.PublicKey import RSA
from Cryptodome.Signature import PKCS1_v1_5
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.billing.fake_provider import FakeProvider

Fields = dict[str, Any]
APP_ID = "2021000000000000"
BEIJING = timedelta(hours=8)


@cache
def shop_key() -> RSA.RsaKey:
    """Ours; the double knows its public half."""
    return RSA.generate(2048)


@cache
def alipay_key() -> RSA.RsaKey:
    """The double's own."""
    return RSA.generate(2048)


def sign(text: str, key: RSA.RsaKey) -> str:
    return base64.b64encode(PKCS1_v1_5.new(key).sign(SHA256.new(text.encode()))).decode()


def signed_text(fields: Fields) -> str:
    return "&".join(f"{name}={value}" for name, value in sorted(fields.items()))


class FakeAlipay(FakeProvider):
    """Its trades are in `trades`, by our number for them."""

    def __init__(self, server: HTTPServer) -> None:
        super().__init__(server)
        self.trades: dict[str, Fields] = {}
        # By our number for the refund.
        self.refunds: dict[str, Fields] = {}

    @property
    def gateway(self) -> str:
        return f"{self.address}/gateway.do"

    def answer(self, request: Request) -> Response:
        fields = dict(request.args.items())
        method = fields["method"]
        self.calls[method] += 1
        content = json.loads(fields["biz_content"])
        if not self.is_signed_by_shop(fields):
            return Response(
                json.dumps({"error_response": {"code": "40002", "sub_code": "isv.invalid-signature"}})
            )
        routes = {
            "alipay.trade.query": self._query,
            "alipay.trade.close": self._close,
            "alipay.trade.refund": self._refund,
            "alipay.trade.fastpay.refund.query": self._query_refund,
        }
        body = json.dumps(routes[method](content), ensure_ascii=False)
        name = method.replace(".", "_") + "_response"
        return Response(f'{{"{name}":{body},"sign":"{sign(body, alipay_key())}"}}')

    def is_signed_by_shop(self, fields: Fields) -> bool:
        rest = dict(fields)
        signature = base64.b64decode(rest.pop("sign"))
        return bool(
            PKCS1_v1_5.new(shop_key().public_key()).verify(SHA256.new(signed_text(rest).encode()), signature)
        )

    def _query(self, content: Fields) -> Fields:
        trade = self.trades.get(content["out_trade_no"])
        return {"code": "10000", **trade} if trade else _refused("ACQ.TRADE_NOT_EXIST")

    def _close(self, content: Fields) -> Fields:
        trade = self.trades.get(content["out_trade_no"])
        if trade is None:
            return _refused("ACQ.TRADE_NOT_EXIST")
        if trade["trade_status"] != "WAIT_BUYER_PAY":
            return _refused("ACQ.REASON_TRADE_STATUS_INVALID")
        trade["trade_status"] = "TRADE_CLOSED"
        return {"code": "10000"}

    def _refund(self, content: Fields) -> Fields:
        trade = self.trades[content["out_trade_no"]]
        amount = Decimal(content["refund_amount"])
        if content["out_request_no"] in self.refunds:
            return {"code": "10000", "fund_change": "N"}
        back = sum(
            (r["amount"] for r in self.refunds.values() if r["trade"] == trade["out_trade_no"]), Decimal(0)
        )
        if back + amount > Decimal(trade["total_amount"]):
            return _refused("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL")
        self.refunds[content["out_request_no"]] = {"amount": amount, "trade": trade["out_trade_no"]}
        return {"code": "10000", "fund_change": "Y"}

    def _query_refund(self, content: Fields) -> Fields:
        known = content["out_request_no"] in self.refunds
        return {"code": "10000", "refund_status": "REFUND_SUCCESS"} if known else {"code": "10000"}

    # What happens there

    def customer_opens(self, pay_url: str) -> Fields:
        """The customer opens the page: from now on there is a trade."""
        fields = dict(parse_qsl(urlsplit(pay_url).query))
        assert self.is_signed_by_shop(fields)
        assert (fields["method"], fields["app_id"]) == ("alipay.trade.page.pay", APP_ID)
        content = json.loads(fields["biz_content"])
        trade = {
            "out_trade_no": content["out_trade_no"],
            "trade_no": f"20261130{uuid.uuid4().int % 10**20}",
            "total_amount": content["total_amount"],
            "trade_status": "WAIT_BUYER_PAY",
        }
        return self.trades.setdefault(trade["out_trade_no"], trade)

    def customer_pays(self, pay_url: str) -> Fields:
        trade = self.customer_opens(pay_url)
        trade["trade_status"] = "TRADE_SUCCESS"
        return trade

    def message(
        self,
        trade: Fields,
        *,
        notify_id: str = "",
        sent_at: datetime | None = None,
        key: Any = None,
        **changed: str,
    ) -> bytes:
        """The body of a message about a trade; `changed` after it was signed."""
        moment = (sent_at or datetime.now(UTC)) + BEIJING
        fields = {
            **trade,
            "app_id": APP_ID,
            "notify_id": notify_id or uuid.uuid4().hex,
            "notify_time": moment.strftime("%Y-%m-%d %H:%M:%S"),
            "subject": "充值",
        }
        signature = sign(signed_text(fields), key or alipay_key())
        return urlencode({**fields, **changed, "sign": signature, "sign_type": "RSA2"}).encode()


def _refused(reason: str) -> Fields:
    return {"code": "40004", "msg": "Business Failed", "sub_code": reason}
