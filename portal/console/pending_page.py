"""What waits for a second operator, and what was decided lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django import forms

from accounts.models import User, Workspace
from billing.models import CreditAccount, PendingAct, PendingActState
from portal.console.audit_words import asked_label
from portal.console.device_acts import reason_field

DECIDED_SHOWN: Final = 20
OPEN_SHOWN: Final = 200


class DeclineForm(forms.Form):
    reason = reason_field()


@dataclass(frozen=True)
class PendingRow:
    """`is_own`: the reader asked for it, and so cannot confirm it. `workspace_name` is empty where it is gone."""

    pending: PendingAct
    label: str
    workspace_name: str
    currency: str
    requested_by: str
    decided_by: str
    is_own: bool


@dataclass(frozen=True)
class PendingPage:
    waiting: list[PendingRow]
    decided: list[PendingRow]


def open_count() -> int:
    """How many acts wait for a second operator."""
    return PendingAct.objects.filter(state=PendingActState.OPEN).count()


def read_pending(*, reader: User) -> PendingPage:
    """The oldest that wait first, the newest decided first."""
    waiting = PendingAct.objects.filter(state=PendingActState.OPEN).order_by("created_at")[:OPEN_SHOWN]
    decided = PendingAct.objects.exclude(state=PendingActState.OPEN).order_by("-created_at")[:DECIDED_SHOWN]
    rows = pending_rows([*waiting, *decided], reader=reader)
    return PendingPage(waiting=rows[: len(waiting)], decided=rows[len(waiting) :])


def pending_rows(acts: list[PendingAct], *, reader: User) -> list[PendingRow]:
    """With the names behind their ids. Three queries."""
    workspaces = {act.workspace_id for act in acts}
    names = dict(Workspace.objects.filter(pk__in=workspaces).values_list("pk", "name"))
    currencies = dict(CreditAccount.objects.filter(pk__in=workspaces).values_list("pk", "currency"))
    people = {act.requested_by_id for act in acts}
    people |= {act.decided_by_id for act in acts if act.decided_by_id is not None}
    emails = dict(User.objects.filter(pk__in=people).values_list("pk", "email"))
    return [
        PendingRow(
            pending=act,
            label=asked_label(act.act),
            workspace_name=names.get(act.workspace_id, ""),
            currency=currencies.get(act.workspace_id, "CNY"),
            requested_by=emails.get(act.requested_by_id, ""),
            decided_by=emails.get(act.decided_by_id, "") if act.decided_by_id else "",
            is_own=act.requested_by_id == reader.pk,
        )
        for act in acts
    ]
