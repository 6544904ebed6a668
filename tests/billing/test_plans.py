"""Plans: their versions, who is on which, and the limits that follow."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from accounts.models import Workspace
from billing.errors import PlanFeeNotCovered, PlanNotInForce
from billing.models import Plan, PlanVersion, PriceVersion, Subscription
from billing.selectors.plans import current_subscription, offered_plans, subscriptions_within
from billing.selectors.prices import current_price, highest_rate, rate_for
from billing.services.plans import (
    add_plan_version,
    change_plan,
    ensure_first_plan,
    subscribe,
    subscribe_to_default,
)
from portal.lib.clock import now
from tests.billing.books import all_books, at_once, grant

pytestmark = pytest.mark.django_db
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def plan_version(code: str = "team", **fields: object) -> PlanVersion:
    plan, _ = Plan.objects.get_or_create(code=code, defaults={"name": code.title()})
    return add_plan_version(version=PlanVersion(plan=plan, **{"effective_at": LONG_AGO, **fields}))


def test_versions_are_numbered_in_their_plan() -> None:
    assert [plan_version().number, plan_version().number, plan_version("other").number] == [1, 2, 1]


@pytest.mark.django_db(transaction=True)
def test_versions_added_at_once_have_each_their_number() -> None:
    Plan.objects.create(code="team", name="Team")
    numbers = at_once(6, lambda _: plan_version().number)
    assert sorted(int(str(number)) for number in numbers) == [1, 2, 3, 4, 5, 6]


def test_a_plan_puts_its_limits_in_force() -> None:
    workspace = Workspace.objects.create(name="w")
    subscribe(
        workspace_id=workspace.pk,
        plan_version=plan_version(fair_share_weight=4, queued_jobs=7, voices=3, characters_per_day=900),
    )
    workspace.refresh_from_db()
    limits = (workspace.weight, workspace.queued_jobs_limit, workspace.voices_limit)
    assert limits == (4, 7, 3)
    assert (workspace.characters_per_day_limit, workspace.running_segments_limit) == (900, None)


def test_a_change_of_plan_ends_the_one_before_at_the_same_moment() -> None:
    workspace_id = uuid.uuid4()
    first, second = plan_version(), plan_version()
    subscribe(workspace_id=workspace_id, plan_version=first, at=LONG_AGO + timedelta(days=1))
    subscribe(workspace_id=workspace_id, plan_version=second, at=LONG_AGO + timedelta(days=9))
    spans = Subscription.objects.filter(workspace_id=workspace_id).order_by("starts_at")
    assert [(s.plan_version_id, s.starts_at.day, s.ends_at and s.ends_at.day) for s in spans] == [
        (first.pk, 2, 10),
        (second.pk, 10, None),
    ]
    within = subscriptions_within(workspace_id, LONG_AGO, LONG_AGO + timedelta(days=5))
    assert [s.plan_version_id for s in within] == [first.pk]


def test_the_same_plan_again_changes_nothing() -> None:
    workspace_id, version = uuid.uuid4(), plan_version()
    first = subscribe(workspace_id=workspace_id, plan_version=version)
    assert subscribe(workspace_id=workspace_id, plan_version=version).pk == first.pk
    assert Subscription.objects.count() == 1


@pytest.mark.parametrize("case", ["not yet in force", "before the plan before it"])
def test_a_plan_that_cannot_begin_then_is_refused(case: str) -> None:
    workspace_id = uuid.uuid4()
    subscribe(workspace_id=workspace_id, plan_version=plan_version(), at=LONG_AGO + timedelta(days=9))
    effective_at = LONG_AGO if case.startswith("before") else now() + timedelta(days=1)
    version = plan_version(effective_at=effective_at)
    at = LONG_AGO + timedelta(days=3) if case.startswith("before") else None
    before = list(Subscription.objects.values_list())
    with pytest.raises(PlanNotInForce):
        subscribe(workspace_id=workspace_id, plan_version=version, at=at)
    assert list(Subscription.objects.values_list()) == before


@pytest.mark.django_db(transaction=True)
def test_plans_chosen_at_once_leave_one_in_force() -> None:
    workspace_id = uuid.uuid4()
    versions = [plan_version() for _ in range(6)]
    at_once(6, lambda number: subscribe(workspace_id=workspace_id, plan_version=versions[number]))
    spans = list(Subscription.objects.filter(workspace_id=workspace_id).order_by("starts_at", "ends_at"))
    assert sum(span.ends_at is None for span in spans) == 1
    assert all(earlier.ends_at == later.starts_at for earlier, later in itertools.pairwise(spans))


def test_new_workspaces_begin_with_the_default_plan_once() -> None:
    workspace_id = uuid.uuid4()
    subscribe_to_default(workspace_id=workspace_id)
    assert current_subscription(workspace_id) is None
    for _ in range(2):
        ensure_first_plan()
        subscribe_to_default(workspace_id=workspace_id)
    assert Subscription.objects.filter(workspace_id=workspace_id).count() == 1
    assert [version.plan.code for version in offered_plans()] == ["standard"]


def test_offered_are_the_versions_in_force_the_cheapest_first() -> None:
    plan_version("big", monthly_fee_micros=90_000_000)
    cheap = plan_version("small", monthly_fee_micros=10_000_000)
    plan_version("small", monthly_fee_micros=1, effective_at=now() + timedelta(days=1))
    assert [version.plan.code for version in offered_plans()] == ["small", "big"]
    assert offered_plans()[0].pk == cheap.pk


# -- By a customer's own wish --------------------------------------------------------------------------------


def test_a_dearer_plan_begins_where_its_fee_is_there(workspace_id: uuid.UUID) -> None:
    dear = plan_version("dear", monthly_fee_micros=1_001)
    before = all_books()
    with pytest.raises(PlanFeeNotCovered):
        change_plan(workspace_id=workspace_id, plan_version=dear)
    assert (all_books(), Subscription.objects.count()) == (before, 0)
    grant(workspace_id, 1)
    change_plan(workspace_id=workspace_id, plan_version=dear)
    assert Subscription.objects.get().plan_version_id == dear.pk


# -- Prices ---------------------------------------------------------------------------------------------------


def dear_on_h200() -> PriceVersion:
    return PriceVersion.objects.create(
        number=1,
        interactive_gpu_second_micros=10,
        standard_gpu_second_micros=8,
        batch_gpu_second_micros=4,
        device_class_rates={"h200": {"interactive": 90, "standard": 60, "batch": 30}},
        effective_at=LONG_AGO,
    )


@pytest.mark.parametrize(
    ("device_class", "job_class", "micros"),
    [("h200", "interactive", 90), ("h200", "batch", 30), ("t4", "interactive", 10), ("", "standard", 8)],
)
def test_a_device_class_has_its_own_price_or_the_general_one(
    device_class: str, job_class: str, micros: int
) -> None:
    rate = rate_for(price=dear_on_h200(), job_class=job_class, device_class=device_class)
    assert rate.gpu_second_micros == micros


@pytest.mark.parametrize(("there", "micros"), [([], 10), (["t4"], 10), (["t4", "h200"], 90)])
def test_a_quote_reckons_with_the_dearest_device_that_is_there(there: list[str], micros: int) -> None:
    rate = highest_rate(price=dear_on_h200(), job_class="interactive", device_classes=there)
    assert rate.gpu_second_micros == micros


@pytest.mark.parametrize("act", ["update", "delete"])
def test_a_price_in_force_is_never_changed(act: str) -> None:
    price = dear_on_h200()
    rows = PriceVersion.objects.filter(pk=price.pk)
    with pytest.raises(IntegrityError, match="is in force"), transaction.atomic():
        rows.update(batch_gpu_second_micros=1) if act == "update" else rows.delete()
    assert current_price().batch_gpu_second_micros == 4


def test_a_price_that_is_not_in_force_yet_may_be_taken_back() -> None:
    price = dear_on_h200()
    later = PriceVersion.objects.create(
        number=2,
        interactive_gpu_second_micros=1,
        standard_gpu_second_micros=1,
        batch_gpu_second_micros=1,
        effective_at=now() + timedelta(days=1),
    )
    later.delete()
    assert list(PriceVersion.objects.values_list("pk", flat=True)) == [price.pk]
