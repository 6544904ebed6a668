"""A double of Stripe's API, as far as it is used: idempotency keys, Checkout, charges, refunds, disputes."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import re
import time
from collections.abc import Callable
from typing import Any

from django.utils import timezone
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.billing.fake_provider import FakeProvider

Fields = dict[str, Any]
SECRET_KEY = "sk_test_double"
WEBHOOK_SECRET = "whsec_double"
CARD = {"brand": "visa", "last4": "4242"}


class Refusal(Exception):
    def __init__(self, status: int, kind: str, code: str = "") -> None:
        self.status, self.kind, self.code = status, kind, code
        super().__init__(code)


def nested(form: Fields) -> Fields:
    """`metadata[payment_id]=…` as nested values."""
    found: Fields = {}
    for key, value in form.items():
        first, *rest = re.findall(r"[^\[\]]+", key)
        place = found
        for part, following in itertools.pairwise([first, *rest]):
            place = place.setdefault(part, {})
            assert isinstance(place, dict), following
        place[[first, *rest][-1]] = value
    return found


class FakeStripe(FakeProvider):
    """Everything it has made is in `things`, by id. Cards whose id is in `declining` are refused, and so are calls
    whose name is in `refusing`, as by an account that may not make them."""

    def __init__(self, server: HTTPServer) -> None:
        super().__init__(server)
        self.things: dict[str, Fields] = {}
        self.declining: set[str] = set()
        self.refusing: set[str] = set()
        # The next so many answers are nothing that anybody could expect.
        self.empty_answers = 0
        self._answers: dict[str, tuple[Fields, int, Fields]] = {}
        self._numbers = itertools.count(1)
        self._routes: list[tuple[str, str, Callable[..., Fields]]] = [
            ("POST", r"/v1/checkout/sessions", self._make_session),
            ("POST", r"/v1/checkout/sessions/(\w+)/expire", self._expire_session),
            ("POST", r"/v1/payment_intents", self._make_intent),
            ("GET", r"/v1/payment_intents/search", self._search_intents),
            ("POST", r"/v1/refunds", self._make_refund),
            ("GET", r"/v1/refunds", self._list_refunds),
            ("POST", r"/v1/payment_methods/(\w+)/detach", self._detach),
            ("GET", r"/v1/(?:checkout/sessions|payment_intents|refunds|disputes)/(\w+)", self._read),
        ]

    # What VoicePool asks for

    def answer(self, request: Request) -> Response:
        if self.empty_answers:
            self.empty_answers -= 1
            return _answer(200, {})
        if request.headers.get("Authorization") != f"Bearer {SECRET_KEY}":
            return _answer(401, {"error": {"type": "invalid_request_error"}})
        params = nested(dict(request.values.items()))
        key = request.headers.get("Idempotency-Key", "") if request.method == "POST" else ""
        if key in self._answers:
            first, status, body = self._answers[key]
            if first != params:
                return _answer(400, {"error": {"type": "idempotency_error", "code": "idempotency_error"}})
            return _answer(status, body)
        status, body = self._do(request, params)
        # As Stripe: nothing is kept of a request that was refused before it began.
        if key and status != 400:
            self._answers[key] = (params, status, json.loads(json.dumps(body)))
        return _answer(status, body)

    def _do(self, request: Request, params: Fields) -> tuple[int, Fields]:
        for method, pattern, route in self._routes:
            found = re.fullmatch(pattern, request.path)
            if method == request.method and found:
                name = route.__name__.strip("_")
                self.calls[name] += 1
                try:
                    if name in self.refusing:
                        raise Refusal(400, "invalid_request_error", "resource_missing")
                    return 200, route(*found.groups(), params)
                except Refusal as refusal:
                    return refusal.status, {"error": {"type": refusal.kind, "code": refusal.code}}
        return 404, {"error": {"type": "invalid_request_error", "code": "resource_missing"}}

    def forget_keys(self) -> None:
        """As Stripe does after 24 hours."""
        self._answers.clear()

    def reset(self) -> None:
        """As if nothing had ever happened there."""
        self.things.clear()
        self.forget_keys()
        self.forget_mishaps()

    def _new(self, prefix: str, kind: str, **fields: Any) -> Fields:
        thing = {"id": f"{prefix}_{next(self._numbers)}", "object": kind, "livemode": False, **fields}
        self.things[thing["id"]] = thing
        return thing

    def _make_session(self, params: Fields) -> Fields:
        now = timezone.now().timestamp()  # where a test has moved the clock, Stripe's is moved too
        if params["mode"] == "payment" and not 1800 <= int(params["expires_at"]) - now <= 86_400:
            raise Refusal(400, "invalid_request_error", "parameter_invalid_integer")
        session = self._new(
            "cs",
            "checkout.session",
            mode=params["mode"],
            status="open",
            payment_status="unpaid",
            metadata=params.get("metadata", {}),
            payment_intent=None,
            setup_intent=None,
            customer=params.get("customer"),
            asked=params,
        )
        session["url"] = f"{self.address}/pay/{session['id']}"
        return session

    def _expire_session(self, reference: str, _params: Fields) -> Fields:
        session = self._thing(reference)
        if session["status"] != "open":
            raise Refusal(400, "invalid_request_error", "checkout_session_not_open")
        session["status"] = "expired"
        return session

    def _make_intent(self, params: Fields) -> Fields:
        intent = self._intent(
            int(params["amount"]),
            params["currency"],
            metadata=params["metadata"],
            customer=params["customer"],
            payment_method=params["payment_method"],
        )
        if params["payment_method"] in self.declining:
            intent |= {"status": "requires_payment_method", "last_payment_error": {"code": "card_declined"}}
            raise Refusal(402, "card_error", "card_declined")
        return self._paid(intent)

    def _intent(self, amount: int, currency: str, **fields: Any) -> Fields:
        return self._new(
            "pi",
            "payment_intent",
            amount=amount,
            amount_received=0,
            currency=currency,
            status="requires_payment_method",
            **fields,
        )

    def _paid(self, intent: Fields) -> Fields:
        intent |= {"status": "succeeded", "amount_received": intent["amount"]}
        return intent

    def _search_intents(self, params: Fields) -> Fields:
        wanted = params["query"].split("'")[3]
        found = [
            thing
            for thing in self.things.values()
            if thing["object"] == "payment_intent" and thing["metadata"].get("payment_id") == wanted
        ]
        return {"object": "search_result", "data": found, "has_more": False}

    def _make_refund(self, params: Fields) -> Fields:
        intent = self._thing(params["payment_intent"])
        back = sum(t["amount"] for t in self._refunds_of(intent["id"]) if t["status"] != "failed")
        if int(params["amount"]) + back > intent["amount_received"]:
            raise Refusal(400, "invalid_request_error", "charge_already_refunded")
        return self.refund(intent["id"], int(params["amount"]), metadata=params["metadata"])

    def _list_refunds(self, params: Fields) -> Fields:
        return {"object": "list", "data": self._refunds_of(params["payment_intent"]), "has_more": False}

    def _refunds_of(self, intent_id: str) -> list[Fields]:
        return [
            t for t in self.things.values() if t["object"] == "refund" and t["payment_intent"] == intent_id
        ]

    def _detach(self, reference: str, _params: Fields) -> Fields:
        method = self._thing(reference)
        method["customer"] = None
        return method

    def _read(self, reference: str, params: Fields) -> Fields:
        """A thing, with what was asked for whole in the place of its id."""
        thing = dict(self._thing(reference))
        for path in dict(params.get("expand", {})).values():
            first, _dot, second = path.partition(".")
            if thing.get(first):
                thing[first] = dict(self.things[thing[first]])
                if second and thing[first].get(second):
                    thing[first][second] = dict(self.things[thing[first][second]])
        return thing

    def _thing(self, reference: str) -> Fields:
        if reference not in self.things:
            raise Refusal(404, "invalid_request_error", "resource_missing")
        return self.things[reference]

    # What happens there

    def new_card(self) -> Fields:
        return self._new("pm", "payment_method", type="card", card=CARD)

    def customer_pays(self, session_id: str, *, amount: int | None = None) -> Fields:
        """The customer pays on the page, with `amount` where the double is to be wrong; returns the intent."""
        session = self.things[session_id]
        assert session["status"] == "open"
        asked = session["asked"]
        item = asked["line_items"]["0"]["price_data"]
        saves = asked["payment_intent_data"].get("setup_future_usage")
        intent = self._intent(
            int(item["unit_amount"]) if amount is None else amount,
            item["currency"],
            metadata=asked["payment_intent_data"]["metadata"],
            customer="cus_1" if saves else None,
            payment_method=self.new_card()["id"],
            setup_future_usage=saves,
        )
        session |= {"status": "complete", "payment_status": "paid", "payment_intent": intent["id"]}
        return self._paid(intent)

    def customer_saves_card(self, session_id: str) -> Fields:
        session, card = self.things[session_id], self.new_card()
        intent = self._new("seti", "setup_intent", payment_method=card["id"], status="succeeded")
        session |= {
            "status": "complete",
            "setup_intent": intent["id"],
            "customer": session["customer"] or "cus_2",
        }
        return card

    def refund(self, intent_id: str, amount: int, metadata: Fields | None = None) -> Fields:
        return self._new(
            "re",
            "refund",
            amount=amount,
            currency=self.things[intent_id]["currency"],
            status="succeeded",
            payment_intent=intent_id,
            metadata=metadata or {},
        )

    def dispute(self, intent_id: str) -> Fields:
        """The bank takes the money back."""
        intent = self.things[intent_id]
        return self._new(
            "dp",
            "dispute",
            amount=intent["amount"],
            currency=intent["currency"],
            status="needs_response",
            payment_intent=intent_id,
            balance_transactions=[{"amount": -intent["amount"]}],
        )

    def win(self, dispute: Fields) -> None:
        dispute["status"] = "won"
        dispute["balance_transactions"].append({"amount": dispute["amount"]})

    def event(self, kind: str, thing: Fields, event_id: str = "") -> bytes:
        """The body of a message about a thing, as it is now."""
        return json.dumps(
            {
                "id": event_id or f"evt_{next(self._numbers)}",
                "object": "event",
                "type": kind,
                "data": {"object": thing},
            }
        ).encode()


def signature(body: bytes, *, secret: str = WEBHOOK_SECRET, sent_at: float | None = None) -> str:
    """The header that Stripe sends with a message (docs.stripe.com/webhooks: t=…, v1=HMAC-SHA256 of "t.body")."""
    moment = int(time.time() if sent_at is None else sent_at)
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def _answer(status: int, body: Fields) -> Response:
    return Response(json.dumps(body), status=status, content_type="application/json")
