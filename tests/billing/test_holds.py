"""Holds: never overdrawn, captured at most to their sum and once per attempt, released once."""

from __future__ import annotations

import uuid
from typing import TypeVar

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing.errors import HoldNotOpen, InsufficientCredit
from billing.models import Hold, HoldState, LedgerAccount, LedgerTransaction
from billing.services import ledger
from billing.services.holds import capture, place_hold, release
from billing.services.refunds import refund_job
from billing.services.stale_holds import release_stale_holds
from tests.billing.books import all_books, assert_books_agree, at_once, balance, grant, total


def held(workspace_id: uuid.UUID, amount_micros: int) -> uuid.UUID:
    """The id of a job for which the money was set aside."""
    job_id = uuid.uuid4()
    place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=amount_micros)
    return job_id


def captured(job_id: uuid.UUID, amount_micros: int, *, attempt_id: uuid.UUID | None = None) -> int:
    with transaction.atomic():
        return capture(job_id=job_id, attempt_id=attempt_id or uuid.uuid4(), amount_micros=amount_micros)


def released(job_id: uuid.UUID) -> int:
    with transaction.atomic():
        return release(job_id=job_id)


def refunded(job_id: uuid.UUID) -> int:
    with transaction.atomic():
        return refund_job(job_id=job_id)


def test_a_hold_sets_money_aside(workspace_id: uuid.UUID) -> None:
    job_id = uuid.uuid4()
    hold = place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=600)
    hold.refresh_from_db()
    assert (hold.workspace_id, hold.job_id, hold.state) == (workspace_id, job_id, HoldState.OPEN)
    assert (hold.amount_micros, hold.captured_micros, hold.closed_at) == (600, 0, None)
    assert balance(workspace_id) == (400, 600)
    assert_books_agree(workspace_id)


def test_more_than_there_is_cannot_be_set_aside(workspace_id: uuid.UUID) -> None:
    held(workspace_id, 600)
    before = all_books()
    with pytest.raises(InsufficientCredit) as refused:
        place_hold(workspace_id=workspace_id, job_id=uuid.uuid4(), amount_micros=401)
    assert all_books() == before
    assert (refused.value.code, refused.value.status) == ("insufficient_credit", 402)
    assert refused.value.params == {"needed": "CN¥0.000401", "available": "CN¥0.0004"}


def test_who_never_had_credit_is_refused_and_gets_no_account(db: None) -> None:
    before = all_books()
    with pytest.raises(InsufficientCredit):
        place_hold(workspace_id=uuid.uuid4(), job_id=uuid.uuid4(), amount_micros=1)
    assert all_books() == before


def test_a_job_has_one_hold(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 100)
    before = all_books()
    with pytest.raises(ledger.AlreadyPosted):
        place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=100)
    assert all_books() == before


def test_a_negative_amount_is_refused(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 100)
    before = all_books()
    with pytest.raises(ValueError, match="never gives any"):
        place_hold(workspace_id=workspace_id, job_id=uuid.uuid4(), amount_micros=-1)
    with pytest.raises(ValueError, match="never gives any"):
        captured(job_id, -1)
    assert all_books() == before


