"""What waits for a second operator, and what was decided lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django import forms

from accounts.models import User, Workspace
from billing.models import CreditAccount, PendingAct, PendingActState
from portal.console import money_act
from portal.console.audit_words import asked_label
from portal.console.device_acts import reason_field
from portal.lib.display import money_exact

CURRENCY: Final = "CNY"
DECIDED_SHOWN: Final = 20
OPEN_SHOWN: Final = 200


class DeclineForm(forms.Form):
    reason = reason_field()


@dataclass(frozen=True)
class PendingRow:
    """`is_own`: the reader asked for it, and so cannot confirm it. `workspace_name` is empty where it is gone. `about`:
    what else there is to know before it is confirmed."""

    pending: PendingAct
    label: str
    about: str
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
    decided = PendingAct.objects.filter(
        state__in=[PendingActState.CONFIRMED, PendingActState.DECLINED]
    ).order_by("-created_at")[:DECIDED_SHOWN]
    rows = pending_rows([*waiting, *decided], reader=reader)
    return PendingPage(waiting=rows[: len(waiting)], decided=rows[len(waiting) :])


def pending_rows(acts: list[PendingAct], *, reader: User) -> list[PendingRow]:
    """With the names behind their ids. Three queries."""
    workspaces = {act.workspace_id for act in acts if act.workspace_id is not None}
    names = dict(Workspace.objects.filter(pk__in=workspaces).values_list("pk", "name"))
    currencies = dict(CreditAccount.objects.filter(pk__in=workspaces).values_list("pk", "currency"))
    people = {act.requested_by_id for act in acts}
    people |= {act.decided_by_id for act in acts if act.decided_by_id is not None}
    emails = dict(User.objects.filter(pk__in=people).values_list("pk", "email"))
    return [
        PendingRow(
            pending=act,
            label=asked_label(act.act),
            about=_about(act),
            workspace_name=names.get(act.workspace_id, "") if act.workspace_id else "",
            currency=currencies.get(act.workspace_id, CURRENCY) if act.workspace_id else CURRENCY,
            requested_by=emails.get(act.requested_by_id, ""),
            decided_by=emails.get(act.decided_by_id, "") if act.decided_by_id else "",
            is_own=act.requested_by_id == reader.pk,
        )
        for act in acts
    ]


def _about(act: PendingAct) -> str:
    details = act.arguments
    if act.act == money_act.RECORDED_PAYMENT:
        return f"{details['provider']}, {details['reference']}"
    if act.act == money_act.VOUCHERS:
        each = money_exact(details["each_micros"], details["currency"])
        return f"{details['name']}: {details['count']} × {each}"
    return ""
