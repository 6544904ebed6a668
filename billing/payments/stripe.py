"""Stripe, by its own library: Checkout, saved cards, charges without the customer, refunds and disputes.

Our payment's id is Stripe's idempotency key, and stands in the metadata of what it makes, so that each of its things
leads back to ours. Stripe keeps keys for 24 hours: later the metadata are searched instead.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import stripe
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from billing.amounts import coins_of
from billing.errors import PaymentProviderUnknown, WebhookRefused
from billing.payments.base import (
    Finding,
    IncomingEvent,
    PaymentProvider,
    PaymentReport,
    PaymentRequest,
    ProviderRefused,
    ProviderUnreachable,
    RefundReport,
    RefundRequest,
    ReportState,
    SavedMethod,
)
from billing.payments.stripe_reports import (
    METHOD_OF_INTENT,
    METHOD_OF_SESSION,
    Fields,
    finding_of_dispute,
    finding_of_intent,
    finding_of_refund,
    finding_of_session,
    refund_report,
    report_of_intent,
    report_of_session,
)
from portal.lib.clock import now

# How long a customer may stay on Stripe's page: at least 30 minutes, by Stripe's rule.
PAGE_OPEN: Final = timedelta(hours=2)
# Stripe forgets keys after 24 hours; a repeated request then would be a second one.
KEY_KEPT: Final = timedelta(hours=23)
# How old a message may be: Stripe's own tolerance, against replays.
TOLERANCE_S: Final = 300
# What says that nothing was done, whichever of the repeated requests it answers.
DEFINITE: Final = (stripe.CardError, stripe.InvalidRequestError)
MISSING: Final = "resource_missing"


def _called(call: Callable[[], stripe.StripeObject]) -> Fields:
    """What Stripe answered, as plain values."""
    try:
        return call().to_dict()
    except DEFINITE as error:
        # A key that is in use, or was used with other contents: the other request's outcome counts.
        if error.http_status == 409 or error.code == "idempotency_key_in_use":
            raise ProviderUnreachable(error.code or "conflict") from error
        raise ProviderRefused((error.code or "refused")[:60]) from error
    except stripe.StripeError as error:
        raise ProviderUnreachable(type(error).__name__) from error


def _read(call: Callable[[], stripe.StripeObject]) -> Fields:
    """What Stripe answered to a question. One that is refused, such as by another account than the one that has the
    thing, says nothing of the money."""
    try:
        return _called(call)
    except ProviderRefused as refusal:
        raise ProviderUnreachable(refusal.code) from refusal


class StripeProvider(PaymentProvider):
    name = "stripe"
    title = _("Card, by Stripe")
    saves_methods = True
    acknowledgement = ""

    def __init__(self) -> None:
        key = settings.PAYMENTS["STRIPE_SECRET_KEY"]
        if not key:
            raise PaymentProviderUnknown
        address = settings.PAYMENTS["STRIPE_API_ADDRESS"]
        self._client = stripe.StripeClient(
            key,
            base_addresses={"api": address} if address else {},
            # Whoever repeats is billing.services.payment_asking, at its own pace.
            max_network_retries=0,
            http_client=stripe.RequestsClient(timeout=settings.PAYMENTS["TIMEOUT_S"]),
        )

    def begin(self, request: PaymentRequest) -> PaymentReport:
        return self._charge(request) if request.method else self._open_page(request)

    def _open_page(self, request: PaymentRequest) -> PaymentReport:
        about = {"payment_id": str(request.payment_id), "workspace_id": str(request.workspace_id)}
        intent: dict[str, Any] = {"metadata": about}
        params: dict[str, Any] = {
            "mode": "payment",
            "client_reference_id": str(request.payment_id),
            "success_url": request.return_url,
            "cancel_url": request.return_url,
            # Counted from when the payment began, so that a repeated request is the same request.
            "expires_at": int((request.created_at + PAGE_OPEN).timestamp()),
            "metadata": about,
            "payment_intent_data": intent,
            "line_items": [
                {
                    "quantity": 1,
                    "price_data": {
                        "currency": request.currency.lower(),
                        "unit_amount": coins_of(request.amount_micros, request.currency),
                        "product_data": {"name": request.description},
                    },
                }
            ],
        }
        if request.saves_method:
            params["customer_creation"] = "always"
            intent["setup_future_usage"] = "off_session"
        sessions = self._client.v1.checkout.sessions
        session = _called(
            lambda: sessions.create(params, {"idempotency_key": str(request.payment_id)})  # type: ignore[arg-type]
        )
        return report_of_session(session)

    def _charge(self, request: PaymentRequest) -> PaymentReport:
        params: dict[str, Any] = {
            "amount": coins_of(request.amount_micros, request.currency),
            "currency": request.currency.lower(),
            "customer": request.customer,
            "payment_method": request.method,
            "description": request.description,
            "off_session": True,
            "confirm": True,
            "metadata": {
                "payment_id": str(request.payment_id),
                "workspace_id": str(request.workspace_id),
                "off_session": "1",
            },
        }
        intents = self._client.v1.payment_intents
        intent = _called(
            lambda: intents.create(params, {"idempotency_key": str(request.payment_id)})  # type: ignore[arg-type]
        )
        return report_of_intent(intent)

    def ask(self, request: PaymentRequest) -> PaymentReport:
        if request.reference:
            return self._look(request.reference)
        if now() - request.created_at < KEY_KEPT:
            return self.begin(request)
        return self._search(request)

    def _look(self, reference: str) -> PaymentReport:
        """How the thing of that name stands."""
        if reference.startswith("cs_"):
            return report_of_session(self._session(reference))
        return report_of_intent(self._intent(reference))

    def _search(self, request: PaymentRequest) -> PaymentReport:
        """A payment of which only its metadata can tell, once its key is forgotten."""
        query = f"metadata['payment_id']:'{request.payment_id}'"
        found = _read(lambda: self._client.v1.payment_intents.search({"query": query}))
        if found["data"]:
            return self._look(found["data"][0]["id"])
        if request.method:
            return PaymentReport(ReportState.FAILED, failure_code="never_arrived")
        return PaymentReport(ReportState.EXPIRED)

    def withdraw(self, request: PaymentRequest) -> PaymentReport:
        if request.reference.startswith("cs_"):
            try:
                sessions = self._client.v1.checkout.sessions
                return report_of_session(_called(lambda: sessions.expire(request.reference)))
            except ProviderRefused:
                # Only an open session can be expired: it was paid, or is over.
                return self.ask(request)
        return self.ask(request) if request.reference else PaymentReport(ReportState.EXPIRED)

    def refund(self, request: RefundRequest) -> RefundReport:
        if request.reference:
            return refund_report(_read(lambda: self._client.v1.refunds.retrieve(request.reference)))
        if now() - request.created_at >= KEY_KEPT:
            return self._search_refund(request)
        params: dict[str, Any] = {
            "payment_intent": request.payment_reference,
            "amount": coins_of(request.amount_micros, request.currency),
            "metadata": {"refund_id": str(request.refund_id), "payment_id": str(request.payment_id)},
        }
        refunds = self._client.v1.refunds
        try:
            refund = _called(
                lambda: refunds.create(params, {"idempotency_key": str(request.refund_id)})  # type: ignore[arg-type]
            )
        except ProviderRefused as refusal:
            if request.is_repeated and refusal.code == MISSING:
                # An account that does not have the payment does not know what became of the first request either.
                raise ProviderUnreachable(refusal.code) from refusal
            raise
        return refund_report(refund)

    def _search_refund(self, request: RefundRequest) -> RefundReport:
        refunds = _read(
            lambda: self._client.v1.refunds.list({"payment_intent": request.payment_reference, "limit": 100})
        )
        for refund in refunds["data"]:
            if (refund.get("metadata") or {}).get("refund_id") == str(request.refund_id):
                return refund_report(refund)
        return RefundReport(ReportState.FAILED, failure_code="never_arrived")

    def begin_saving(self, workspace_id: uuid.UUID, customer: str, return_url: str) -> str:
        params: dict[str, Any] = {
            "mode": "setup",
            "success_url": return_url,
            "cancel_url": return_url,
            "metadata": {"workspace_id": str(workspace_id)},
            "payment_method_types": ["card"],
        }
        params |= {"customer": customer} if customer else {"customer_creation": "always"}
        session = _called(lambda: self._client.v1.checkout.sessions.create(params))  # type: ignore[arg-type]
        return str(session["url"])

    def forget_method(self, method: SavedMethod) -> None:
        try:
            _called(lambda: self._client.v1.payment_methods.detach(method.reference))
        except ProviderRefused:
            # Stripe does not know it, or it belongs to nobody any more.
            return

    def read_event(self, body: bytes, headers: Mapping[str, str]) -> IncomingEvent:
        signature = headers.get("Stripe-Signature", "")
        for secret in settings.PAYMENTS["STRIPE_WEBHOOK_SECRETS"]:
            try:
                stripe.WebhookSignature.verify_header(body, signature, secret, TOLERANCE_S)
            except (stripe.SignatureVerificationError, ValueError, TypeError):
                # Another secret's, or not even readable as a signature.
                continue
            return self._event(body)
        raise WebhookRefused

    def _event(self, body: bytes) -> IncomingEvent:
        try:
            event = self._client.construct_event_without_verification(body).to_dict()
            about = event["data"]["object"]
            return IncomingEvent(
                event_id=str(event["id"])[:200],
                kind=str(event["type"])[:100],
                # Not everything has an id; what has none is none of ours.
                subject=f"{about['object']}:{about.get('id', '')}"[:200],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WebhookRefused from error

    def look_at(self, kind: str, subject: str) -> Finding | None:
        what, _colon, reference = subject.partition(":")
        if not reference:
            return None
        if what == "checkout.session":
            return finding_of_session(self._session(reference))
        if what == "payment_intent":
            return finding_of_intent(self._intent(reference))
        if what == "refund":
            expand: Any = {"expand": ["payment_intent"]}
            return finding_of_refund(_read(lambda: self._client.v1.refunds.retrieve(reference, expand)))
        if what == "dispute":
            expand = {"expand": ["payment_intent"]}
            return finding_of_dispute(_read(lambda: self._client.v1.disputes.retrieve(reference, expand)))
        return None

    def _session(self, reference: str) -> Fields:
        sessions = self._client.v1.checkout.sessions
        return _read(lambda: sessions.retrieve(reference, {"expand": METHOD_OF_SESSION}))

    def _intent(self, reference: str) -> Fields:
        intents = self._client.v1.payment_intents
        return _read(lambda: intents.retrieve(reference, {"expand": METHOD_OF_INTENT}))