def test_a_capture_turns_held_money_into_revenue(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    assert captured(job_id, 250) == 250
    assert captured(job_id, 100) == 100
    assert Hold.objects.get(job_id=job_id).captured_micros == 350
    assert balance(workspace_id) == (400, 250)
    assert total(workspace_id, LedgerAccount.REVENUE) == 350
    assert_books_agree(workspace_id)


def test_captures_never_exceed_the_hold(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    assert captured(job_id, 550) == 550
    assert captured(job_id, 100) == 50
    assert captured(job_id, 100) == 0
    assert balance(workspace_id) == (400, 0)
    assert total(workspace_id, LedgerAccount.REVENUE) == 600
    assert_books_agree(workspace_id)


def test_the_database_refuses_a_capture_beyond_the_hold(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    before = all_books()
    for beyond in (601, -1):
        with pytest.raises(IntegrityError, match="capture_within_hold"), transaction.atomic():
            Hold.objects.filter(job_id=job_id).update(captured_micros=beyond)
    assert all_books() == before


def test_an_attempt_is_charged_once(workspace_id: uuid.UUID) -> None:
    job_id, attempt_id = held(workspace_id, 600), uuid.uuid4()
    assert captured(job_id, 250, attempt_id=attempt_id) == 250
    before = all_books()
    with transaction.atomic():
        with pytest.raises(ledger.AlreadyPosted):
            capture(job_id=job_id, attempt_id=attempt_id, amount_micros=250)
        assert all_books() == before  # and the caller's transaction goes on
    assert all_books() == before


def test_an_attempt_is_charged_once_even_when_the_hold_is_used_up(workspace_id: uuid.UUID) -> None:
    job_id, attempt_id = held(workspace_id, 600), uuid.uuid4()
    assert captured(job_id, 600, attempt_id=attempt_id) == 600
    before = all_books()
    with pytest.raises(ledger.AlreadyPosted):
        captured(job_id, 600, attempt_id=attempt_id)
    assert all_books() == before


def test_a_release_gives_back_what_was_not_captured(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    captured(job_id, 250)
    assert released(job_id) == 350
    hold = Hold.objects.get(job_id=job_id)
    assert hold.state == HoldState.CLOSED
    assert hold.closed_at is not None
    assert balance(workspace_id) == (750, 0)
    assert_books_agree(workspace_id)


def test_a_hold_is_released_once(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    assert released(job_id) == 600
    before = all_books()
    assert released(job_id) == 0
    assert all_books() == before


def test_a_hold_that_was_used_up_is_closed_without_an_entry(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    captured(job_id, 600)
    count = LedgerTransaction.objects.count()
    assert released(job_id) == 0
    assert Hold.objects.get(job_id=job_id).state == HoldState.CLOSED
    assert LedgerTransaction.objects.count() == count


def test_a_closed_hold_cannot_be_captured(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    released(job_id)
    before = all_books()
    with pytest.raises(HoldNotOpen):
        captured(job_id, 1)
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_capturing_and_releasing_need_a_transaction_of_the_caller() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    job_id = held(workspace_id, 600)
    before = all_books()
    with pytest.raises(transaction.TransactionManagementError):
        capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=1)
    with pytest.raises(transaction.TransactionManagementError):
        release(job_id=job_id)
    assert all_books() == before


def test_a_refund_gives_back_what_was_captured_once(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    captured(job_id, 250)
    released(job_id)
    assert refunded(job_id) == 250
    assert balance(workspace_id) == (1_000, 0)
    assert total(workspace_id, LedgerAccount.REVENUE) == 0
    before = all_books()
    assert refunded(job_id) == 0
    assert all_books() == before
    assert_books_agree(workspace_id)


def test_where_nothing_was_captured_there_is_nothing_to_refund(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 600)
    released(job_id)
    before = all_books()
    assert refunded(job_id) == 0
    assert all_books() == before


def test_an_open_hold_cannot_be_refunded(workspace_id: uuid.UUID) -> None:
    """A later capture would be kept: the refund's key is used up."""
    job_id = held(workspace_id, 600)
    captured(job_id, 250)
    before = all_books()
    with pytest.raises(ValueError, match="open"):
        refunded(job_id)
    assert all_books() == before


def test_only_holds_of_ended_jobs_are_swept(workspace_id: uuid.UUID) -> None:
    ended, live = held(workspace_id, 200), held(workspace_id, 300)
    captured(ended, 50)
    jobs = Hold.objects.filter(job_id=ended).values("job_id")
    assert release_stale_holds(ended_job_ids=jobs) == 1
    assert Hold.objects.get(job_id=ended).state == HoldState.CLOSED
    assert Hold.objects.get(job_id=live).state == HoldState.OPEN
    assert balance(workspace_id) == (650, 300)
    before = all_books()
    assert release_stale_holds(ended_job_ids=jobs) == 0
    assert all_books() == before


# -- At the same moment --------------------------------------------------------------------------------------

Kind = TypeVar("Kind")


def of_kind(outcomes: list[object], kind: type[Kind]) -> list[Kind]:
    return [outcome for outcome in outcomes if isinstance(outcome, kind)]


@pytest.mark.django_db(transaction=True)
def test_thirty_jobs_at_once_with_money_for_ten_are_ten_jobs() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    outcomes: list[object] = list(
        at_once(30, lambda _: place_hold(workspace_id=workspace_id, job_id=uuid.uuid4(), amount_micros=100))
    )
    assert len(of_kind(outcomes, Hold)) == 10
    assert len(of_kind(outcomes, InsufficientCredit)) == 20
    assert Hold.objects.count() == 10
    assert balance(workspace_id) == (0, 1_000)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_one_attempt_settled_by_many_at_once_is_charged_once() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    job_id, attempt_id = held(workspace_id, 500), uuid.uuid4()
    outcomes: list[object] = list(at_once(8, lambda _: captured(job_id, 120, attempt_id=attempt_id)))
    assert of_kind(outcomes, int) == [120]
    assert len(of_kind(outcomes, ledger.AlreadyPosted)) == 7
    assert balance(workspace_id) == (500, 380)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_many_attempts_at_once_charge_at_most_the_hold() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    job_id = held(workspace_id, 500)
    outcomes: list[object] = list(at_once(8, lambda _: captured(job_id, 90)))
    assert sorted(of_kind(outcomes, int)) == [0, 0, 50, 90, 90, 90, 90, 90]
    assert Hold.objects.get(job_id=job_id).captured_micros == 500
    assert balance(workspace_id) == (500, 0)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_captures_and_releases_that_cross_leave_no_money_behind() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    job_id = held(workspace_id, 500)

    def settle(number: int) -> int:
        return released(job_id) if number % 3 == 0 else captured(job_id, 30)

    outcomes: list[object] = list(at_once(12, settle))
    charged = Hold.objects.get(job_id=job_id).captured_micros
    amounts, refusals = of_kind(outcomes, int), of_kind(outcomes, HoldNotOpen)
    assert len(amounts) + len(refusals) == 12  # and nobody waited for anybody for ever
    assert charged % 30 == 0
    assert charged // 30 == 8 - len(refusals)
    assert Hold.objects.get(job_id=job_id).state == HoldState.CLOSED
    assert balance(workspace_id) == (1_000 - charged, 0)
    assert total(workspace_id, LedgerAccount.REVENUE) == charged
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_refunds_at_once_give_back_once() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    job_id = held(workspace_id, 500)
    captured(job_id, 200)
    released(job_id)
    outcomes: list[object] = list(at_once(8, lambda _: refunded(job_id)))
    assert sorted(of_kind(outcomes, int)) == [0, 0, 0, 0, 0, 0, 0, 200]
    assert balance(workspace_id) == (1_000, 0)
    assert_books_agree(workspace_id)


# -- Any order of events -------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["hold", "capture", "again", "release", "refund", "grant"]),
        st.integers(min_value=0, max_value=3),
        st.integers(min_value=0, max_value=700),
    ),
    max_size=25,
)


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_the_books_agree_after_any_order_of_events(events: list[tuple[str, int, int]]) -> None:
    with transaction.atomic():
        workspace_id = uuid.uuid4()
        grant(workspace_id, 1_000)
        granted = 1_000
        jobs: list[uuid.UUID] = []
        attempts: list[tuple[uuid.UUID, uuid.UUID]] = []
        for kind, which, amount in events:
            try:
                if kind == "grant" and amount:
                    grant(workspace_id, amount)
                    granted += amount
                elif kind == "hold":
                    jobs.append(held(workspace_id, amount))
                elif jobs and kind == "capture":
                    attempts.append((jobs[which % len(jobs)], uuid.uuid4()))
                    captured(attempts[-1][0], amount, attempt_id=attempts[-1][1])
                elif attempts and kind == "again":
                    job_id, attempt_id = attempts[which % len(attempts)]
                    captured(job_id, amount, attempt_id=attempt_id)
                elif jobs and kind == "release":
                    released(jobs[which % len(jobs)])
                elif jobs and kind == "refund":
                    refunded(jobs[which % len(jobs)])
            except (InsufficientCredit, HoldNotOpen, ledger.AlreadyPosted, ValueError):
                continue
        available, in_hand = balance(workspace_id)
        assert available >= 0
        assert available + in_hand + total(workspace_id, LedgerAccount.REVENUE) == granted
        still_open = Hold.objects.filter(workspace_id=workspace_id, state=HoldState.OPEN)
        assert in_hand == sum(hold.amount_micros - hold.captured_micros for hold in still_open)
        assert_books_agree(workspace_id)
        transaction.set_rollback(True)


# -- The last charge -----------------------------------------------------------------------------------------


def test_the_last_charge_closes_the_hold_and_releases_the_rest(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 300)
    with transaction.atomic():
        assert capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=120, last=True) == 120
    assert balance(workspace_id) == (880, 0)
    assert Hold.objects.get(job_id=job_id).state == HoldState.CLOSED
    kinds = LedgerTransaction.objects.filter(job_id=job_id).values_list("kind", flat=True)
    assert sorted(kinds) == ["capture", "hold", "release"]
    assert released(job_id) == 0
    assert_books_agree(workspace_id)


def test_a_last_charge_of_all_that_was_held_releases_nothing(workspace_id: uuid.UUID) -> None:
    job_id = held(workspace_id, 300)
    with transaction.atomic():
        assert capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=999, last=True) == 300
    assert not LedgerTransaction.objects.filter(job_id=job_id, kind="release").exists()
    assert balance(workspace_id) == (700, 0)


def test_a_job_costs_its_minimum_once_anything_was_used(workspace_id: uuid.UUID) -> None:
    job_id = uuid.uuid4()
    place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=300, minimum_micros=100)
    assert captured(job_id, 0) == 0
    assert captured(job_id, 30) == 100
    assert captured(job_id, 50) == 0
    assert captured(job_id, 40) == 20
    assert balance(workspace_id) == (700, 180)
