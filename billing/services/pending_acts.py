"""Acts of operators: done by one alone and counted, or asked for by one and decided once by another."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Now

from billing.errors import PendingActDecided, SecondOperatorNeeded
from billing.models import PendingAct, PendingActState
from portal.lib.errors import NotFound


def ask_for(
    *,
    act_id: uuid.UUID,
    act: str,
    workspace_id: uuid.UUID | None,
    amount_micros: int,
    arguments: dict[str, Any],
    reason: str,
    requested_by_id: uuid.UUID,
) -> bool:
    """Store what is asked for; False, and nothing changed, when it was asked for before under this id."""
    _act, made = PendingAct.objects.get_or_create(
        pk=act_id,
        defaults={
            "act": act,
            "workspace_id": workspace_id,
            "amount_micros": amount_micros,
            "arguments": arguments,
            "reason": reason[:300],
            "requested_by_id": requested_by_id,
        },
    )
    return made


def note_alone(
    *,
    act_id: uuid.UUID,
    act: str,
    workspace_id: uuid.UUID | None,
    amount_micros: int,
    counted_micros: int,
    reason: str,
    operator_id: uuid.UUID,
) -> None:
    """Store what one operator did alone, in the transaction that did it. IntegrityError: the id was used before."""
    PendingAct.objects.create(
        pk=act_id,
        act=act,
        workspace_id=workspace_id,
        amount_micros=amount_micros,
        counted_micros=counted_micros,
        reason=reason[:300],
        state=PendingActState.ALONE,
        requested_by_id=operator_id,
        decided_by_id=operator_id,
        decided_at=Now(),
    )


def done_alone_micros(*, operator_id: uuid.UUID, workspace_id: uuid.UUID | None, within: timedelta) -> int:
    """How much an operator has done alone with one workspace's money lately (None: with no single one's)."""
    lately = PendingAct.objects.filter(
        workspace_id=workspace_id,
        requested_by_id=operator_id,
        state=PendingActState.ALONE,
        decided_at__gt=Now() - within,
    )
    return lately.aggregate(total=Sum("counted_micros"))["total"] or 0


def exists(*, act_id: uuid.UUID) -> bool:
    """Whether an act of this id was done or asked for before."""
    return PendingAct.objects.filter(pk=act_id).exists()


def find(*, act_id: uuid.UUID) -> PendingAct:
    """The act as it stands. Raises NotFound."""
    found = PendingAct.objects.filter(pk=act_id).first()
    if found is None:
        raise NotFound
    return found


def confirm(*, act_id: uuid.UUID, decided_by_id: uuid.UUID) -> None:
    """Mark it as confirmed: of all who try at once, one gets here. Call inside the transaction that does it, with the
    credit account locked.

    Raises:
        SecondOperatorNeeded: it is their own.
        PendingActDecided: somebody was first, or it is not there.
    """
    # Who asked never changes, so it may be read without a lock.
    if PendingAct.objects.filter(pk=act_id, requested_by_id=decided_by_id).exists():
        raise SecondOperatorNeeded
    _decide(act_id, decided_by_id, PendingActState.CONFIRMED)


def decline(*, act_id: uuid.UUID, decided_by_id: uuid.UUID) -> None:
    """Mark it as declined; whoever asked may do so too. Raises PendingActDecided."""
    _decide(act_id, decided_by_id, PendingActState.DECLINED)


def _decide(act_id: uuid.UUID, decided_by_id: uuid.UUID, state: PendingActState) -> None:
    decided = PendingAct.objects.filter(pk=act_id, state=PendingActState.OPEN).update(
        state=state, decided_by_id=decided_by_id, decided_at=Now()
    )
    if not decided:
        raise PendingActDecided
