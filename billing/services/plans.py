"""Plans: setting them, and putting a workspace on one."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from billing.errors import PlanFeeNotCovered
from billing.models import CreditAccount, Plan, PlanChange, PlanVersion, Subscription
from billing.selectors.plans import begins_next_month, current_subscription, default_plan_version
from billing.services import ledger
from billing.services.plan_changes import carry_out_due, replace_waiting, schedule
from billing.services.subscriptions import begin
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

    The same version again changes nothing. Another one takes the place of a change that waited for the next month; one
    whose month has begun by then is carried out before. Locks the credit account.

    Raises:
        PlanNotInForce: the version is not in force at that moment, or the plan before it began later. Nothing changed.
    """
    account = _locked(workspace_id)
    moment = database_now() if at is None else at
    carry_out_due(accounts=[account], at=moment)
    return _begin_now(account, plan_version, moment)


@transaction.atomic
def change_plan(
    *,
    workspace_id: uuid.UUID,
    plan_version: PlanVersion,
    requested_by_id: uuid.UUID | None = None,
    at: datetime | None = None,
) -> PlanChange | None:
    """Put a workspace on another plan by its own wish, `at` being when it is (None: now). Returns the change that waits
    for the next month, None where the plan is in force now. Locks the credit account.

    What is more begins now, what is less with the next month (billing.selectors.plans.begins_next_month): the fee falls
    due at a month's end, and included credit is there at its beginning. The newest choice counts. A dearer plan needs
    a month's fee to be there.

    Raises:
        PlanFeeNotCovered, PlanNotInForce. Nothing was changed.
    """
    account = _locked(workspace_id)
    moment = database_now() if at is None else at
    carry_out_due(accounts=[account], at=moment)
    current = current_subscription(workspace_id)
    now_on = current.plan_version if current is not None else None
    if now_on is not None and now_on.pk == plan_version.pk:
        return None
    fee = plan_version.monthly_fee_micros
    spendable = account.available_micros + account.credit_limit_micros
    if fee > (now_on.monthly_fee_micros if now_on is not None else 0) and spendable < fee:
        raise PlanFeeNotCovered(
            fee=money_exact(fee, account.currency), available=money_exact(spendable, account.currency)
        )
    if begins_next_month(now_on, plan_version):
        return schedule(
            account=account, plan_version=plan_version, at=moment, requested_by_id=requested_by_id
        )
    _begin_now(account, plan_version, moment)
    return None


def _locked(workspace_id: uuid.UUID) -> CreditAccount:
    ledger.ensure_account(workspace_id=workspace_id)
    return CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)


def _begin_now(account: CreditAccount, plan_version: PlanVersion, moment: datetime) -> Subscription:
    current = current_subscription(account.pk)
    if current is not None and current.plan_version_id == plan_version.pk:
        return current
    replace_waiting(workspace_id=account.pk)
    return begin(workspace_id=account.pk, current=current, plan_version=plan_version, at=moment)


def subscribe_to_default(*, workspace_id: uuid.UUID) -> None:
    """Put a workspace that has no plan on the default one; nothing where there is none, or it has one."""
    version = default_plan_version()
    if version is not None and current_subscription(workspace_id) is None:
        subscribe(workspace_id=workspace_id, plan_version=version)
