"""A plan that is left with the next month: the question says when, Billing shows it, and it can be taken back."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from billing.models import PlanChange, PlanVersion, Subscription
from billing.periods import month_at
from billing.selectors.balances import time_zone_of
from billing.selectors.plans import waiting_change
from billing.services.plans import change_plan, subscribe
from portal.lib.clock import now
from portal.templatetags.charts import long_date
from tests.billing.books import all_books
from tests.cast import client_of
from tests.pages.reading import text_of
from tests.pages.test_billing import offer

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(alice_workspace: Workspace) -> PlanVersion:
    """Alice is on a plan that includes credit; this one is smaller."""
    subscribe(
        workspace_id=alice_workspace.pk,
        plan_version=offer("pro", monthly_fee_micros=99_000_000, included_gpu_seconds=3600),
    )
    return offer("small")


def month_of(workspace: Workspace) -> tuple[str, str]:
    """The day with which a smaller plan begins: as forms send it, and as people read it."""
    first_day = month_at(now(), time_zone_of(workspace.pk)).last_day + timedelta(days=1)
    return first_day.isoformat(), long_date(first_day)


def test_a_smaller_plan_waits_for_the_next_month_and_can_be_taken_back(
    alice: User, alice_workspace: Workspace, alice_client: Client, small: PlanVersion
) -> None:
    sent, read = month_of(alice_workspace)
    address = reverse("plan_change", args=["small"])
    page = alice_client.get(address)
    assert f"It applies from {read} on" in text_of(page)
    assert f'name="begins" value="{sent}"' in page.content.decode()
    assert f"Change on {read}" in text_of(page)
    books = all_books()
    for _ in range(2):
        answer = alice_client.post(address, {"version": str(small.pk), "begins": sent}, follow=True)
        assert f"The plan changes to “Small” on {read}." in text_of(answer)
    change = PlanChange.objects.get()
    assert change.requested_by_id == alice.pk
    for name in ("billing", "plans"):
        shown = text_of(alice_client.get(reverse(name)))
        assert f"Changes to Small on {read}." in shown
        assert "Take it back" in shown
    # What waits is not offered once more.
    assert address not in alice_client.get(reverse("plans")).content.decode()
    undo = reverse("plan_change_take_back", args=[change.pk])
    assert undo in alice_client.get(reverse("billing")).content.decode()
    for _ in range(2):
        assert "the plan stays as it is" in text_of(alice_client.post(undo, follow=True))
    assert waiting_change(alice_workspace.pk) is None
    assert "Changes to" not in text_of(alice_client.get(reverse("billing")))
    assert all_books() == books
    assert Subscription.objects.filter(workspace_id=alice_workspace.pk).count() == 1


def test_the_question_names_what_another_choice_replaces(
    alice_workspace: Workspace, alice_client: Client, small: PlanVersion
) -> None:
    _sent, read = month_of(alice_workspace)
    change_plan(workspace_id=alice_workspace.pk, plan_version=small)
    offer("large", monthly_fee_micros=199_000_000, included_gpu_seconds=9000)
    question = text_of(alice_client.get(reverse("plan_change", args=["large"])))
    assert f"It takes the place of the change to “Small” on {read}." in question
    assert "It applies at once." in question


@pytest.mark.parametrize("begins", ["now", "2020-01-01", ""])
def test_the_yes_to_another_day_than_the_one_shown_changes_nothing(
    alice_client: Client, small: PlanVersion, begins: str
) -> None:
    answer = alice_client.post(
        reverse("plan_change", args=["small"]), {"version": str(small.pk), "begins": begins}
    )
    assert answer.status_code == 409
    assert (PlanChange.objects.count(), Subscription.objects.count()) == (0, 1)


def test_what_was_replaced_cannot_be_taken_back_and_the_page_says_so(
    alice_workspace: Workspace, alice_client: Client, small: PlanVersion
) -> None:
    first = change_plan(workspace_id=alice_workspace.pk, plan_version=small)
    second = change_plan(workspace_id=alice_workspace.pk, plan_version=offer("tiny"))
    assert first is not None
    assert second is not None
    answer = alice_client.post(reverse("plan_change_take_back", args=[first.pk]), follow=True)
    assert "Nothing was changed." in text_of(answer)
    assert waiting_change(alice_workspace.pk) == second


@pytest.mark.parametrize(("role", "may"), [(Role.BILLING, True), (Role.ADMIN, False), (Role.MEMBER, False)])
def test_who_looks_after_the_money_takes_it_back_and_others_see_it(
    alice_workspace: Workspace, bob: User, small: PlanVersion, role: Role, may: bool
) -> None:
    Membership.objects.create(workspace=alice_workspace, user=bob, role=role)
    client = client_of(bob)
    client.post(reverse("choose_workspace"), {"workspace": str(alice_workspace.pk)})
    change = change_plan(workspace_id=alice_workspace.pk, plan_version=small)
    assert change is not None
    shown = text_of(client.get(reverse("billing")))
    assert "Changes to Small on" in shown
    assert ("Take it back" in shown) == may
    answer = client.post(reverse("plan_change_take_back", args=[change.pk]))
    assert answer.status_code == (302 if may else 403)
    assert (waiting_change(alice_workspace.pk) is None) == may


def test_nobody_takes_back_what_others_chose(
    alice_workspace: Workspace, charlie_client: Client, small: PlanVersion
) -> None:
    change = change_plan(workspace_id=alice_workspace.pk, plan_version=small)
    assert change is not None
    for change_id in (uuid.uuid4(), change.pk):
        assert charlie_client.post(reverse("plan_change_take_back", args=[change_id])).status_code == 404
    assert waiting_change(alice_workspace.pk) == change
