"""What plans include: credit for speech, for one period, by the days of the plans."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta

import pytest

from billing.models import CreditAccount, CreditGrant, GrantKind, PriceVersion, Subscription
from billing.services import grants
from billing.services.included import grant_all_included, grant_included
from billing.services.invoice_run import close_due_periods
from billing.services.invoices import close_month
from tests.billing.books import all_books, assert_books_agree, at_once, balance
from tests.billing.speech import plan, speak, subscribed

pytestmark = pytest.mark.usefixtures("price")
YUAN = 1_000_000
NOVEMBER_2 = datetime(2025, 11, 2, tzinfo=UTC)
# The price fixture: 0.012 yuan for a GPU-second of interactive speech.
RATE = 12_000


def newest_grant(workspace_id: uuid.UUID) -> CreditGrant:
    return CreditGrant.objects.filter(workspace_id=workspace_id).latest("created_at")


def changed(workspace_id: uuid.UUID, seconds: int, at: datetime) -> None:
    Subscription.objects.filter(workspace_id=workspace_id, ends_at__isnull=True).update(ends_at=at)
    subscribed(workspace_id, plan(0, included_gpu_seconds=seconds), at)


def test_a_period_begins_with_what_the_plan_includes(db: None) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(0, included_gpu_seconds=3_000), datetime(2025, 3, 1, tzinfo=UTC))
    assert grant_included(workspace_id=workspace_id, at=NOVEMBER_2) == 3_000 * RATE
    credit = newest_grant(workspace_id)
    assert (credit.kind, credit.amount_micros, credit.expires_at) == (
        GrantKind.INCLUDED,
        3_000 * RATE,
        datetime(2025, 12, 1, tzinfo=UTC),
    )
    before = all_books()
    assert grant_included(workspace_id=workspace_id, at=NOVEMBER_2 + timedelta(days=27)) == 0
    assert all_books() == before
    assert grant_included(workspace_id=workspace_id, at=datetime(2025, 12, 1, tzinfo=UTC)) == 3_000 * RATE


def test_the_period_ends_in_the_workspaces_own_zone(db: None) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(0, included_gpu_seconds=30), datetime(2025, 3, 1, tzinfo=UTC))
    CreditAccount.objects.create(workspace_id=workspace_id, time_zone="Asia/Kolkata")
    assert grant_all_included(at=datetime(2025, 10, 31, 18, 29, tzinfo=UTC)) == 1
    assert newest_grant(workspace_id).expires_at == datetime(2025, 10, 31, 18, 30, tzinfo=UTC)
    assert grant_all_included(at=datetime(2025, 10, 31, 18, 30, tzinfo=UTC)) == 1
    assert newest_grant(workspace_id).expires_at == datetime(2025, 11, 30, 18, 30, tzinfo=UTC)
    assert grant_all_included(at=datetime(2025, 11, 5, tzinfo=UTC)) == 0


def test_a_plan_that_begins_within_the_period_includes_its_share(db: None) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(0, included_gpu_seconds=3_000), datetime(2025, 11, 16, 7, tzinfo=UTC))
    at = datetime(2025, 11, 16, 8, tzinfo=UTC)
    assert grant_included(workspace_id=workspace_id, at=at) == 1_500 * RATE


def test_changing_to_and_fro_gives_nothing_twice(db: None) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(0, included_gpu_seconds=3_000), datetime(2025, 3, 1, tzinfo=UTC))
    assert grant_included(workspace_id=workspace_id, at=NOVEMBER_2) == 3_000 * RATE
    given = []
    for hour, seconds in enumerate([9_000, 3_000, 9_000, 3_000, 9_000]):
        at = datetime(2025, 11, 16, hour, tzinfo=UTC)
        changed(workspace_id, seconds, at)
        given.append(grant_included(workspace_id=workspace_id, at=at))
    # Half a month of 9,000 more than was given for the second half.
    assert given == [3_000 * RATE, 0, 0, 0, 0]


def test_what_is_included_pays_nothing_that_is_owed_and_ends_all_the_same(db: None) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(100 * YUAN, included_gpu_seconds=1_000), datetime(2025, 10, 1, tzinfo=UTC))
    grant_included(workspace_id=workspace_id, at=datetime(2025, 10, 1, tzinfo=UTC))
    invoice = close_month(
        workspace_id=workspace_id, month=date(2025, 10, 1), at=datetime(2025, 11, 1, tzinfo=UTC)
    )
    assert invoice is not None
    assert (invoice.discount_micros, invoice.due_micros) == (0, 100 * YUAN)
    grant_included(workspace_id=workspace_id, at=NOVEMBER_2)
    account = CreditAccount.objects.get(pk=workspace_id)
    assert (account.owed_micros, account.available_micros) == (100 * YUAN, 24 * YUAN - 100 * YUAN)
    # Both months are long over now.
    assert grants.expire_grants() == 24 * YUAN
    assert balance(workspace_id) == (-100 * YUAN, 0)
    assert_books_agree(workspace_id)


def test_included_credit_is_spent_first_and_taken_off_the_invoice(db: None) -> None:
    workspace_id = uuid.uuid4()
    grants.grant(
        workspace_id=workspace_id, amount_micros=50 * YUAN, kind=GrantKind.PAID, idempotency_key="top-up"
    )
    subscribed(workspace_id, plan(10 * YUAN, included_gpu_seconds=1_000), datetime(2025, 11, 1, tzinfo=UTC))
    assert close_due_periods(at=NOVEMBER_2) == 0
    speak(workspace_id, 15 * YUAN, finished_at=NOVEMBER_2)
    assert close_due_periods(at=datetime(2025, 12, 1, 2, tzinfo=UTC)) == 1
    invoice = close_month(workspace_id=workspace_id, month=date(2025, 11, 1))
    assert invoice is not None
    assert (invoice.fee_micros, invoice.usage_micros, invoice.discount_micros, invoice.total_micros) == (
        10 * YUAN,
        15 * YUAN,
        12 * YUAN,
        13 * YUAN,
    )
    # December's are there already.
    assert balance(workspace_id) == (50 * YUAN - 13 * YUAN + 12 * YUAN, 0)


@pytest.mark.django_db(transaction=True)
def test_ten_clocks_at_once_give_it_once(price: PriceVersion) -> None:
    workspace_id = uuid.uuid4()
    subscribed(workspace_id, plan(0, included_gpu_seconds=100), datetime(2025, 3, 1, tzinfo=UTC))
    outcomes = at_once(10, lambda _: grant_included(workspace_id=workspace_id, at=NOVEMBER_2))
    assert sorted(outcomes, key=str) == [0] * 9 + [100 * RATE]
    assert balance(workspace_id) == (100 * RATE, 0)
