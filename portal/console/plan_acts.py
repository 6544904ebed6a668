"""What operators do to plans: new plans, new versions, and moving those who are on one."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.services.audit import record_act
from billing.models import Plan, PlanVersion, Subscription
from billing.selectors.plans import newest_version
from billing.services.plans import add_plan_version, subscribe
from portal.console.plan_rows import TERMS
from portal.lib.clock import database_now
from portal.lib.errors import Conflict


def _words(version: PlanVersion) -> dict[str, Any]:
    terms = {name: getattr(version, name) for name, _label in TERMS}
    return {"number": version.number, **{name: value for name, value in terms.items() if value is not None}}


@transaction.atomic
def add_version_for_operator(*, version: PlanVersion, actor: User, reason: str) -> PlanVersion:
    """Store the next version of a plan, and the plan with it where it is new. `effective_at` of None: from now on."""
    if version.plan.pk is None or version.plan._state.adding:
        version.plan.save(force_insert=True)
        version.plan_id = version.plan.pk
    before = newest_version(version.plan)
    version.effective_at = version.effective_at or database_now()
    stored = add_plan_version(version=version)
    record_act(
        actor=actor,
        act="plan.add",
        object_kind="plan",
        object_id=stored.plan_id,
        object_name=f"{stored.plan.code} #{stored.number}",
        reason=reason,
        before=_words(before) if before is not None else {},
        after={**_words(stored), "effective_at": stored.effective_at.isoformat(timespec="seconds")},
    )
    return stored


def subscribers_elsewhere(version: PlanVersion) -> list[uuid.UUID]:
    """The workspaces on other versions of the same plan."""
    others = Subscription.objects.filter(plan_version__plan=version.plan_id, ends_at__isnull=True)
    return list(others.exclude(plan_version=version).values_list("workspace_id", flat=True))


def move_for_operator(*, plan: Plan, actor: User, reason: str) -> int:
    """Put everybody who is on another version of the plan on the one in force; returns how many.

    Each in a transaction of its own, so that nobody's jobs wait for all of them. Interrupted, it is run again: who was
    moved is not moved twice. Raises Conflict: no version is in force, or nobody is to be moved.
    """
    version = newest_version(plan)
    wanted = subscribers_elsewhere(version) if version is not None else []
    if version is None or not wanted:
        raise Conflict
    record_act(
        actor=actor,
        act="plan.move",
        object_kind="plan",
        object_id=plan.pk,
        object_name=f"{plan.code} #{version.number}",
        reason=reason,
        before={},
        after={"number": version.number, "workspaces": len(wanted)},
    )
    for workspace_id in wanted:
        subscribe(workspace_id=workspace_id, plan_version=version)
    return len(wanted)
