"""Acts on customers' money. Above a limit one operator asks and another confirms; each is done once, with its line in
the audit log.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from accounts.models import User, Workspace
from accounts.services.audit import record_act
from billing.models import CreditAccount, GrantKind, Payment, PendingAct, TransactionKind
from billing.services import credit_limits, debits, grants, holds, ledger, payment_refunds, pending_acts
from portal.console.job_acts import refund_for_operator
from portal.lib.errors import Conflict, DomainError, NotFound
from tts.models import SynthesisJob
from tts.services import wakeups

OBJECT_KIND: Final = "workspace"
CREDIT: Final = "customer.credit"
DEBIT: Final = "customer.debit"
CREDIT_LIMIT: Final = "customer.credit_limit"
REFUND: Final = "job.refund"
PAYMENT_REFUND: Final = "payment.refund"


class TooLittleLeft(DomainError):
    code = "too_little_left"
    status = 409
    message = _("Less than that is available. Nothing was changed.")


class Outcome(Enum):
    DONE = "done"
    ASKED = "asked"
    # The same form was sent before: nothing was changed.
    BEFORE = "before"


@dataclass(frozen=True)
class MoneyAct:
    """What is to be done, to whom, and why. `id` makes it happen once; `job_id`, `payment_id`: what about."""

    id: uuid.UUID
    act: str
    workspace_id: uuid.UUID
    amount_micros: int
    reason: str
    job_id: uuid.UUID | None = None
    payment_id: uuid.UUID | None = None

    @property
    def ledger_key(self) -> str:
        return f"operator:{self.id}"


def limit_micros() -> int:
    """What one operator may do alone."""
    limit: int = settings.VOICEPOOL["ADJUSTMENT_NEEDS_SECOND_MICROS"]
    return limit


def needs_second(act: MoneyAct) -> bool:
    """Whether somebody else has to confirm it. A credit limit may be lowered by one alone."""
    if act.amount_micros <= limit_micros():
        return False
    if act.act == CREDIT_LIMIT:
        account = CreditAccount.objects.filter(pk=act.workspace_id).first()
        return account is None or act.amount_micros > account.credit_limit_micros
    return True


def do_or_ask(*, act: MoneyAct, actor: User) -> Outcome:
    """Do it, or ask for a second operator where it needs one.

    Raises:
        TooLittleLeft, RefundTooHigh, Conflict, NotFound: it cannot be done. Nothing was changed.
    """
    with transaction.atomic():
        # Two that come at once are told apart by the account's lock, also those that only ask.
        ledger.ensure_account(workspace_id=act.workspace_id)
        holds.lock_account(workspace_id=act.workspace_id)
        asked_before = PendingAct.objects.filter(pk=act.id).exists()
        if asked_before:
            return Outcome.BEFORE
        if needs_second(act):
            return _ask(act, actor)
        done = _DOING[act.act](act, actor)
    if done:
        _tell_others(act)
    return Outcome.DONE if done else Outcome.BEFORE


def _ask(act: MoneyAct, actor: User) -> Outcome:
    about = {"job_id": act.job_id, "payment_id": act.payment_id}
    arguments = {name: str(value) for name, value in about.items() if value is not None}
    made = pending_acts.ask_for(
        act_id=act.id,
        act=act.act,
        workspace_id=act.workspace_id,
        amount_micros=act.amount_micros,
        arguments=arguments,
        reason=act.reason,
        requested_by_id=actor.pk,
    )
    if not made:
        return Outcome.BEFORE
    _record(act, actor, f"{act.act}.asked", before={}, after={"amount_micros": act.amount_micros})
    return Outcome.ASKED


def confirm(*, act_id: uuid.UUID, actor: User) -> MoneyAct:
    """Do what another operator asked for, and return it. Of many at once one does it. Locks the credit account.

    Raises:
        SecondOperatorNeeded: it is their own. PendingActDecided: somebody was first.
        TooLittleLeft, RefundTooHigh, Conflict, NotFound: it cannot be done any more. It stays open.
    """
    act = _act_of(pending_acts.find(act_id=act_id))
    with transaction.atomic():
        holds.lock_account(workspace_id=act.workspace_id)
        pending_acts.confirm(act_id=act_id, decided_by_id=actor.pk)
        if not _DOING[act.act](act, actor):
            raise Conflict
    _tell_others(act)
    return act


def _tell_others(act: MoneyAct) -> None:
    """What happens outside of the database, now that the act is stored there. If lost, others come back to it."""
    if act.job_id is not None:
        wakeups.wake_job(job_id=act.job_id)
    if act.payment_id is not None:
        refund = payment_refunds.refund_of_key(payment_id=act.payment_id, idempotency_key=str(act.id))
        if refund is not None:
            payment_refunds.send_refund(refund)


def decline(*, act_id: uuid.UUID, actor: User, reason: str) -> None:
    """Say no to what was asked for, also to one's own. Raises PendingActDecided, NotFound."""
    act = _act_of(pending_acts.find(act_id=act_id))
    with transaction.atomic():
        pending_acts.decline(act_id=act_id, decided_by_id=actor.pk)
        _record(
            act,
            actor,
            f"{act.act}.declined",
            before={"amount_micros": act.amount_micros},
            after={},
            reason=reason,
        )


