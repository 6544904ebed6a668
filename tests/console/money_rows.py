"""Money of a customer at chosen amounts, for the tests of the console's pages of money."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta

from accounts.models import AuditEntry, User, Workspace
from billing.models import CreditAccount, PendingAct, UsageRecord
from portal.console import money_acts
from tests.billing.books import Books, all_books

YUAN = 1_000_000


def available(workspace: Workspace) -> int:
    return CreditAccount.objects.get(workspace_id=workspace.pk).available_micros


def everything() -> tuple[Books, list[object], list[object], list[object]]:
    """All that an act may change: the books, what waits to be confirmed, the audit log, the workspaces."""
    return (
        all_books(),
        list(PendingAct.objects.order_by("pk").values_list()),
        list(AuditEntry.objects.order_by("pk").values_list()),
        list(Workspace.objects.order_by("pk").values_list()),
    )


def money_act(
    act: str, workspace: Workspace, yuan: int, *, key: uuid.UUID | None = None
) -> money_acts.MoneyAct:
    return money_acts.MoneyAct(
        id=key or uuid.uuid4(),
        act=act,
        workspace_id=workspace.pk,
        amount_micros=yuan * YUAN,
        reason="Why not",
    )


def asked(act: str, workspace: Workspace, yuan: int, *, by: User) -> uuid.UUID:
    """An act above the limit that waits for a second operator; returns its id."""
    wanted = money_act(act, workspace, yuan)
    assert money_acts.do_or_ask(act=wanted, actor=by) is money_acts.Outcome.ASKED
    return wanted.id


def used(
    workspace: Workspace, *, day: date, device_class: str, job_class: str, gpu_ms: int, rate: int
) -> None:
    """A billable attempt that ended at noon of that day, by UTC."""
    at = datetime.combine(day, time(12), tzinfo=UTC)
    UsageRecord.objects.create(
        attempt_id=uuid.uuid4(),
        job_id=uuid.uuid4(),
        workspace_id=workspace.pk,
        voice_id=uuid.uuid4(),
        device_name="gpu",
        device_class=device_class,
        job_class=job_class,
        billable=True,
        gpu_ms=gpu_ms,
        audio_ms=gpu_ms,
        characters=10,
        price_version_id=1,
        gpu_second_micros=rate,
        rated_micros=gpu_ms * rate // 1000,
        charged_micros=gpu_ms * rate // 1000,
        started_at=at - timedelta(milliseconds=gpu_ms),
        finished_at=at,
    )
