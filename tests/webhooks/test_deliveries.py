"""What waits is claimed once, tried again after longer and longer waits, and given up in the end."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from accounts.errors import (
    WebhookDeliveryOpen,
    WebhookEndpointOff,
    WebhookResentTooOften,
    WebhookTestTooSoon,
)
from accounts.models import (
    DeliveryState,
    SwitchedOff,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from accounts.services.webhook_deliveries import (
    AT_ONCE_PER_ENDPOINT,
    AT_ONCE_PER_WORKSPACE,
    MAX_ATTEMPTS,
    MOST_TRIES,
    RETRY_DELAYS_S,
    TESTS_PER_MINUTE,
    Claimed,
    claim_due,
    record_outcome,
    redeliver,
    retry_delay_s,
    send_test,
)
from accounts.services.webhook_endpoints import MAX_ENDPOINTS, change_endpoint, delete_endpoint
from accounts.services.webhook_events import Fact, note_fact, note_facts
from portal.lib.clock import database_now
from portal.lib.errors import NotFound
from portal.lib.outgoing.posting import PostResult
from tests.billing.books import at_once
from tests.webhooks.rows import happened, let_leases_end, make_due, make_endpoint, only_delivery

pytestmark = pytest.mark.django_db
DELIVERED = PostResult(duration_ms=5, status=200, body=b"thanks\x00\xff")
REFUSED = PostResult(duration_ms=7, status=500, body=b"sorry")
SILENT = PostResult(duration_ms=15_000, error_code="timeout")


def claim(at_most: int = 64) -> list[Claimed]:
    return claim_due(at_most=at_most)


def end(result: PostResult) -> Claimed:
    """Claim the one that is due and write down how it ended."""
    (one,) = claim()
    assert record_outcome(claimed=one, result=result, started_at=datetime.now(UTC))
    return one


# -- The outbox ------------------------------------------------------------------------------------------------


def test_a_fact_is_noted_once_for_each_endpoint_that_wants_it(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    first, _ = make_endpoint(alice_workspace)
    second, _ = make_endpoint(alice_workspace, events=["job.succeeded"])
    make_endpoint(alice_workspace, events=["job.failed"])
    make_endpoint(charlie_workspace)
    off, _ = make_endpoint(alice_workspace)
    change_endpoint(workspace=alice_workspace, endpoint_id=off.pk, is_on=False)
    gone, _ = make_endpoint(alice_workspace)
    delete_endpoint(workspace=alice_workspace, endpoint_id=gone.pk)
    fact = Fact(alice_workspace.pk, "job.succeeded", "42", {"job_id": "42"})
    assert note_facts([fact, fact]) == 2
    assert note_facts([fact]) == 0
    assert set(WebhookDelivery.objects.values_list("endpoint_id", "fact")) == {
        (first.pk, "job.succeeded:42"),
        (second.pk, "job.succeeded:42"),
    }
    assert WebhookDelivery.objects.filter(endpoint=first).get().data == {
        "workspace_id": str(alice_workspace.pk),
        "job_id": "42",
    }


def test_a_fact_that_did_not_happen_is_not_sent(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    with transaction.atomic():
        happened(alice_workspace)
        transaction.set_rollback(True)
    assert WebhookDelivery.objects.count() == 0


# -- Claims ----------------------------------------------------------------------------------------------------


def test_what_is_claimed_is_nobody_elses_until_its_lease_ends(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    subject = happened(alice_workspace)
    (one,) = claim()
    assert (one.endpoint_id, one.attempt_number, one.url) == (endpoint.pk, 1, endpoint.url)
    assert one.data == {"id": subject, "workspace_id": str(alice_workspace.pk)}
    assert one.secret_ids == (endpoint.secret_id,)
    assert claim() == []
    let_leases_end()
    (again,) = claim()
    assert (again.delivery_id, again.attempt_number) == (one.delivery_id, 2)
    # Whoever lost it changes nothing, whatever it came to know.
    assert not record_outcome(claimed=one, result=DELIVERED, started_at=datetime.now(UTC))
    assert only_delivery().state == DeliveryState.SENDING
    assert WebhookAttempt.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_clocks_that_race_never_take_the_same() -> None:
    for _number in range(10):
        workspace = Workspace.objects.create(name="w")
        make_endpoint(workspace)
        for _fact in range(4):
            happened(workspace)
    taken = at_once(6, lambda _number: [one.delivery_id for one in claim(8)])
    ids: list[uuid.UUID] = []
    for some in taken:
        assert isinstance(some, list), some
        ids += some
    assert len(ids) == len(set(ids))
    while more := claim(8):
        ids += [one.delivery_id for one in more]
    assert len(ids) == len(set(ids)) == 40
    assert set(WebhookDelivery.objects.values_list("attempts", flat=True)) == {1}


def test_a_long_queue_of_one_endpoint_hides_nobody_elses(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    busy, _ = make_endpoint(alice_workspace)
    other, _ = make_endpoint(charlie_workspace)
    for _number in range(30):
        happened(alice_workspace)
    happened(charlie_workspace)
    counts: dict[uuid.UUID, int] = {}
    for one in claim(16):
        counts[one.endpoint_id] = counts.get(one.endpoint_id, 0) + 1
    assert counts == {busy.pk: AT_ONCE_PER_ENDPOINT, other.pk: 1}
    assert claim() == []


def test_many_endpoints_of_one_workspace_leave_room_for_others(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    for _number in range(MAX_ENDPOINTS):
        make_endpoint(alice_workspace)
    other, _secret = make_endpoint(charlie_workspace)
    for _number in range(AT_ONCE_PER_ENDPOINT):
        happened(alice_workspace)
    first = claim()
    assert len(first) == AT_ONCE_PER_WORKSPACE
    assert {one.workspace_id for one in first} == {alice_workspace.pk}
    # However long they take to answer, and though others have waited for longer.
    happened(charlie_workspace)
    assert [one.endpoint_id for one in claim()] == [other.pk]
    # Where there is little room, it goes to who has the least on its way.
    for one in first[:8]:
        assert record_outcome(claimed=one, result=DELIVERED, started_at=datetime.now(UTC))
    happened(charlie_workspace)
    assert [one.endpoint_id for one in claim(1)] == [other.pk]


def test_an_endpoint_that_fails_has_one_on_its_way_at_a_time(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(failing_since=Now())
    for _number in range(3):
        happened(alice_workspace)
    assert len(claim()) == 1
    assert claim() == []


# -- Outcomes --------------------------------------------------------------------------------------------------


def test_a_success_is_the_end_of_it(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(failing_since=Now() - timedelta(days=9))
    happened(alice_workspace)
    end(DELIVERED)
    delivery = only_delivery()
    assert (delivery.state, delivery.status_code, delivery.error_code) == (DeliveryState.DELIVERED, 200, "")
    assert delivery.delivered_at is not None
    assert delivery.endpoint.failing_since is None
    assert delivery.endpoint.last_success_at is not None
    tried = WebhookAttempt.objects.get()
    assert (tried.number, tried.duration_ms, tried.status_code) == (1, 5, 200)
    assert tried.response_start == "thanks\ufffd\ufffd"
    assert claim() == []


def test_failures_are_tried_again_after_the_waits_that_are_written_down(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    for number, delay_s in enumerate(RETRY_DELAYS_S, start=1):
        result = REFUSED if number % 2 else SILENT
        before = database_now()
        end(result)
        delivery = only_delivery()
        assert (delivery.state, delivery.attempts) == (DeliveryState.PENDING, number)
        assert delivery.status_code == (500 if number % 2 else None)
        assert delivery.error_code == ("answer_not_2xx" if number % 2 else "timeout")
        earliest = before + timedelta(seconds=delay_s)
        latest = database_now() + timedelta(seconds=delay_s * 1.2)
        assert earliest <= delivery.next_attempt_at <= latest
        assert claim() == []
        make_due()
    end(REFUSED)
    delivery = only_delivery()
    assert (delivery.state, delivery.attempts) == (DeliveryState.FAILED, MAX_ATTEMPTS)
    assert claim() == []
    assert list(WebhookAttempt.objects.order_by("number").values_list("number", flat=True)) == list(
        range(1, MAX_ATTEMPTS + 1)
    )


def test_waits_differ_from_each_other_and_honour_what_was_asked_for() -> None:
    waits = {retry_delay_s(1) for _number in range(50)}
    assert len(waits) > 40
    assert all(5 <= wait <= 6 for wait in waits)
    assert retry_delay_s(1, asked_for_s=90) == 90
    assert retry_delay_s(2, asked_for_s=1) >= 30
    assert retry_delay_s(1, asked_for_s=10**7) == 24 * 3600


def test_a_redirect_is_a_failure(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    end(PostResult(duration_ms=1, status=302))
    assert (only_delivery().state, only_delivery().error_code) == (DeliveryState.PENDING, "answer_not_2xx")


def test_gone_switches_the_endpoint_off_at_once(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    (one,) = claim()
    happened(alice_workspace)
    record_outcome(claimed=one, result=PostResult(duration_ms=1, status=410), started_at=datetime.now(UTC))
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.is_on, endpoint.switched_off) == (False, SwitchedOff.GONE)
    assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {DeliveryState.FAILED}
    assert Workspace.objects.get(pk=alice_workspace.pk).webhook_events == []


def test_five_days_of_nothing_but_failures_switch_it_off_and_less_does_not(
    alice_workspace: Workspace,
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    end(REFUSED)
    mine = WebhookEndpoint.objects.filter(pk=endpoint.pk)
    assert mine.get().failing_since is not None
    mine.update(failing_since=Now() - timedelta(days=5) + timedelta(minutes=10))
    make_due()
    end(REFUSED)
    assert mine.get().is_on
    mine.update(failing_since=F("failing_since") - timedelta(minutes=11))
    make_due()
    end(REFUSED)
    assert (mine.get().is_on, mine.get().switched_off) == (False, SwitchedOff.FAILING)
    assert (only_delivery().state, only_delivery().error_code) == (DeliveryState.FAILED, "endpoint_off")
    # Whoever switches it on again begins anew.
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=True)
    assert (mine.get().is_on, mine.get().switched_off, mine.get().failing_since) == (True, "", None)


def test_one_whose_clocks_died_again_and_again_is_given_up(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    for number in range(1, MAX_ATTEMPTS + 1):
        assert [one.attempt_number for one in claim()] == [number]
        let_leases_end()
    assert claim() == []
    assert (only_delivery().state, only_delivery().error_code) == (DeliveryState.FAILED, "lost")


# -- By hand ---------------------------------------------------------------------------------------------------


def test_a_delivery_is_sent_again_under_the_same_id_with_all_its_tries(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    first = end(DELIVERED)
    delivery = redeliver(workspace=alice_workspace, delivery_id=first.delivery_id)
    assert (delivery.state, delivery.attempts, delivery.attempts_before) == (DeliveryState.PENDING, 1, 1)
    with pytest.raises(WebhookDeliveryOpen):
        redeliver(workspace=alice_workspace, delivery_id=first.delivery_id)
    second = end(REFUSED)
    assert (second.delivery_id, second.attempt_number) == (first.delivery_id, 2)
    # The waits begin anew.
    assert only_delivery().next_attempt_at < database_now() + timedelta(seconds=10)


def test_a_delivery_is_sent_again_so_many_times_and_no_more(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    happened(alice_workspace)
    worn_out = end(DELIVERED).delivery_id
    WebhookDelivery.objects.filter(pk=worn_out).update(attempts=MOST_TRIES - 1)
    redeliver(workspace=alice_workspace, delivery_id=worn_out)
    assert end(DELIVERED).attempt_number == MOST_TRIES
    before = WebhookDelivery.objects.values().get()
    with pytest.raises(WebhookResentTooOften):
        redeliver(workspace=alice_workspace, delivery_id=worn_out)
    assert WebhookDelivery.objects.values().get() == before


def test_nothing_is_sent_again_to_an_endpoint_that_is_off_or_another_workspaces(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    happened(alice_workspace)
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=False)
    before = WebhookDelivery.objects.values().get()
    with pytest.raises(WebhookEndpointOff):
        redeliver(workspace=alice_workspace, delivery_id=before["id"])
    with pytest.raises(NotFound):
        redeliver(workspace=charlie_workspace, delivery_id=before["id"])
    with pytest.raises(NotFound):
        send_test(workspace=charlie_workspace, endpoint_id=endpoint.pk)
    assert WebhookDelivery.objects.values().get() == before


def test_a_test_is_sent_also_while_the_endpoint_is_off_and_tried_once(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace, events=["job.failed"])
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=False)
    send_test(workspace=alice_workspace, endpoint_id=endpoint.pk)
    (one,) = claim()
    assert (one.event_type, one.is_wanted) == ("ping", True)
    record_outcome(claimed=one, result=REFUSED, started_at=datetime.now(UTC))
    assert only_delivery().state == DeliveryState.FAILED


def test_tests_are_few(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    for _number in range(TESTS_PER_MINUTE):
        send_test(workspace=alice_workspace, endpoint_id=endpoint.pk)
    with pytest.raises(WebhookTestTooSoon):
        send_test(workspace=alice_workspace, endpoint_id=endpoint.pk)
    assert WebhookDelivery.objects.count() == TESTS_PER_MINUTE


def test_what_was_noted_while_the_endpoint_was_switched_off_is_not_sent(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    note_fact(workspace_id=alice_workspace.pk, event_type="job.failed", subject="1", data={})
    # As by a transaction that had read the endpoint a moment before it was switched off.
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(is_on=False, switched_off=SwitchedOff.BY_PEOPLE)
    (one,) = claim()
    assert not one.is_wanted
