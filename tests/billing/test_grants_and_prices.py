"""Welcome credit, prices, balances and usage rows."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from billing.errors import NoPrice
from billing.models import (
    CreditAccount,
    CreditGrant,
    LedgerAccount,
    LedgerTransaction,
    PriceVersion,
    UsageRecord,
)
from billing.pricing import Rate
from billing.selectors.balances import balance_of
from billing.selectors.prices import current_price, rate_for
from billing.services import grants
from billing.services.grants import grant_welcome_credit
from billing.services.holds import capture, place_hold
from billing.services.prices import ensure_first_price
from billing.services.refunds import refund_job
from billing.services.usage import record_usage
from portal.lib.clock import now
from tests.billing.books import all_books, assert_books_agree, at_once, balance, total


def test_welcome_credit_is_worth_its_seconds_at_todays_price(price: PriceVersion) -> None:
    workspace_id = uuid.uuid4()
    grant_welcome_credit(workspace_id=workspace_id, gpu_seconds=300)
    assert balance(workspace_id) == (3_600_000, 0)
    assert total(workspace_id, LedgerAccount.PROMOTION) == -3_600_000
    assert_books_agree(workspace_id)


def test_a_workspace_is_welcomed_once(price: PriceVersion) -> None:
    workspace_id = uuid.uuid4()
    grant_welcome_credit(workspace_id=workspace_id, gpu_seconds=300)
    before = all_books()
    grant_welcome_credit(workspace_id=workspace_id, gpu_seconds=900)
    assert all_books() == before


def test_without_a_price_nobody_is_welcomed(db: None) -> None:
    before = all_books()
    with pytest.raises(NoPrice):
        grant_welcome_credit(workspace_id=uuid.uuid4(), gpu_seconds=300)
    assert all_books() == before


@pytest.mark.django_db(transaction=True)
def test_a_workspace_welcomed_by_many_at_once_is_welcomed_once() -> None:
    ensure_first_price()
    workspace_id = uuid.uuid4()
    outcomes = at_once(8, lambda _: grant_welcome_credit(workspace_id=workspace_id, gpu_seconds=300))
    assert outcomes == [None] * 8
    assert LedgerTransaction.objects.filter(workspace_id=workspace_id).count() == 1
    assert balance(workspace_id) == (3_600_000, 0)
    assert_books_agree(workspace_id)


def version(number: int, *, effective_at: datetime) -> PriceVersion:
    return PriceVersion.objects.create(
        number=number,
        interactive_gpu_second_micros=number,
        standard_gpu_second_micros=number,
        batch_gpu_second_micros=number,
        effective_at=effective_at,
    )


def test_the_newest_price_in_force_counts(price: PriceVersion) -> None:
    version(2, effective_at=now() - timedelta(days=1))
    version(3, effective_at=now() + timedelta(days=1))
    assert current_price().number == 2


def test_of_two_prices_of_one_moment_the_higher_number_counts(db: None) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    version(8, effective_at=moment)
    version(7, effective_at=moment)
    assert current_price().number == 8


@pytest.mark.parametrize(
    ("job_class", "micros"), [("interactive", 12_000), ("standard", 8_000), ("batch", 4_000)]
)
def test_each_class_has_its_own_rate(price: PriceVersion, job_class: str, micros: int) -> None:
    assert rate_for(price=price, job_class=job_class) == Rate(gpu_second_micros=micros, currency="CNY")


def test_the_first_price_is_made_once_and_never_again(db: None) -> None:
    ensure_first_price()
    first = current_price()
    assert (first.number, first.currency) == (1, "CNY")
    ensure_first_price()
    assert PriceVersion.objects.count() == 1
    PriceVersion.objects.update(number=5)
    ensure_first_price()
    assert PriceVersion.objects.count() == 1


def test_a_balance_says_what_it_buys(price: PriceVersion, workspace_id: uuid.UUID) -> None:
    place_hold(workspace_id=workspace_id, job_id=uuid.uuid4(), amount_micros=400)
    shown = balance_of(workspace_id)
    assert (shown.available_micros, shown.held_micros, shown.currency) == (600, 400, "CNY")
    assert shown.affordable_gpu_ms == 50  # 600 micros at 12 micros a millisecond


def test_who_has_no_account_has_nothing(price: PriceVersion) -> None:
    before = all_books()
    shown = balance_of(uuid.uuid4())
    assert (shown.available_micros, shown.held_micros, shown.affordable_gpu_ms) == (0, 0, 0)
    assert all_books() == before


def usage(**changes: object) -> UsageRecord:
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    fields: dict[str, object] = {
        "attempt_id": uuid.uuid4(),
        "job_id": uuid.uuid4(),
        "workspace_id": uuid.uuid4(),
        "voice_id": uuid.uuid4(),
        "device_name": "cpu:0@here",
        "job_class": "interactive",
        "billable": True,
        "gpu_ms": 1_200,
        "audio_ms": 3_000,
        "characters": 20,
        "started_at": moment,
        "finished_at": moment + timedelta(seconds=2),
    }
    return UsageRecord(**{**fields, **changes})


def test_usage_is_recorded_once_per_attempt(db: None) -> None:
    attempt_id = uuid.uuid4()
    assert record_usage(usage(attempt_id=attempt_id)) is True
    with transaction.atomic():
        assert record_usage(usage(attempt_id=attempt_id, gpu_ms=9)) is False
        assert record_usage(usage()) is True  # the transaction goes on
    stored = UsageRecord.objects.get(attempt_id=attempt_id)
    assert (stored.gpu_ms, stored.audio_ms, stored.characters, stored.billable) == (1_200, 3_000, 20, True)
    assert UsageRecord.objects.count() == 2


@pytest.mark.parametrize("field", ["gpu_ms", "audio_ms", "characters"])
def test_negative_usage_is_a_fault_and_not_taken_for_a_duplicate(db: None, field: str) -> None:
    with pytest.raises(IntegrityError, match="usage_not_negative"), transaction.atomic():
        record_usage(usage(**{field: -1}))
    assert UsageRecord.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_usage_recorded_by_many_at_once_is_recorded_once() -> None:
    attempt_id = uuid.uuid4()
    outcomes = at_once(8, lambda _: record_usage(usage(attempt_id=attempt_id)))
    assert sorted(map(str, outcomes)) == ["False"] * 7 + ["True"]
    assert UsageRecord.objects.count() == 1


def test_what_was_paid_from_expired_credit_is_given_back_for_another_month(price: PriceVersion) -> None:
    workspace_id, job_id = uuid.uuid4(), uuid.uuid4()
    soon = now() + timedelta(hours=1)
    grants.grant(workspace_id=workspace_id, amount_micros=100, idempotency_key="soon", expires_at=soon)
    place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=100)
    with transaction.atomic():
        capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=60, last=True)
    CreditGrant.objects.update(expires_at=now() - timedelta(hours=1))
    grants.expire_grants()
    assert balance(workspace_id) == (0, 0)
    assert refund_job(job_id=job_id) == 60
    grants.expire_grants()
    assert balance(workspace_id) == (60, 0)
    given_back = CreditGrant.objects.get(is_spent=False)
    assert given_back.expires_at is not None
    assert timedelta(days=29) < given_back.expires_at - now() <= timedelta(days=30)
    assert_books_agree(workspace_id)


def test_grants_that_cannot_expire_keep_no_other_from_it(
    price: PriceVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grants, "EXPIRE_AT_ONCE", 2)
    over = now() - timedelta(days=1)
    for _ in range(3):
        owes = uuid.uuid4()
        grants.grant(workspace_id=owes, amount_micros=10, idempotency_key=str(owes), expires_at=over)
        CreditAccount.objects.filter(pk=owes).update(available_micros=-5, owed_micros=15)
    other = uuid.uuid4()
    grants.grant(workspace_id=other, amount_micros=10, idempotency_key=str(other), expires_at=over)
    assert grants.expire_grants() == 10
    assert balance(other) == (0, 0)
