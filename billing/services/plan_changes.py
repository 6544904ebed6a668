"""Changes of plan that wait for the first moment of the next month, in the workspace's own zone.

One is carried out once, by whoever comes first after that moment under the lock of the wallet: the clock, or anything
for which it matters what plan the month begins with (an invoice, included credit, another change). However late that
is, the plan before ends where the month ended, and the new one begins there.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from django.db import connection, transaction

from billing.errors import PlanChangeOver
from billing.models import CreditAccount, PlanChange, PlanChangeState, PlanVersion
from billing.periods import day_start, local_day, month_at
from billing.selectors.plans import current_subscription
from billing.services import ledger, subscriptions
from portal.lib.clock import database_now
from portal.lib.errors import DomainError, NotFound

logger = logging.getLogger(__name__)

_DUE = """
SELECT change.workspace_id FROM billing_planchange change
JOIN billing_creditaccount account ON account.workspace_id = change.workspace_id
WHERE change.state = 'pending' AND change.first_day <= (%(moment)s AT TIME ZONE account.time_zone)::date
ORDER BY change.workspace_id
"""


def first_day_of_next_month(*, time_zone: str, at: datetime) -> date:
    """The day with which what is chosen now begins."""
    return month_at(at, time_zone).last_day + timedelta(days=1)


def schedule(
    *, account: CreditAccount, plan_version: PlanVersion, at: datetime, requested_by_id: uuid.UUID | None
) -> PlanChange:
    """Have a version of a plan begin with the next month, in place of what else waited. The same again changes nothing.

    Needs the lock of `account`.
    """
    first_day = first_day_of_next_month(time_zone=account.time_zone, at=at)
    waiting = PlanChange.objects.filter(workspace_id=account.pk, state=PlanChangeState.PENDING).first()
    if waiting is not None and (waiting.plan_version_id, waiting.first_day) == (plan_version.pk, first_day):
        return waiting
    replace_waiting(workspace_id=account.pk)
    return PlanChange.objects.create(
        workspace_id=account.pk,
        plan_version=plan_version,
        first_day=first_day,
        requested_by_id=requested_by_id,
    )


def replace_waiting(*, workspace_id: uuid.UUID) -> None:
    """Give up what waits, as something else was chosen. Needs the lock of the credit account."""
    _end(PlanChangeState.REPLACED, workspace_id=workspace_id)


def take_back(*, workspace_id: uuid.UUID, change_id: uuid.UUID, at: datetime | None = None) -> None:
    """Stay on the plan after all. A change that was taken back stays so. Locks the credit account.

    Raises, having changed nothing:
        NotFound: the workspace has no such change.
        PlanChangeOver: it has begun, also where no clock has carried it out yet, or was replaced.
    """
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
        change = PlanChange.objects.filter(pk=change_id, workspace_id=workspace_id).first()
        if change is None:
            raise NotFound
        if change.state == PlanChangeState.TAKEN_BACK:
            return
        has_begun = change.first_day <= local_day(at or database_now(), account.time_zone)
        if has_begun or not _end(PlanChangeState.TAKEN_BACK, pk=change_id):
            raise PlanChangeOver


def carry_out_due(*, accounts: Sequence[CreditAccount], at: datetime) -> int:
    """Begin what the customers chose for months that have begun at `at`; returns how many. Needs the locks of the
    accounts."""
    by_id = {account.pk: account for account in accounts}
    waiting = PlanChange.objects.select_related("plan_version").filter(
        workspace_id__in=list(by_id), state=PlanChangeState.PENDING
    )
    return sum(_carry_out(change, by_id[change.workspace_id].time_zone, at) for change in waiting)


def _carry_out(change: PlanChange, time_zone: str, at: datetime) -> bool:
    if change.first_day > local_day(at, time_zone) or not _end(PlanChangeState.DONE, pk=change.pk):
        return False
    current = current_subscription(change.workspace_id)
    # A zone that was changed since may have its month begin before the plan that is on did, or before these terms were
    # in force: then it begins with those. Refused, it would keep the workspace from every invoice.
    begins_at = max(day_start(change.first_day, time_zone), change.plan_version.effective_at)
    if current is not None and begins_at < current.starts_at <= at:
        begins_at = current.starts_at
    subscriptions.begin(
        workspace_id=change.workspace_id,
        current=current,
        plan_version=change.plan_version,
        at=begins_at,
    )
    logger.info("plan_change_carried_out", extra={"workspace_id": str(change.workspace_id)})
    return True


def carry_out_plan_changes(*, at: datetime | None = None) -> int:
    """Carry out every change whose month has begun; returns how many. For the clock: as often as one likes, also twice
    at once. One that fails is logged, and keeps none of the others waiting.
    """
    moment = at or database_now()
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"moment": moment})
        due = [workspace_id for (workspace_id,) in cursor.fetchall()]
    return sum(_carry_out_if_possible(workspace_id, moment) for workspace_id in due)


def _carry_out_if_possible(workspace_id: uuid.UUID, moment: datetime) -> int:
    try:
        with transaction.atomic():
            account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
            return carry_out_due(accounts=[account], at=moment)
    except DomainError as error:
        # Nobody else waits for it: it is tried again in some seconds.
        logger.error(
            "plan_change_refused", extra={"workspace_id": str(workspace_id), "error_code": error.code}
        )
        return 0


def _end(state: PlanChangeState, **which: uuid.UUID) -> bool:
    """Give what waits its end, once: False where something else did."""
    waiting = PlanChange.objects.filter(**which, state=PlanChangeState.PENDING)
    return bool(waiting.update(state=state, ended_at=database_now()))
