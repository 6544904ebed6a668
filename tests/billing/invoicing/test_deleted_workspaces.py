"""A workspace that is deleted in the middle of a month: its fee ends, and what it owes does not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import transaction

from accounts.models import Workspace
from billing.models import CreditAccount, GrantKind, Invoice, PlanChange, Subscription
from billing.selectors.invoices import receivables
from billing.services.included import grant_included
from billing.services.invoice_run import close_due_periods
from billing.services.plan_changes import carry_out_plan_changes
from billing.services.plans import change_plan
from tests.billing.books import assert_books_agree
from tests.billing.invoicing.months import YUAN, money
from tests.billing.payers import make_workspace
from tests.billing.speech import plan, speak, subscribed
from tests.moved_clock import MovedClock, moved_clock

__all__ = ["moved_clock"]
pytestmark = pytest.mark.django_db(transaction=True)


def september(day: int, hour: int = 12) -> datetime:
    return datetime(2031, 9, day, hour, tzinfo=UTC)


def test_a_deleted_workspace_pays_its_plan_to_the_day_before_and_owes_what_it_owed(
    moved_clock: MovedClock,
) -> None:
    moved_clock.to(datetime(2031, 8, 1, tzinfo=UTC))
    workspace_id = make_workspace()
    other_id = make_workspace()
    for each in (workspace_id, other_id):
        subscribed(each, plan(30 * YUAN), datetime(2031, 8, 1, tzinfo=UTC))
        money(each, 10 * YUAN, GrantKind.PAID)
    moved_clock.to(september(1, 2))
    assert close_due_periods() == 2
    august = Invoice.objects.get(workspace_id=workspace_id)
    assert (august.total_micros, august.due_micros) == (30 * YUAN, 20 * YUAN)
    money(workspace_id, 25 * YUAN, GrantKind.PAID)
    moved_clock.to(september(5))
    speak(workspace_id, YUAN, finished_at=september(5))
    moved_clock.to(september(11))
    Workspace.objects.filter(pk=workspace_id).delete()
    assert Subscription.objects.get(workspace_id=workspace_id).ends_at == september(11)
    assert Subscription.objects.get(workspace_id=other_id).ends_at is None
    # Its month is closed like any other: ten days of thirty, and what was spoken.
    moved_clock.to(datetime(2031, 10, 1, 2, tzinfo=UTC))
    assert close_due_periods() == 2
    last = Invoice.objects.filter(workspace_id=workspace_id).latest("period_end")
    assert (last.fee_micros, last.usage_micros, last.total_micros) == (10 * YUAN, YUAN, 11 * YUAN)
    # Of 25 yuan 20 paid for August; 5 were left for a yuan of speech and the fee.
    assert (last.due_micros, last.paid_micros) == (6 * YUAN, 0)
    (receivable,) = (one for one in receivables(moved_clock.moment) if one.workspace_id == workspace_id)
    assert receivable.total_micros == 6 * YUAN
    # That was the last one.
    moved_clock.to(datetime(2031, 11, 1, 2, tzinfo=UTC))
    assert close_due_periods() == 1
    assert Invoice.objects.filter(workspace_id=workspace_id).count() == 2
    assert CreditAccount.objects.get(pk=workspace_id).owed_micros == 6 * YUAN
    # What comes in pays it.
    money(workspace_id, 6 * YUAN, GrantKind.PAID)
    last.refresh_from_db()
    assert last.paid_micros == 6 * YUAN
    assert_books_agree(workspace_id)


def test_nothing_is_included_for_a_workspace_that_is_gone(moved_clock: MovedClock) -> None:
    moved_clock.to(september(1))
    workspace_id = make_workspace()
    subscribed(workspace_id, plan(0, included_gpu_seconds=100), september(1))
    Workspace.objects.filter(pk=workspace_id).delete()
    assert grant_included(workspace_id=workspace_id) == 0


def test_a_plan_that_waits_for_the_next_month_never_begins(moved_clock: MovedClock) -> None:
    moved_clock.to(september(20))
    workspace_id = make_workspace()
    money(workspace_id, 100 * YUAN, GrantKind.PAID)
    subscribed(workspace_id, plan(30 * YUAN, included_gpu_seconds=9), september(1))
    assert change_plan(workspace_id=workspace_id, plan_version=plan(10 * YUAN)) is not None
    Workspace.objects.filter(pk=workspace_id).delete()
    moved_clock.to(datetime(2031, 10, 2, tzinfo=UTC))
    assert carry_out_plan_changes() == 0
    assert Subscription.objects.get(workspace_id=workspace_id).ends_at == september(20)
    assert PlanChange.objects.get().state == "replaced"


def test_a_deletion_that_is_not_committed_ends_nothing(moved_clock: MovedClock) -> None:
    workspace_id = make_workspace()
    subscribed(workspace_id, plan(30 * YUAN), moved_clock.moment)
    with transaction.atomic():
        Workspace.objects.filter(pk=workspace_id).delete()
        assert Subscription.objects.get(workspace_id=workspace_id).ends_at is not None
        transaction.set_rollback(True)
    assert Subscription.objects.get(workspace_id=workspace_id).ends_at is None


def test_one_that_begins_and_is_deleted_on_a_day_costs_nothing(moved_clock: MovedClock) -> None:
    moved_clock.to(september(7))
    workspace_id = make_workspace()
    subscribed(workspace_id, plan(30 * YUAN), september(7))
    # It was to begin tomorrow: it never does.
    other_id = make_workspace()
    subscribed(other_id, plan(30 * YUAN), september(8))
    Workspace.objects.all().delete()
    assert Subscription.objects.get(workspace_id=other_id).ends_at == september(8)
    moved_clock.to(datetime(2031, 10, 1, 2, tzinfo=UTC))
    assert close_due_periods() == 0
    assert not Invoice.objects.exists()