def _act_of(pending: PendingAct) -> MoneyAct:
    job_id, payment_id = pending.arguments.get("job_id"), pending.arguments.get("payment_id")
    return MoneyAct(
        id=pending.pk,
        act=pending.act,
        workspace_id=pending.workspace_id,
        amount_micros=pending.amount_micros,
        reason=pending.reason,
        job_id=uuid.UUID(job_id) if job_id else None,
        payment_id=uuid.UUID(payment_id) if payment_id else None,
    )


def _record(
    act: MoneyAct,
    actor: User,
    name: str,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
    reason: str = "",
) -> None:
    """A line about the customer; a refund's own line is about its job (portal.console.job_acts)."""
    workspace = Workspace.objects.filter(pk=act.workspace_id).first()
    record_act(
        actor=actor,
        act=name,
        object_kind=OBJECT_KIND,
        object_id=act.workspace_id,
        object_name=workspace.name if workspace is not None else "",
        reason=reason or act.reason,
        before=before,
        after=after,
    )


def _available(act: MoneyAct) -> int:
    return CreditAccount.objects.values_list("available_micros", flat=True).get(pk=act.workspace_id)


def _moved(act: MoneyAct, actor: User, before_micros: int) -> None:
    _record(
        act,
        actor,
        act.act,
        before={"available_micros": before_micros},
        after={"available_micros": _available(act)},
    )


def _credit(act: MoneyAct, actor: User) -> bool:
    before = _available(act)
    grant_id = grants.grant(
        workspace_id=act.workspace_id,
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
    before = _available(act)
    try:
        new = debits.debit(
            workspace_id=act.workspace_id,
            amount_micros=act.amount_micros,
            kind=TransactionKind.ADJUSTMENT,
            idempotency_key=act.ledger_key,
            may_owe=False,
            reason=act.reason,
        )
    except ledger.BalanceTooLow as error:
        raise TooLittleLeft from error
    if new:
        _moved(act, actor, before)
    return new


def _credit_limit(act: MoneyAct, actor: User) -> bool:
    before = credit_limits.set_credit_limit(workspace_id=act.workspace_id, limit_micros=act.amount_micros)
    if before == act.amount_micros:
        return False
    _record(
        act,
        actor,
        act.act,
        before={"credit_limit_micros": before},
        after={"credit_limit_micros": act.amount_micros},
    )
    return True


def _refund(act: MoneyAct, actor: User) -> bool:
    # Of a job of this customer only.
    of_customer = SynthesisJob.objects.filter(workspace_id=act.workspace_id)
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
    of_customer = Payment.objects.filter(workspace_id=act.workspace_id)
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


_DOING: Final[dict[str, Callable[[MoneyAct, User], bool]]] = {
    CREDIT: _credit,
    DEBIT: _debit,
    CREDIT_LIMIT: _credit_limit,
    REFUND: _refund,
    PAYMENT_REFUND: _refund_payment,
}
