"""Prices and plans in the console: nothing is saved that was not shown before, and what is shown is so."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from billing.models import Plan, PlanVersion, PriceVersion, Subscription
from billing.periods import month_at, month_before
from billing.selectors.plans import current_subscription
from billing.selectors.prices import current_price
from billing.services.plans import add_plan_version, ensure_first_plan, subscribe
from billing.services.prices import add_price_version, ensure_first_price
from portal.console.price_preview import preview
from portal.lib.clock import now
from tests.billing.books import at_once
from tests.console.money_rows import used
from tts.models import Device

pytestmark = pytest.mark.django_db

PRICES = "/console/prices/new/"


@pytest.fixture
def first_price(db: None) -> PriceVersion:
    ensure_first_price()
    return PriceVersion.objects.get(number=1)


def price_values(**changes: str) -> dict[str, str]:
    """The form as a browser sends it: the general rates doubled, and rates for h200."""
    return {
        "interactive": "0.024",
        "standard": "0.016",
        "batch": "0.008",
        "minimum": "0.01",
        "effective_at": "",
        "reason": "The power is dearer",
        "seen": "",
        "rates-TOTAL_FORMS": "2",
        "rates-INITIAL_FORMS": "0",
        "rates-0-device_class": "h200",
        "rates-0-interactive": "0.09",
        "rates-0-standard": "0.06",
        "rates-0-batch": "0.03",
        "rates-1-device_class": "",
        **changes,
    }


def seen_in(page: str) -> str:
    (found,) = re.findall(r'name="seen" value="([0-9a-f]*)"', page)
    return str(found)


def looked_at(client: Client, place: str, values: dict[str, str]) -> str:
    """What the preview calls what it showed."""
    return seen_in(client.post(place, values).content.decode())


def test_a_price_is_saved_after_its_effect_was_shown(
    operator: User, operator_client: Client, first_price: PriceVersion
) -> None:
    values = price_values()
    # Not even with the button of a preview that was never seen.
    page = operator_client.post(PRICES, {**values, "save": "yes"}).content.decode()
    assert PriceVersion.objects.count() == 1
    assert "What this changes" in page
    assert "+100.0 %" in page
    answer = operator_client.post(PRICES, {**values, "save": "yes", "seen": seen_in(page)})
    assert answer["Location"] == "/console/prices/"
    price = current_price()
    assert (price.number, price.interactive_gpu_second_micros, price.minimum_charge_micros) == (
        2,
        24_000,
        10_000,
    )
    assert price.device_class_rates == {"h200": {"interactive": 90_000, "standard": 60_000, "batch": 30_000}}
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.actor, entry.reason) == ("price.add", operator, "The power is dearer")
    assert (entry.before["interactive_gpu_second_micros"], entry.after["interactive_gpu_second_micros"]) == (
        12_000,
        24_000,
    )
    first_price.refresh_from_db()
    assert first_price.interactive_gpu_second_micros == 12_000
    assert "In force: price 2" in operator_client.get("/console/prices/").content.decode()


def test_what_was_changed_after_the_preview_is_shown_again(
    operator_client: Client, first_price: PriceVersion
) -> None:
    values = price_values()
    seen = looked_at(operator_client, PRICES, values)
    for changed in (
        {"interactive": "0.5"},
        {"rates-0-batch": "0.031"},
        {"rates-0-device_class": "h100"},
        {"minimum": "1"},
        {"effective_at": "2099-01-01T00:00"},
    ):
        operator_client.post(PRICES, {**values, **changed, "save": "yes", "seen": seen})
    # Nor when another operator was first: what is in force is not what it was compared with.
    add_price_version(
        version=PriceVersion(
            interactive_gpu_second_micros=1, standard_gpu_second_micros=1, batch_gpu_second_micros=1
        )
    )
    operator_client.post(PRICES, {**values, "save": "yes", "seen": seen})
    assert PriceVersion.objects.count() == 2
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"interactive": "-0.01"},
        {"standard": ""},
        {"batch": "NaN"},
        {"minimum": "0.0000001"},
        {"reason": " "},
        {"effective_at": "2020-01-01T00:00"},
        {"effective_at": "soon"},
        {"rates-0-batch": ""},
        {"rates-0-batch": "-1"},
        {"rates-0-device_class": "H 200!"},
        {"rates-0-device_class": ""},
        {
            "rates-1-device_class": "h200",
            "rates-1-interactive": "1",
            "rates-1-standard": "1",
            "rates-1-batch": "1",
        },
        {"rates-TOTAL_FORMS": "100000"},
        {"rates-TOTAL_FORMS": "none"},
    ],
)
def test_a_price_that_is_none_is_neither_shown_nor_saved(
    operator_client: Client, first_price: PriceVersion, changes: dict[str, str]
) -> None:
    answer = operator_client.post(PRICES, {**price_values(**changes), "save": "yes"})
    assert answer.status_code == 200
    assert "What this changes" not in answer.content.decode()
    assert PriceVersion.objects.count() == 1
    assert not AuditEntry.objects.exists()


def test_the_preview_says_what_changes_for_whom_and_what_last_month_would_have_cost(
    operator_client: Client, first_price: PriceVersion, alice_workspace: Workspace
) -> None:
    plan = Plan.objects.create(code="studio", name="Studio")
    version = add_plan_version(version=PlanVersion(plan=plan, effective_at=now()))
    subscribe(workspace_id=alice_workspace.pk, plan_version=version)
    Device.objects.create(name="GPU-1", node_name="node", kind="gpu", model_name="NVIDIA H200", engine="x")
    month = month_before(month_at(now(), "UTC"))
    used(
        alice_workspace,
        day=month.first_day,
        device_class="h200",
        job_class="batch",
        gpu_ms=10_500,
        rate=4_000,
    )
    used(
        alice_workspace,
        day=month.last_day,
        device_class="cpu",
        job_class="interactive",
        gpu_ms=2_000,
        rate=12_000,
    )
    # Neither this month's nor the one's before.
    for day in (month.last_day + timedelta(days=2), month.first_day - timedelta(days=2)):
        used(alice_workspace, day=day, device_class="cpu", job_class="batch", gpu_ms=99_000, rate=4_000)
    new = PriceVersion(
        interactive_gpu_second_micros=24_000,
        standard_gpu_second_micros=8_000,
        batch_gpu_second_micros=2_000,
        device_class_rates={"h200": {"interactive": 12_000, "standard": 8_000, "batch": 6_000}},
    )
    shown = preview(version=new, before=first_price, now=now())
    assert [(row.device_class, row.before_micros, row.after_micros) for row in shown.usage] == [
        ("cpu", 24_000, 48_000),
        ("h200", 42_000, 63_000),
    ]
    assert (shown.before_micros, shown.after_micros) == (66_000, 111_000)
    changes = {
        (one.device_class, one.job_class): (one.before_micros, one.after_micros, one.percent_text)
        for one in shown.rates
    }
    assert changes == {
        ("", "interactive"): (12_000, 24_000, "+100.0 %"),
        ("", "standard"): (8_000, 8_000, "±0 %"),
        ("", "batch"): (4_000, 2_000, "−50.0 %"),
        ("h200", "interactive"): (12_000, 12_000, "±0 %"),
        ("h200", "standard"): (8_000, 8_000, "±0 %"),
        ("h200", "batch"): (4_000, 6_000, "+50.0 %"),
    }
    assert ("Studio", 1) in [(str(name), count) for name, count in shown.plans]


def test_the_page_says_when_there_is_no_minimum_charge(
    operator_client: Client, first_price: PriceVersion
) -> None:
    assert first_price.minimum_charge_micros == 0
    page = operator_client.get("/console/prices/").content.decode()
    assert "There is no minimum charge." in page
    assert "A job costs at least" not in page


@pytest.mark.django_db(transaction=True)
def test_prices_that_are_stored_at_once_get_numbers_of_their_own(first_price: PriceVersion) -> None:
    def add(number: int) -> int:
        return add_price_version(
            version=PriceVersion(
                interactive_gpu_second_micros=number,
                standard_gpu_second_micros=number,
                batch_gpu_second_micros=number,
            )
        ).number

    assert sorted(one for one in at_once(6, add) if isinstance(one, int)) == [2, 3, 4, 5, 6, 7]


def plan_values(**changes: str) -> dict[str, Any]:
    return {
        "monthly_fee_micros": "49.90",
        "included_gpu_seconds": "3600",
        "fair_share_weight": "2",
        "voices": "20",
        "reason": "A new offer",
        "seen": "",
        **changes,
    }


@pytest.fixture
def standard(db: None) -> Plan:
    ensure_first_plan()
    return Plan.objects.get(code="standard")


def save_plan(client: Client, place: str, values: dict[str, Any]) -> None:
    client.post(place, {**values, "save": "yes", "seen": looked_at(client, place, values)})


def test_a_plans_new_version_leaves_everybody_where_they_are(
    operator_client: Client, standard: Plan, alice_workspace: Workspace
) -> None:
    first = PlanVersion.objects.get(plan=standard)
    subscribe(workspace_id=alice_workspace.pk, plan_version=first)
    place = "/console/plans/standard/"
    page = operator_client.post(place, {**plan_values(), "save": "yes"}).content.decode()
    assert PlanVersion.objects.count() == 1
    assert "keeps the version that it has" in page
    save_plan(operator_client, place, plan_values())
    second = PlanVersion.objects.get(plan=standard, number=2)
    assert (second.monthly_fee_micros, second.included_gpu_seconds, second.fair_share_weight) == (
        49_900_000,
        3600,
        2,
    )
    assert (second.voices, second.queued_jobs) == (20, None)
    subscription = current_subscription(alice_workspace.pk)
    assert subscription is not None
    assert subscription.plan_version_id == first.pk
    assert AuditEntry.objects.get().act == "plan.add"


def test_everybody_on_a_plan_is_moved_when_that_is_asked_for(
    operator_client: Client, standard: Plan, alice_workspace: Workspace, bob_workspace: Workspace
) -> None:
    first = PlanVersion.objects.get(plan=standard)
    other = Plan.objects.create(code="other", name="Other")
    others = add_plan_version(version=PlanVersion(plan=other, effective_at=now()))
    subscribe(workspace_id=alice_workspace.pk, plan_version=first)
    subscribe(workspace_id=bob_workspace.pk, plan_version=others)
    save_plan(operator_client, "/console/plans/standard/", plan_values(move="on"))
    alice_workspace.refresh_from_db()
    bob_workspace.refresh_from_db()
    assert (alice_workspace.weight, alice_workspace.voices_limit) == (2, 20)
    assert (bob_workspace.weight, bob_workspace.voices_limit) == (1, None)
    moved = AuditEntry.objects.get(act="plan.move")
    assert moved.after == {"number": 2, "workspaces": 1}
    # There is nobody left to move.
    before = list(Subscription.objects.order_by("pk").values_list())
    operator_client.post("/console/plans/standard/move/", {"reason": "Again"})
    assert list(Subscription.objects.order_by("pk").values_list()) == before
    assert AuditEntry.objects.filter(act="plan.move").count() == 1


def test_a_version_from_later_on_moves_nobody_and_is_not_in_force(
    operator_client: Client, standard: Plan, alice_workspace: Workspace
) -> None:
    subscribe(workspace_id=alice_workspace.pk, plan_version=PlanVersion.objects.get(plan=standard))
    values = plan_values(effective_at="2099-01-01T00:00")
    answer = operator_client.post("/console/plans/standard/", {**values, "move": "on", "save": "yes"})
    assert "Nobody can be moved" in answer.content.decode()
    assert PlanVersion.objects.count() == 1
    save_plan(operator_client, "/console/plans/standard/", values)
    assert PlanVersion.objects.get(number=2).effective_at == datetime(2099, 1, 1, tzinfo=UTC)
    operator_client.post("/console/plans/standard/move/", {"reason": "Too early"})
    subscription = current_subscription(alice_workspace.pk)
    assert subscription is not None
    assert subscription.plan_version.number == 1
    alice_workspace.refresh_from_db()
    assert alice_workspace.weight == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"monthly_fee_micros": "-1"},
        {"included_gpu_seconds": "1.5"},
        {"fair_share_weight": "0"},
        {"fair_share_weight": ""},
        {"voices": "-3"},
        {"voices": "99999999999999999999"},
        {"effective_at": "2020-01-01T00:00"},
        {"reason": ""},
    ],
)
def test_a_version_that_is_none_is_neither_shown_nor_saved(
    operator_client: Client, standard: Plan, changes: dict[str, str]
) -> None:
    answer = operator_client.post("/console/plans/standard/", {**plan_values(**changes), "save": "yes"})
    assert answer.status_code == 200
    assert "What this changes" not in answer.content.decode()
    assert PlanVersion.objects.count() == 1
    assert not AuditEntry.objects.exists()


def test_a_new_plan_comes_with_its_first_version(operator_client: Client, standard: Plan) -> None:
    values = plan_values(name="Studio", code="studio", is_offered="on")
    save_plan(operator_client, "/console/plans/new/", values)
    plan = Plan.objects.get(code="studio")
    assert (plan.name, plan.is_offered, plan.is_default) == ("Studio", True, False)
    assert plan.versions.get().number == 1
    page = operator_client.get("/console/plans/").content.decode()
    assert "Studio" in page
    # The code is taken, and "new" is the address of the form.
    for code in ("studio", "new", "two words", ""):
        operator_client.post("/console/plans/new/", {**values, "code": code, "save": "yes"})
    assert Plan.objects.count() == 2
    assert operator_client.get("/console/plans/never/").status_code == 404


@pytest.mark.parametrize(
    "place", [PRICES, "/console/plans/new/", "/console/plans/standard/", "/console/plans/standard/move/"]
)
def test_customers_set_no_prices_and_no_plans(
    alice_client: Client, first_price: PriceVersion, standard: Plan, place: str
) -> None:
    values = {**price_values(), **plan_values(), "save": "yes", "key": str(uuid.uuid4())}
    assert alice_client.post(place, values).status_code == 404
    assert PriceVersion.objects.count() == PlanVersion.objects.count() == Plan.objects.count() == 1
    assert not AuditEntry.objects.exists()
