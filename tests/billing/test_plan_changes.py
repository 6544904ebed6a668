"""What a customer chose for the next month: begun once, at the month's first moment, whoever comes first and when."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest

from accounts.models import Workspace
from billing.errors import PlanChangeOver, PlanFeeNotCovered
from billing.models import (
    CreditAccount,
    CreditGrant,
    GrantKind,
    InvoiceLine,
    LineKind,
    PlanChange,
    PlanVersion,
    PriceVersion,
    Subscription,
)
from billing.selectors.plans import current_subscription, waiting_change
from billing.services.included import grant_all_included
from billing.services.invoice_run import close_due_periods
from billing.services.invoices import close_month
from billing.services.plan_changes import carry_out_plan_changes, take_back
from billing.services.plans import change_plan, subscribe
from billing.services.profiles import set_time_zone
from billing.upkeep import STEPS
from portal.lib.errors import NotFound
from tests.billing.books import all_books, at_once
from tests.billing.invoicing.months import LONG_AGO, YUAN, money
from tests.billing.speech import plan, subscribed

pytestmark = pytest.mark.django_db
OCTOBER_10 = datetime(2025, 10, 10, 3, tzinfo=UTC)
# The first moment of November in Shanghai.
MIDNIGHT = datetime(2025, 10, 31, 16, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


@pytest.fixture
def big(db: None) -> PlanVersion:
    return plan(300 * YUAN, included_gpu_seconds=3_000)


@pytest.fixture
def small(db: None) -> PlanVersion:
    return plan(30 * YUAN)


@pytest.fixture
def customer(big: PlanVersion) -> uuid.UUID:
    """On a big plan since long ago, in Shanghai, with 1,000 yuan paid."""
    return make_customer(big)


def make_customer(version: PlanVersion) -> uuid.UUID:
    workspace_id = Workspace.objects.create(name="w").pk
    CreditAccount.objects.create(pk=workspace_id, time_zone="Asia/Shanghai")
    money(workspace_id, 1_000 * YUAN, GrantKind.PAID)
    subscribed(workspace_id, version, LONG_AGO)
    return uuid.UUID(str(workspace_id))


def choose(workspace_id: uuid.UUID, version: PlanVersion, at: datetime = OCTOBER_10) -> PlanChange | None:
    return change_plan(workspace_id=workspace_id, plan_version=version, at=at)


def spans(workspace_id: uuid.UUID) -> list[tuple[int, datetime, datetime | None]]:
    rows = Subscription.objects.filter(workspace_id=workspace_id).order_by("starts_at")
    return [(row.plan_version_id, row.starts_at, row.ends_at) for row in rows]


def everything() -> tuple[object, ...]:
    return (
        all_books(),
        list(PlanChange.objects.order_by("pk").values_list()),
        list(Subscription.objects.order_by("pk").values_list()),
        list(Workspace.objects.order_by("pk").values_list()),
    )


def states(workspace_id: uuid.UUID) -> list[str]:
    rows = PlanChange.objects.filter(workspace_id=workspace_id).order_by("created_at")
    return list(rows.values_list("state", flat=True))


@pytest.mark.parametrize(
    ("fee", "included", "begins"),
    [
        (400, 4_000, None),
        (400, 3_000, None),
        (300, 3_000, None),
        (299, 4_000, date(2025, 11, 1)),
        (400, 2_999, date(2025, 11, 1)),
        (0, 0, date(2025, 11, 1)),
    ],
)
def test_what_is_more_begins_now_and_what_is_less_with_the_next_month(
    customer: uuid.UUID, big: PlanVersion, fee: int, included: int, begins: date | None
) -> None:
    other = plan(fee * YUAN, included_gpu_seconds=included)
    books = all_books()
    waiting = choose(customer, other)
    on = current_subscription(customer)
    assert on is not None
    assert (waiting and waiting.first_day, on.plan_version_id) == (begins, big.pk if begins else other.pk)
    assert all_books() == books


def test_the_month_is_that_of_the_workspaces_zone(customer: uuid.UUID, small: PlanVersion) -> None:
    waiting = choose(customer, small, MIDNIGHT - INSTANT)
    assert waiting is not None
    assert waiting.first_day == date(2025, 11, 1)
    other = make_customer(current_subscription(customer).plan_version)  # type: ignore[union-attr]
    waiting = choose(other, small, MIDNIGHT)
    assert waiting is not None
    assert waiting.first_day == date(2025, 12, 1)


@pytest.mark.parametrize("late", [timedelta(0), timedelta(days=2, hours=5)])
def test_the_clock_begins_it_once_at_the_months_first_moment_however_late(
    customer: uuid.UUID, big: PlanVersion, late: timedelta
) -> None:
    other = plan(30 * YUAN)
    PlanVersion.objects.filter(pk=other.pk).update(voices=3, fair_share_weight=1)
    choose(customer, PlanVersion.objects.get(pk=other.pk))
    before = everything()
    assert carry_out_plan_changes(at=MIDNIGHT - INSTANT) == 0
    assert everything() == before
    assert carry_out_plan_changes(at=MIDNIGHT + late) == 1
    assert spans(customer) == [(big.pk, LONG_AGO, MIDNIGHT), (other.pk, MIDNIGHT, None)]
    assert Workspace.objects.get(pk=customer).voices_limit == 3
    assert states(customer) == ["done"]
    after = everything()
    assert carry_out_plan_changes(at=MIDNIGHT + late) == 0
    assert everything() == after
    assert carry_out_plan_changes in [step for step, _every in STEPS]


def test_the_old_fee_is_whole_and_the_new_one_begins_there_also_without_a_clock(
    customer: uuid.UUID, small: PlanVersion
) -> None:
    choose(customer, small)
    # No clock ran until December: both months are closed in one go, and nothing else begins the plan.
    assert close_due_periods(at=datetime(2025, 12, 2, tzinfo=UTC)) >= 2
    fees = InvoiceLine.objects.filter(kind=LineKind.FEE, invoice__workspace_id=customer)
    by_month = list(fees.order_by("invoice__period_start").values_list("amount_micros", flat=True))
    assert by_month[-2:] == [300 * YUAN, 30 * YUAN]
    assert states(customer) == ["done"]


@pytest.mark.parametrize("seconds", [0, 60])
def test_the_month_begins_with_what_the_new_plan_includes(
    customer: uuid.UUID, price: PriceVersion, seconds: int
) -> None:
    choose(customer, plan(30 * YUAN, included_gpu_seconds=seconds))
    assert grant_all_included(at=MIDNIGHT) == (1 if seconds else 0)
    given = CreditGrant.objects.filter(workspace_id=customer, kind=GrantKind.INCLUDED)
    amounts = [seconds * price.interactive_gpu_second_micros] if seconds else []
    assert list(given.values_list("amount_micros", flat=True)) == amounts
    assert states(customer) == ["done"]
    assert carry_out_plan_changes(at=MIDNIGHT) == 0


def test_what_was_taken_back_never_begins(customer: uuid.UUID, big: PlanVersion, small: PlanVersion) -> None:
    waiting = choose(customer, small)
    assert waiting is not None
    for _ in range(2):
        take_back(workspace_id=customer, change_id=waiting.pk, at=MIDNIGHT - INSTANT)
    assert carry_out_plan_changes(at=MIDNIGHT) == 0
    assert (states(customer), spans(customer)) == (["taken_back"], [(big.pk, LONG_AGO, None)])
    assert waiting_change(customer) is None
    again = choose(customer, small)
    assert again is not None
    assert again.pk != waiting.pk


@pytest.mark.parametrize("case", ["begun, not carried out", "carried out", "replaced"])
def test_what_cannot_be_taken_back_stays(customer: uuid.UUID, small: PlanVersion, case: str) -> None:
    waiting = choose(customer, small)
    assert waiting is not None
    at = MIDNIGHT
    if case == "carried out":
        carry_out_plan_changes(at=MIDNIGHT)
    elif case == "replaced":
        choose(customer, plan(0))
        at = OCTOBER_10
    before = everything()
    with pytest.raises(PlanChangeOver) as refused:
        take_back(workspace_id=customer, change_id=waiting.pk, at=at)
    assert (refused.value.code, refused.value.status) == ("plan_change_over", 409)
    assert everything() == before


def test_what_others_chose_is_not_there(customer: uuid.UUID, big: PlanVersion, small: PlanVersion) -> None:
    waiting = choose(customer, small)
    assert waiting is not None
    other = make_customer(big)
    before = everything()
    for change_id in (waiting.pk, uuid.uuid4()):
        with pytest.raises(NotFound):
            take_back(workspace_id=other, change_id=change_id, at=OCTOBER_10)
    assert everything() == before


def test_the_newest_choice_counts(customer: uuid.UUID, big: PlanVersion, small: PlanVersion) -> None:
    first = choose(customer, small)
    before = everything()
    assert choose(customer, small, OCTOBER_10 + timedelta(days=1)) == first
    assert everything() == before
    free, bigger = plan(0), plan(900 * YUAN, included_gpu_seconds=9_000)
    choose(customer, free)
    assert states(customer) == ["replaced", "pending"]
    assert choose(customer, bigger) is None
    assert states(customer) == ["replaced", "replaced"]
    assert carry_out_plan_changes(at=MIDNIGHT) == 0
    assert spans(customer) == [(big.pk, LONG_AGO, OCTOBER_10), (bigger.pk, OCTOBER_10, None)]


def test_a_dearer_plan_that_includes_less_needs_its_fee_too(customer: uuid.UUID) -> None:
    before = everything()
    with pytest.raises(PlanFeeNotCovered):
        choose(customer, plan(1_001 * YUAN))
    assert everything() == before


@pytest.mark.parametrize("late", [False, True])
def test_an_operator_takes_its_place_and_what_had_begun_stays_begun(
    customer: uuid.UUID, big: PlanVersion, small: PlanVersion, late: bool
) -> None:
    choose(customer, small)
    other = plan(7 * YUAN)
    at = MIDNIGHT + timedelta(hours=1) if late else MIDNIGHT - timedelta(hours=1)
    subscribe(workspace_id=customer, plan_version=other, at=at)
    between = [(small.pk, MIDNIGHT, at)] if late else []
    ended = MIDNIGHT if late else at
    assert spans(customer) == [(big.pk, LONG_AGO, ended), *between, (other.pk, at, None)]
    assert states(customer) == ["done" if late else "replaced"]
    assert carry_out_plan_changes(at=at + timedelta(days=9)) == 0


def test_it_begins_with_the_month_of_the_zone_that_the_workspace_has_then(
    customer: uuid.UUID, big: PlanVersion, small: PlanVersion
) -> None:
    choose(customer, small)
    set_time_zone(workspace_id=customer, time_zone="America/New_York")
    assert carry_out_plan_changes(at=MIDNIGHT) == 0
    in_new_york = datetime(2025, 11, 1, 4, tzinfo=UTC)
    assert carry_out_plan_changes(at=in_new_york) == 1
    assert spans(customer)[-1] == (small.pk, in_new_york, None)
    invoice = close_month(workspace_id=customer, month=date(2025, 10, 1), at=in_new_york)
    assert invoice is not None
    assert invoice.fee_micros == 300 * YUAN


def test_a_zone_whose_month_began_before_the_plan_did_keeps_no_invoice_back(
    customer: uuid.UUID, small: PlanVersion
) -> None:
    set_time_zone(workspace_id=customer, time_zone="America/New_York")
    # Still October there, and November in Shanghai already.
    bigger = plan(400 * YUAN, included_gpu_seconds=4_000)
    upgraded_at = MIDNIGHT + timedelta(hours=2)
    assert choose(customer, bigger, upgraded_at) is None
    waiting = choose(customer, small, upgraded_at + timedelta(hours=1))
    assert waiting is not None
    set_time_zone(workspace_id=customer, time_zone="Asia/Shanghai")
    assert carry_out_plan_changes(at=upgraded_at + timedelta(hours=2)) == 1
    # It begins where the plan before it did: that one has lasted no moment of the month.
    assert spans(customer)[1:] == [(bigger.pk, upgraded_at, upgraded_at), (small.pk, upgraded_at, None)]
    assert (
        close_month(workspace_id=customer, month=date(2025, 10, 1), at=MIDNIGHT + timedelta(days=1))
        is not None
    )


def test_a_version_that_came_into_force_within_the_new_zones_month_begins_then(customer: uuid.UUID) -> None:
    set_time_zone(workspace_id=customer, time_zone="America/New_York")
    in_force_at = MIDNIGHT + timedelta(hours=1)
    newest = plan(30 * YUAN)
    PlanVersion.objects.filter(pk=newest.pk).update(effective_at=in_force_at)
    assert choose(customer, newest, in_force_at + timedelta(hours=1)) is not None
    set_time_zone(workspace_id=customer, time_zone="Asia/Shanghai")
    assert carry_out_plan_changes(at=in_force_at + timedelta(hours=2)) == 1
    assert spans(customer)[1:] == [(newest.pk, in_force_at, None)]


def test_one_that_cannot_begin_keeps_nobody_waiting(
    customer: uuid.UUID, big: PlanVersion, small: PlanVersion
) -> None:
    others = [make_customer(big) for _ in range(2)]
    for workspace_id in (customer, *others):
        choose(workspace_id, small)
    # Whatever led to it: the plan that is on begins later than it is now.
    Subscription.objects.filter(workspace_id=customer).update(starts_at=MIDNIGHT + timedelta(days=2))
    assert carry_out_plan_changes(at=MIDNIGHT + timedelta(days=1)) == 2
    assert [states(workspace_id) for workspace_id in (customer, *others)] == [["pending"], ["done"], ["done"]]


# -- At once -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_plans_chosen_at_once_leave_one_waiting(customer: uuid.UUID) -> None:
    versions = [plan(number * YUAN) for number in range(6)]
    outcomes = at_once(6, lambda number: choose(customer, versions[number]))
    assert all(isinstance(outcome, PlanChange) for outcome in outcomes)
    assert sorted(states(customer)) == ["pending"] + ["replaced"] * 5
    assert carry_out_plan_changes(at=MIDNIGHT) == 1
    assert len(spans(customer)) == 2


@pytest.mark.django_db(transaction=True)
def test_ten_clocks_at_once_begin_it_once(customer: uuid.UUID, big: PlanVersion, small: PlanVersion) -> None:
    choose(customer, small)
    outcomes = at_once(10, lambda _: carry_out_plan_changes(at=MIDNIGHT))
    assert sorted(outcomes, key=str) == [0] * 9 + [1]
    assert spans(customer) == [(big.pk, LONG_AGO, MIDNIGHT), (small.pk, MIDNIGHT, None)]


@pytest.mark.django_db(transaction=True)
def test_what_is_taken_back_while_the_clock_begins_it_is_one_of_both(
    customer: uuid.UUID, big: PlanVersion, small: PlanVersion
) -> None:
    waiting = choose(customer, small)
    assert waiting is not None

    def act(number: int) -> int:
        # Two hosts whose clocks differ by an instant at midnight.
        if number % 2:
            return carry_out_plan_changes(at=MIDNIGHT)
        take_back(workspace_id=customer, change_id=waiting.pk, at=MIDNIGHT - INSTANT)
        return 0

    outcomes = at_once(6, act)
    begun = sum(outcome == 1 for outcome in outcomes)
    refused = sum(isinstance(outcome, PlanChangeOver) for outcome in outcomes)
    assert (begun, refused, states(customer)) in [(1, 3, ["done"]), (0, 0, ["taken_back"])]
    assert len(spans(customer)) == 1 + begun
