"""Plans: setting them, and putting a workspace on one."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from accounts.services.workspaces import put_limits_in_force
from billing.errors import PlanFeeNotCovered, PlanNotInForce, PlanNotLeftNow
from billing.models import CreditAccount, Plan, PlanVersion, Subscription
from billing.selectors.plans import current_subscription, default_plan_version
from billing.services import ledger
from portal.lib.clock import database_now
from portal.lib.display import money_exact

FIRST_PLAN = "standard"


def ensure_first_plan() -> None:
    """Make the plan that new workspaces begin with where there is none: free, with the platform's own limits."""
    if Plan.objects.filter(is_default=True).exists():
        return
    with transaction.atomic():
        # The code is unique, so two calls at once make one.
        plan, made = Plan.objects.get_or_create(
            code=FIRST_PLAN, defaults={"name": "Standard", "is_default": True}
        )
        if made:
            PlanVersion.objects.create(plan=plan, number=1, effective_at=Now())


@transaction.atomic
def add_plan_version(*, version: PlanVersion) -> PlanVersion:
    """Store the next version of its plan, and return it with its number. Those before it are kept as they are.

    Who is on the plan stays on the version that they have until `subscribe` is called for them.
    """
    plan = Plan.objects.select_for_update().get(pk=version.plan_id)
    newest = PlanVersion.objects.filter(plan=plan).aggregate(newest=Max("number"))["newest"] or 0
    version.number = newest + 1
    version.save(force_insert=True)
    return version


@transaction.atomic
def subscribe(
    *, workspace_id: uuid.UUID, plan_version: PlanVersion, at: datetime | None = None
) -> Subscription:
    """Put a workspace on a version of a plan from `at` (None: now) on, and its limits in force at once.

    The same version again changes nothing. Locks the credit account.

    Raises:
        PlanNotInForce: the version is not in force at that moment, or the plan before it began later. Nothing changed.
    """
    ledger.ensure_account(workspace_id=workspace_id)
    CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
    moment = database_now() if at is None else at
    current = current_subscription(workspace_id)
    if current is not None and current.plan_version_id == plan_version.pk:
        return current
    if plan_version.effective_at > moment or (current is not None and current.starts_at > moment):
        raise PlanNotInForce
    if current is not None:
        Subscription.objects.filter(pk=current.pk, ends_at__isnull=True).update(ends_at=moment)
    subscription = Subscription.objects.create(
        workspace_id=workspace_id, plan_version=plan_version, starts_at=moment
    )
    put_limits_in_force(
        workspace_id=workspace_id,
        weight=plan_version.fair_share_weight,
        queued_jobs=plan_version.queued_jobs,
        running_segments=plan_version.running_segments,
        requests_per_minute=plan_version.requests_per_minute,
        characters_per_day=plan_version.characters_per_day,
        voices=plan_version.voices,
        storage_bytes=plan_version.storage_bytes,
        longest_job_characters=plan_version.longest_job_characters,
        retention_days=plan_version.retention_days,
    )
    return subscription


@transaction.atomic
def change_plan(*, workspace_id: uuid.UUID, plan_version: PlanVersion) -> Subscription:
    """Put a workspace on another plan by its own wish. Locks the credit account.

    The fee falls due at the month's end, and included credit is there at its beginning. So the month's fee has to be
    there when a dearer plan begins, and a plan that includes credit is not left for a smaller one in the middle of a
    month: only an operator does that.

    Raises:
        PlanFeeNotCovered, PlanNotLeftNow, PlanNotInForce. Nothing was changed.
    """
    ledger.ensure_account(workspace_id=workspace_id)
    account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
    current = current_subscription(workspace_id)
    if current is not None and current.plan_version_id == plan_version.pk:
        return current
    fee_now = current.plan_version.monthly_fee_micros if current is not None else 0
    included_now = current.plan_version.included_gpu_seconds if current is not None else 0
    leaves = plan_version.monthly_fee_micros < fee_now or plan_version.included_gpu_seconds < included_now
    if current is not None and leaves and included_now:
        raise PlanNotLeftNow(plan=current.plan_version.plan.name)
    spendable = account.available_micros + account.credit_limit_micros
    if plan_version.monthly_fee_micros > fee_now and spendable < plan_version.monthly_fee_micros:
        raise PlanFeeNotCovered(
            fee=money_exact(plan_version.monthly_fee_micros, account.currency),
            available=money_exact(spendable, account.currency),
        )
    return subscribe(workspace_id=workspace_id, plan_version=plan_version)


def subscribe_to_default(*, workspace_id: uuid.UUID) -> None:
    """Put a workspace that has no plan on the default one; nothing where there is none, or it has one."""
    version = default_plan_version()
    if version is not None and current_subscription(workspace_id) is None:
        subscribe(workspace_id=workspace_id, plan_version=version)
