"""The rule which segment goes next, on the real tables, with made-up lengths."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.pool.fair_pool import FairPool, assert_counters_are_true, jain
from tts.models import Attempt, FairShareClass, FairShareQueue, Segment, SynthesisJob
from tts.services.fair_share import place_of
from tts.services.sweep import sweep
from tts.states import JobState, SegmentState

pytestmark = pytest.mark.django_db
SECOND = 1000


def test_customers_who_all_wait_get_equal_shares_whatever_the_length_of_their_segments() -> None:
    pool = FairPool(slots=4)
    lengths = [1, 2, 3, 5, 8, 13, 20, 20]
    for length_s in lengths:
        pool.queue(pool.customer(), *[length_s * SECOND] * (400 // length_s))
    pool.run(until_ms=80 * SECOND)
    given = pool.service_ms()
    assert len(given) == len(lengths)
    assert jain([float(ms) for ms in given.values()]) > 0.95
    assert_counters_are_true()


def test_shares_follow_the_weights() -> None:
    pool = FairPool()
    light, heavy = pool.customer(weight=1), pool.customer(weight=4)
    for customer in (light, heavy):
        pool.queue(customer, *[2 * SECOND] * 100)
    pool.run(until_ms=100 * SECOND)
    given = pool.service_ms()
    assert given[heavy.pk] / given[light.pk] == pytest.approx(4, rel=0.05)


def test_classes_share_sixteen_to_four_to_one() -> None:
    pool = FairPool()
    for job_class in ("interactive", "standard", "batch"):
        pool.queue(pool.customer(), *[SECOND] * 210, job_class=job_class)
    pool.run(until_ms=210 * SECOND)
    given = Counter(one.job_class for one in pool.served)
    assert given == {"interactive": 160, "standard": 40, "batch": 10}


def test_a_class_that_is_alone_gets_everything_and_owes_nothing_for_it() -> None:
    pool = FairPool()
    pool.queue(pool.customer(), *[SECOND] * 200, job_class="batch")
    pool.run(until_ms=100 * SECOND)
    pool.queue(pool.customer(), *[SECOND] * 100, job_class="interactive")
    pool.run(until_ms=121 * SECOND)
    late = Counter(one.job_class for one in pool.served if one.started_ms >= 100 * SECOND)
    assert late["batch"] in (1, 2)  # its share of a 17th, not nothing, and not a debt's worth for the new one


def test_no_class_saves_up_time_while_the_pool_has_nothing_to_do() -> None:
    pool = FairPool()
    pool.queue(pool.customer(), *[SECOND] * 200, job_class="interactive")
    pool.run()
    pool.fill()
    pool.queue(pool.customer(), *[SECOND] * 60, job_class="batch")
    pool.queue(pool.customer(), *[SECOND] * 60, job_class="interactive")
    began_ms = pool.now_ms
    pool.run(until_ms=began_ms + 34 * SECOND)
    late = Counter(one.job_class for one in pool.served if one.started_ms >= began_ms)
    assert late["batch"] <= 3


def test_a_customer_at_the_limit_does_not_hide_others_who_have_waited_too_long() -> None:
    pool = FairPool(slots=1)
    capped, other, urgent = pool.customer(), pool.customer(), pool.customer()
    type(capped).objects.filter(pk=capped.pk).update(running_segments_limit=0)
    pool.queue(capped, *[SECOND] * 5, job_class="batch")
    pool.queue(other, *[SECOND] * 5, job_class="batch")
    pool.queue(urgent, *[SECOND] * 60, job_class="interactive")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tts_segment SET created_at = created_at - interval '7 hours' WHERE job_class = 'batch'"
        )
    FairShareClass.objects.update(overdue_at=None)
    pool.run(until_ms=12 * SECOND)
    assert sum(one.workspace == other for one in pool.served) >= 3


def test_time_away_is_not_saved_up() -> None:
    pool = FairPool()
    steady, sleeper = pool.customer(), pool.customer()
    pool.queue(sleeper, SECOND)
    pool.queue(steady, *[SECOND] * 300)
    pool.run(until_ms=100 * SECOND)
    pool.queue(sleeper, *[SECOND] * 100)
    pool.run(until_ms=140 * SECOND)
    given = pool.service_ms(since_ms=100 * SECOND)
    assert given[sleeper.pk] == pytest.approx(given[steady.pk], abs=2 * SECOND)


def test_one_job_behind_a_flood_waits_no_longer_than_behind_one_job() -> None:
    waits = []
    for flood in (1, 1000):
        pool = FairPool()
        pool.queue(pool.customer(), *[2 * SECOND] * flood)
        pool.fill()
        light = pool.customer()
        job = pool.queue(light, SECOND)
        while not any(one.workspace == light for one in pool.served):
            pool.step()
        pool.fill()
        waits.append(next(one.started_ms for one in pool.served if one.workspace == light))
        assert job.pk
        Segment.objects.all().update(state=SegmentState.CANCELED)
    assert waits[0] == waits[1]


def test_who_asks_for_more_than_was_estimated_gains_nothing() -> None:
    """A customer whose segments take twenty times what was thought pays for it in its next turns."""
    liar_ids: set[object] = set()
    pool = FairPool(
        actual_ms=lambda segment: segment.estimate_gpu_ms * (20 if segment.workspace_id in liar_ids else 1)
    )
    liar, honest = pool.customer(), pool.customer()
    liar_ids.add(liar.pk)
    pool.queue(liar, *[100] * 400)
    pool.queue(honest, *[2 * SECOND] * 400)
    pool.run(until_ms=200 * SECOND)
    given = pool.service_ms()
    assert given[liar.pk] / given[honest.pk] == pytest.approx(1, abs=0.06)


def test_batch_work_that_has_waited_too_long_goes_first_but_at_most_every_fourth_time() -> None:
    pool = FairPool()
    old = pool.queue(pool.customer(), *[SECOND] * 50, job_class="batch")
    pool.queue(pool.customer(), *[SECOND] * 200, job_class="interactive")
    long_ago = FairShareClass.objects.get(job_class="batch").override_age_s + 60
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tts_segment SET created_at = created_at - make_interval(secs => %s) WHERE job_id = %s",
            [long_ago, old.pk],
        )
    FairShareClass.objects.update(overdue_at=None)
    pool.run(until_ms=80 * SECOND)
    classes = [one.job_class for one in pool.served]
    # A quarter by age; its own turns by weight come on top, one in seventeen.
    assert 80 // 4 - 1 <= Counter(classes)["batch"] <= 80 // 4 + 80 // 17 + 1


def test_a_workspace_at_its_limit_of_running_segments_is_passed_over() -> None:
    pool = FairPool(slots=4)
    capped, other = pool.customer(), pool.customer()
    type(capped).objects.filter(pk=capped.pk).update(running_segments_limit=1)
    pool.queue(capped, *[SECOND] * 10)
    pool.queue(other, *[SECOND] * 2)
    pool.fill()
    assert Counter(one.workspace for one in pool.served) == {capped: 1, other: 2}
    # Over all of its classes.
    pool.queue(capped, SECOND, job_class="interactive")
    pool.fill()
    assert Counter(one.workspace for one in pool.served)[capped] == 1
    pool.run()
    assert Counter(one.workspace for one in pool.served)[capped] == 11
    assert_counters_are_true()


def test_a_limit_counts_from_the_moment_when_it_is_changed() -> None:
    pool = FairPool(slots=3)
    customer = pool.customer()
    pool.queue(customer, *[SECOND] * 6)
    type(customer).objects.filter(pk=customer.pk).update(running_segments_limit=1)
    pool.fill()
    assert len(pool.served) == 1
    type(customer).objects.filter(pk=customer.pk).update(running_segments_limit=2)
    pool.fill()
    assert len(pool.served) == 2
    type(customer).objects.filter(pk=customer.pk).update(running_segments_limit=None)
    pool.fill()
    assert len(pool.served) == 3


def test_within_a_workspace_and_class_the_oldest_goes_first() -> None:
    pool = FairPool(slots=2)
    customer = pool.customer()
    first = pool.queue(customer, SECOND, SECOND, SECOND)
    second = pool.queue(customer, SECOND)
    pool.run()
    order = [Segment.objects.get(pk=one.segment_id) for one in pool.served]
    assert [segment.job_id for segment in order] == [first.pk] * 3 + [second.pk]
    assert [segment.index for segment in order[:3]] == [0, 1, 2]


def test_a_fault_of_the_platform_costs_a_queue_nothing() -> None:
    pool = FairPool()
    customer = pool.customer()
    pool.queue(customer, 5 * SECOND, SECOND)
    pool.fill()
    charged = FairShareQueue.objects.get(workspace=customer).start_tag
    attempt = Attempt.objects.get()
    Segment.objects.filter(pk=attempt.segment_id).update(state=SegmentState.QUEUED)
    Attempt.objects.filter(pk=attempt.pk).update(state="lost", finished_at=attempt.bound_at, gpu_ms=4000)
    pool._slot_by_number[0].__class__.objects.update(attempt_id=None)
    pool._busy.clear()
    pool._idle = [pool._slot_by_number[0]]
    pool.fill()
    assert Attempt.objects.count() == 2
    # Given back, and charged once more for the second try.
    assert FairShareQueue.objects.get(workspace=customer).start_tag == charged


def test_a_place_is_counted_as_the_rule_will_choose() -> None:
    pool = FairPool()
    flooder, light = pool.customer(), pool.customer()
    flood = [pool.queue(flooder, 2 * SECOND) for _ in range(5)]
    pool.fill()
    job = pool.queue(light, SECOND)
    SynthesisJob.objects.all().update(state=JobState.QUEUED)
    for one in (job, *flood):
        one.refresh_from_db()
    place = place_of(job)
    assert place is not None
    assert (place.position, place.segments_ahead) == (1, 0)
    assert place.starts_in_ms == pytest.approx(2000, abs=500)  # what is left of the running segment
    last = place_of(flood[-1])
    assert last is not None
    # Three of its own and the light customer's job go before it.
    assert (last.position, last.segments_ahead) == (5, 4)
    assert last.starts_in_ms == pytest.approx(2000 + 3 * 2000 + 1000, abs=500)


def test_without_a_device_a_place_has_no_start() -> None:
    pool = FairPool()
    job = pool.queue(pool.customer(), SECOND)
    SynthesisJob.objects.update(state=JobState.QUEUED)
    job.refresh_from_db()
    pool._slot_by_number[0].__class__.objects.update(ready=False)
    place = place_of(job)
    assert place is not None
    assert (place.position, place.starts_in_ms) == (1, None)


def test_what_waits_is_counted_through_every_change_of_state() -> None:
    pool = FairPool(slots=3)
    customers = [pool.customer() for _ in range(3)]
    for customer in customers:
        pool.queue(customer, *[SECOND] * 6, job_class="batch")
        pool.queue(customer, *[SECOND] * 3, job_class="interactive")
    for _ in range(5):
        pool.step()
    assert_counters_are_true()
    Segment.objects.filter(workspace=customers[0], state=SegmentState.QUEUED).update(
        state=SegmentState.CANCELED
    )
    Segment.objects.filter(workspace=customers[1], state=SegmentState.QUEUED, index__gt=3).delete()
    assert_counters_are_true()
    customers[2].jobs.all().delete()
    assert_counters_are_true()
    sweep()
    assert_counters_are_true()


LOADS = st.lists(
    st.tuples(
        st.sampled_from(["interactive", "standard", "batch"]),
        st.integers(1, 4),
        st.lists(st.integers(100, 20_000), min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=6,
)


class AnyLoad(TestCase):
    """Whatever is queued: nothing idles while work waits, all of it is spoken once, and the tags add up."""

    @settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(loads=LOADS, slots=st.integers(1, 4), error=st.floats(0.3, 3))
    def test_properties(self, loads: list[tuple[str, int, list[int]]], slots: int, error: float) -> None:
        pool = FairPool(slots=slots, actual_ms=lambda segment: round(segment.estimate_gpu_ms * error))
        for job_class, weight, estimates in loads:
            pool.queue(pool.customer(weight=weight), *estimates, job_class=job_class)
        while True:
            pool.fill()
            waiting = Segment.objects.filter(state=SegmentState.QUEUED).count()
            assert not (waiting and pool._idle)
            assert_counters_are_true()
            if not pool.step():
                break
        spoken = [one.segment_id for one in pool.served]
        assert len(spoken) == len(set(spoken)) == sum(len(estimates) for _, _, estimates in loads)
        self._tags_add_up(pool)

    def _tags_add_up(self, pool: FairPool) -> None:
        """What the tags moved by is what was used, by weight: nothing is forgotten, nothing counted twice."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT tts_true_up()")
        for attempt in Attempt.objects.all():
            assert attempt.share_settled
        for queue in FairShareQueue.objects.select_related("workspace"):
            used = sum(
                one.took_ms
                for one in pool.served
                if one.workspace.pk == queue.workspace_id and one.job_class == queue.job_class
            )
            segments = sum(1 for one in pool.served if one.workspace.pk == queue.workspace_id)
            # It began at 0 with the others; each division rounds down by less than one.
            assert queue.start_tag == pytest.approx(
                used * 1000 / queue.workspace.weight, abs=2 * segments + 1
            )
