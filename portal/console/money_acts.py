"""Acts on customers' money. Up to a limit one operator acts alone; above it one asks and another confirms. Each is done
once, with its line in the audit log.

The limit is on what one operator has moved of one customer's money within some hours, all acts together: a large
amount in small parts needs a second operator as it would whole. It counts what an act moves, whichever way; of a
credit limit, by how much it is changed.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from enum import Enum

from django.conf import settings
from django.db import transaction

from accounts.models import User
from billing.services import holds, ledger, payment_refunds, pending_acts
from portal.console.money_act import (
    CREDIT,
    CREDIT_LIMIT,
    DEBIT,
    OBJECT_KIND,
    PAYMENT_REFUND,
    RECORDED_PAYMENT,
    REFUND,
    VOUCHERS,
    MoneyAct,
    TooLittleLeft,
    account_of_act,
    act_of,
    record,
)
from portal.console.money_doing import DOING, check
from portal.lib.errors import Conflict
from tts.services import wakeups

__all__ = [
    "CREDIT",
    "CREDIT_LIMIT",
    "DEBIT",
    "OBJECT_KIND",
    "PAYMENT_REFUND",
    "RECORDED_PAYMENT",
    "REFUND",
    "VOUCHERS",
    "MoneyAct",
    "Outcome",
    "TooLittleLeft",
    "act_of",
    "ask",
    "confirm",
    "decline",
    "do_or_ask",
    "left_alone_micros",
    "limit_micros",
    "lock",
    "needs_second",
    "note_alone",
    "open_for",
    "window",
]


class Outcome(Enum):
    DONE = "done"
    ASKED = "asked"
    # The same form was sent before: nothing was changed.
    BEFORE = "before"


def limit_micros() -> int:
    """What one operator may do alone within `window`."""
    limit: int = settings.VOICEPOOL["ADJUSTMENT_NEEDS_SECOND_MICROS"]
    return limit


def window() -> timedelta:
    return timedelta(hours=settings.VOICEPOOL["ADJUSTMENT_WINDOW_HOURS"])


def left_alone_micros(*, actor: User, workspace_id: uuid.UUID | None) -> int:
    """What is left of what the operator may do alone with this customer's money (None: with vouchers)."""
    done = pending_acts.done_alone_micros(operator_id=actor.pk, workspace_id=workspace_id, within=window())
    return max(0, limit_micros() - done)


def _counted(act: MoneyAct) -> int:
    """What the act moves. Needs the lock of `lock`."""
    if act.act == CREDIT_LIMIT:
        return abs(act.amount_micros - account_of_act(act).credit_limit_micros)
    return act.amount_micros


def needs_second(act: MoneyAct, actor: User) -> bool:
    """Whether somebody else has to confirm it. Certain under the lock of `lock`."""
    return _counted(act) > left_alone_micros(actor=actor, workspace_id=act.workspace_id)


def lock(act: MoneyAct, actor: User) -> None:
    """Whoever acts at once waits here: two that come together are told apart, also those that only ask, and what an
    operator did alone is complete. Locks the credit account, or the operator where it is about no single customer."""
    if act.workspace_id is None:
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
        return
    ledger.ensure_account(workspace_id=act.workspace_id)
    holds.lock_account(workspace_id=act.workspace_id)


def do_or_ask(*, act: MoneyAct, actor: User) -> Outcome:
    """Do it, or ask for a second operator where it needs one.

    Raises:
        TooLittleLeft, RefundTooHigh, PaymentReferenceUsed, AmountTooPrecise, Conflict, NotFound: it cannot be done.
            Nothing was changed.
    """
    with transaction.atomic():
        lock(act, actor)
        if pending_acts.exists(act_id=act.id):
            return Outcome.BEFORE
        if needs_second(act, actor):
            check(act)
            ask(act, actor)
            return Outcome.ASKED
        counted = _counted(act)
        if not DOING[act.act](act, actor):
            return Outcome.BEFORE
        note_alone(act, actor, counted)
    _tell_others(act)
    return Outcome.DONE


def ask(act: MoneyAct, actor: User) -> None:
    """Have it wait for another operator. Needs the lock of `lock`."""
    pending_acts.ask_for(
        act_id=act.id,
        act=act.act,
        workspace_id=act.workspace_id,
        amount_micros=act.amount_micros,
        arguments=act.arguments,
        reason=act.reason,
        requested_by_id=actor.pk,
    )
    record(act, actor, f"{act.act}.asked", before={}, after={"amount_micros": act.amount_micros})


def note_alone(act: MoneyAct, actor: User, counted_micros: int) -> None:
    """Count what one operator did alone. In the transaction that did it."""
    pending_acts.note_alone(
        act_id=act.id,
        act=act.act,
        workspace_id=act.workspace_id,
        amount_micros=act.amount_micros,
        counted_micros=counted_micros,
        reason=act.reason,
        operator_id=actor.pk,
    )


def confirm(*, act_id: uuid.UUID, actor: User) -> MoneyAct:
    """Do what another operator asked for, and return it. Of many at once one does it. Locks the credit account.

    Raises:
        SecondOperatorNeeded: it is their own. PendingActDecided: somebody was first.
        TooLittleLeft, RefundTooHigh, Conflict, NotFound …: it cannot be done any more. It stays open.
    """
    with transaction.atomic():
        act = open_for(act_id=act_id, actor=actor)
        if not DOING[act.act](act, actor):
            raise Conflict
    _tell_others(act)
    return act


def open_for(*, act_id: uuid.UUID, actor: User) -> MoneyAct:
    """Mark what was asked for as confirmed by `actor`, and return it, to be done in this transaction.

    Raises SecondOperatorNeeded, PendingActDecided, NotFound.
    """
    act = act_of(pending_acts.find(act_id=act_id))
    lock(act, actor)
    pending_acts.confirm(act_id=act_id, decided_by_id=actor.pk)
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
    act = act_of(pending_acts.find(act_id=act_id))
    with transaction.atomic():
        pending_acts.decline(act_id=act_id, decided_by_id=actor.pk)
        record(
            act,
            actor,
            f"{act.act}.declined",
            before={"amount_micros": act.amount_micros},
            after={},
            reason=reason,
        )
