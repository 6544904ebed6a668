"""What Stripe's things say, in our words. Pure."""

from __future__ import annotations

import uuid
from typing import Any, Final

from billing.amounts import micros_of_coins
from billing.payments.base import (
    DisputeFinding,
    DisputeReport,
    Finding,
    MethodFinding,
    PaymentFinding,
    PaymentReport,
    RefundFinding,
    RefundReport,
    ReportState,
    SavedMethod,
)

Fields = dict[str, Any]
# What is to come whole with a thing, instead of as an id.
METHOD_OF_INTENT: Final = ["payment_method"]
METHOD_OF_SESSION: Final = ["payment_intent.payment_method", "setup_intent.payment_method"]


def _id_in(thing: Fields | None, key: str) -> uuid.UUID | None:
    """The id of ours that stands in the thing's metadata; None where somebody else made it."""
    try:
        return uuid.UUID(((thing or {}).get("metadata") or {}).get(key) or "")
    except ValueError:
        return None


def _reference(thing: Fields | str | None) -> str:
    """The id of a thing that came whole, as its id, or not at all."""
    return str((thing.get("id") if isinstance(thing, dict) else thing) or "")


def _method_of(intent: Fields) -> SavedMethod | None:
    """The method that was saved with this intent; None where it was used once only."""
    method, customer = intent.get("payment_method"), _reference(intent.get("customer"))
    if not isinstance(method, dict) or not customer:
        return None
    card = method.get("card") or {}
    brand = str(card.get("brand") or method.get("type") or "card").replace("_", " ").title()
    label = f"{brand} •••• {card['last4']}" if card.get("last4") else brand
    return SavedMethod(customer=customer, reference=str(method["id"]), label=label[:60])


def report_of_intent(intent: Fields) -> PaymentReport:
    """A payment by its PaymentIntent: known by the intent's id once it is paid, or was charged without a page."""
    charged_by_us = bool((intent.get("metadata") or {}).get("off_session"))
    reference = str(intent["id"])
    status = intent["status"]
    if status == "succeeded":
        saves = intent.get("setup_future_usage") == "off_session"
        currency = str(intent["currency"]).upper()
        return PaymentReport(
            ReportState.SUCCEEDED,
            reference=reference,
            amount_micros=micros_of_coins(int(intent["amount_received"]), currency),
            currency=currency,
            method=_method_of(intent) if saves else None,
        )
    failed = str((intent.get("last_payment_error") or {}).get("code") or status)[:60]
    if status == "canceled" or (charged_by_us and status in ("requires_payment_method", "requires_action")):
        return PaymentReport(ReportState.FAILED, reference=reference, failure_code=failed)
    # On Stripe's page the customer may try another card; until then its session is what can be asked and expired.
    return PaymentReport(ReportState.PENDING, reference=reference if charged_by_us else "")


def report_of_session(session: Fields) -> PaymentReport:
    """A payment by its Checkout session."""
    reference = str(session["id"])
    if session.get("status") == "open":
        return PaymentReport(ReportState.PENDING, reference=reference, pay_url=str(session.get("url") or ""))
    if session.get("status") == "expired":
        return PaymentReport(ReportState.EXPIRED, reference=reference)
    intent = session.get("payment_intent")
    if isinstance(intent, dict):
        report = report_of_intent(intent)
        if report.state is ReportState.PENDING and intent["status"] == "requires_payment_method":
            # The page is closed, and the payment that it had begun did not arrive.
            failed = str((intent.get("last_payment_error") or {}).get("code") or "not_paid")
            return PaymentReport(ReportState.FAILED, reference=reference, failure_code=failed[:60])
        if report.state is not ReportState.PENDING:
            return report
    return PaymentReport(ReportState.PENDING, reference=reference)


def refund_report(refund: Fields) -> RefundReport:
    states = {
        "succeeded": ReportState.SUCCEEDED,
        "failed": ReportState.FAILED,
        "canceled": ReportState.FAILED,
    }
    state = states.get(refund["status"], ReportState.PENDING)
    return RefundReport(
        state,
        reference=str(refund["id"]),
        failure_code=str(refund.get("failure_reason") or "")[:60],
        amount_micros=micros_of_coins(int(refund["amount"]), str(refund["currency"])),
    )


def finding_of_session(session: Fields) -> Finding | None:
    if session.get("mode") == "setup":
        workspace_id, intent = _id_in(session, "workspace_id"), session.get("setup_intent")
        if workspace_id is None or session.get("status") != "complete" or not isinstance(intent, dict):
            return None
        method = _method_of({"customer": session.get("customer"), **_without_nothing(intent)})
        return None if method is None else MethodFinding(workspace_id, method)
    payment_id = _id_in(session, "payment_id")
    return None if payment_id is None else PaymentFinding(payment_id, report_of_session(session))


def _without_nothing(thing: Fields) -> Fields:
    return {key: value for key, value in thing.items() if value is not None}


def finding_of_intent(intent: Fields) -> Finding | None:
    payment_id = _id_in(intent, "payment_id")
    return None if payment_id is None else PaymentFinding(payment_id, report_of_intent(intent))


def finding_of_refund(refund: Fields) -> Finding | None:
    payment_id = _id_in(refund.get("payment_intent"), "payment_id")
    if payment_id is None:
        return None
    return RefundFinding(payment_id, _id_in(refund, "refund_id"), refund_report(refund))


def finding_of_dispute(dispute: Fields) -> Finding | None:
    """Whether its money moved is read from the dispute's own movements: events come in any order."""
    payment_id = _id_in(dispute.get("payment_intent"), "payment_id")
    if payment_id is None:
        return None
    moved = [int(movement["amount"]) for movement in dispute.get("balance_transactions") or []]
    won = {"won": True, "lost": False}.get(dispute["status"])
    return DisputeFinding(
        payment_id,
        DisputeReport(
            reference=str(dispute["id"]),
            amount_micros=micros_of_coins(int(dispute["amount"]), str(dispute["currency"])),
            withdrawn=any(amount < 0 for amount in moved),
            reinstated=any(amount > 0 for amount in moved),
            won=won,
        ),
    )
