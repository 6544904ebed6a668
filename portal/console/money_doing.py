"""How each act on a customer's money is done. Inside the transaction of the act, with the credit account locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from accounts.models import User
from billing.models import GrantKind, Payment, TransactionKind
from billing.services import credit_limits, debits, grants, payment_refunds
from billing.services.payments import check_recordable, record_payment
from portal.console.job_acts import refund_for_operator
from portal.console.money_act import (
    CREDIT,
    CREDIT_LIMIT,
    DEBIT,
    PAYMENT_REFUND,
    RECORDED_PAYMENT,
    REFUND,
    MoneyAct,
    TooLittleLeft,
    account_of_act,
    customer_of,
    record,
)
from portal.lib.errors import NotFound
from tts.models import SynthesisJob


def _available(act: MoneyAct) -> int:
    return account_of_act(act).available_micros


def _moved(act: MoneyAct, actor: User, before_micros: int) -> None:
    record(
        act,
        actor,
        act.act,
        before={"available_micros": before_micros},
        after={"available_micros": _available(act)},
    )


def _credit(act: MoneyAct, actor: User) -> bool:
    before = _available(act)
    grant_id = grants.grant(
        workspace_id=customer_of(act),
        amount_micros=act.amount_micros,
        idempotency_key=act.ledger_key,
        kind=GrantKind.PROMOTIONAL,
        ledger_kind=TransactionKind.ADJUSTMENT,
        reason=act.reason,
    )
    if grant_id is not None:
        _moved(act, actor, before)
    return grant_id is not None


def _debit(act: MoneyAct, actor: User) -> bool:
    """Never more than there is, whatever the credit limit: nobody comes to owe by what no invoice has a line for."""
    before = _available(act)
    if act.amount_micros > before:
        raise TooLittleLeft
    new = debits.debit(
        workspace_id=customer_of(act),
        amount_micros=act.amount_micros,
        kind=TransactionKind.ADJUSTMENT,
        idempotency_key=act.ledger_key,
        may_owe=False,
        reason=act.reason,
    )
    if new:
        _moved(act, actor, before)
    return new


def _credit_limit(act: MoneyAct, actor: User) -> bool:
    before = credit_limits.set_credit_limit(workspace_id=customer_of(act), limit_micros=act.amount_micros)
    if before == act.amount_micros:
        return False
    record(
        act,
        actor,
        act.act,
        before={"credit_limit_micros": before},
        after={"credit_limit_micros": act.amount_micros},
    )
    return True


def _record_payment(act: MoneyAct, actor: User) -> bool:
    payment = record_payment(
        workspace_id=customer_of(act),
        provider_name=act.details["provider"],
        amount_micros=act.amount_micros,
        currency=account_of_act(act).currency,
        reference=act.details["reference"],
        note=act.reason,
        recorded_by_id=actor.pk,
        idempotency_key=act.ledger_key,
    )
    record(
        act,
        actor,
        act.act,
        before={},
        after={"amount_micros": payment.amount_micros, "provider": payment.provider},
    )
    return True


def _refund(act: MoneyAct, actor: User) -> bool:
    # Of a job of this customer only.
    of_customer = SynthesisJob.objects.filter(workspace_id=customer_of(act))
    job = of_customer.filter(pk=act.job_id).first() if act.job_id is not None else None
    if job is None:
        raise NotFound
    refunded = refund_for_operator(
        job_id=job.pk,
        actor=actor,
        reason=act.reason,
        amount_micros=act.amount_micros,
        idempotency_key=str(act.id),
    )
    return refunded > 0


def _refund_payment(act: MoneyAct, actor: User) -> bool:
    # Of a payment of this customer only.
    of_customer = Payment.objects.filter(workspace_id=customer_of(act))
    payment = of_customer.filter(pk=act.payment_id).first() if act.payment_id is not None else None
    if payment is None:
        raise NotFound
    if payment_refunds.refund_of_key(payment_id=payment.pk, idempotency_key=str(act.id)) is not None:
        return False
    before = _available(act)
    payment_refunds.book_refund(
        payment_id=payment.pk,
        amount_micros=act.amount_micros,
        reason=act.reason,
        idempotency_key=str(act.id),
        requested_by_id=actor.pk,
    )
    _moved(act, actor, before)
    return True


def check(act: MoneyAct) -> None:
    """What can be said of it before another operator is asked. Raises AmountTooPrecise, PaymentReferenceUsed."""
    if act.act == RECORDED_PAYMENT:
        check_recordable(
            provider_name=act.details["provider"],
            reference=act.details["reference"],
            amount_micros=act.amount_micros,
            currency=account_of_act(act).currency,
        )


# Each returns whether it changed anything, and raises where it cannot be done.
DOING: Final[dict[str, Callable[[MoneyAct, User], bool]]] = {
    CREDIT: _credit,
    DEBIT: _debit,
    CREDIT_LIMIT: _credit_limit,
    RECORDED_PAYMENT: _record_payment,
    REFUND: _refund,
    PAYMENT_REFUND: _refund_payment,
}
