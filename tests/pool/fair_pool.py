"""The real queues and the real decision on a clock of the test's own: devices are rows, and speaking takes no time.

Customers queue segments of stated lengths; each slot speaks what the decision gives it, and the next decision is
made when the slot that is done first is done.
"""

from __future__ import annotations

import heapq
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from accounts.models import Workspace
from billing.models import PriceVersion
from billing.services.prices import ensure_first_price
from tests.pool.conftest import make_device
from tts.models import Attempt, DeviceSlot, FairShareClass, FairShareQueue, Segment, SynthesisJob, Voice
from tts.services.bind import bind_next
from tts.services.voices import ensure_preset_voices
from tts.states import AttemptState, JobState, SegmentState


@dataclass
class Served:
    """One segment that was spoken: whose, from when to when on the test's clock, in device milliseconds."""

    workspace: Workspace
    job_class: str
    segment_id: int
    started_ms: int
    took_ms: int


@dataclass
class FairPool:
    """`actual_ms` says how long a segment really takes; by default what was estimated."""

    slots: int = 1
    actual_ms: Callable[[Segment], int] = field(default=lambda segment: segment.estimate_gpu_ms)
    now_ms: int = 0
    served: list[Served] = field(default_factory=list)

    def __post_init__(self) -> None:
        ensure_first_price()
        ensure_preset_voices()
        with connection.cursor() as cursor:
            # A test that empties all tables before this one took these rows too; the first decision makes them.
            cursor.execute("SELECT tts_ensure_classes()")
        self.price = PriceVersion.objects.order_by("pk")[0]
        self.voice = Voice.objects.filter(kind="preset").order_by("pk")[0]
        device = make_device(slots=self.slots)
        # Of a pool before this one, whose clock has stopped.
        DeviceSlot.objects.filter(device=device).update(attempt_id=None)
        self._idle = list(
            DeviceSlot.objects.filter(device=device).select_related("device").order_by("number")
        )
        self._busy: list[tuple[int, int, uuid.UUID, int]] = []
        self._slot_by_number = {slot.number: slot for slot in self._idle}

    def customer(self, *, weight: int = 1) -> Workspace:
        return Workspace.objects.create(name="customer", weight=weight)

    def queue(self, workspace: Workspace, *estimates_ms: int, job_class: str = "standard") -> SynthesisJob:
        """A job whose segments are expected to take so long."""
        job = SynthesisJob.objects.create(
            workspace=workspace,
            voice=self.voice,
            job_class=job_class,
            state=JobState.RUNNING,
            text="",
            seed=1,
            characters=1,
            segment_count=len(estimates_ms),
            request_sha256="",
            price_version=self.price,
            estimate_gpu_ms=sum(estimates_ms),
            held_gpu_ms=1,
            held_micros=1,
        )
        Segment.objects.bulk_create(
            [
                Segment(
                    job=job,
                    workspace=workspace,
                    job_class=job_class,
                    index=index,
                    text="",
                    characters=1,
                    estimate_gpu_ms=estimate,
                    held_gpu_ms=1,
                )
                for index, estimate in enumerate(estimates_ms)
            ]
        )
        return job

    def step(self) -> bool:
        """Give every idle slot a segment, then let the one that is done first be done. False when nothing waits."""
        self.fill()
        if not self._busy:
            return False
        self.now_ms, number, attempt_id, _ = heapq.heappop(self._busy)
        self._end(number, attempt_id)
        return True

    def fill(self) -> None:
        """Give every idle slot its next segment, where there is one."""
        for slot in list(self._idle):
            binding = bind_next(slot=slot)
            if binding is None:
                continue
            self._idle.remove(slot)
            attempt = Attempt.objects.select_related("segment", "workspace").get(pk=binding.attempt_id)
            took_ms = self.actual_ms(attempt.segment)
            self.served.append(
                Served(attempt.workspace, attempt.segment.job_class, attempt.segment_id, self.now_ms, took_ms)
            )
            heapq.heappush(self._busy, (self.now_ms + took_ms, slot.number, attempt.pk, took_ms))

    def run(self, *, until_ms: int | None = None) -> None:
        while (until_ms is None or self.now_ms < until_ms) and self.step():
            pass

    def _end(self, number: int, attempt_id: uuid.UUID) -> None:
        attempt = Attempt.objects.select_related("segment").get(pk=attempt_id)
        Segment.objects.filter(pk=attempt.segment_id).update(state=SegmentState.SUCCEEDED)
        Attempt.objects.filter(pk=attempt_id).update(
            state=AttemptState.SUCCEEDED,
            started_at=timezone.now(),
            finished_at=timezone.now(),
            gpu_ms=self.actual_ms(attempt.segment),
        )
        slot = self._slot_by_number[number]
        DeviceSlot.objects.filter(pk=slot.pk).update(attempt_id=None)
        self._idle.append(slot)

    def service_ms(self, *, since_ms: int = 0) -> Counter[uuid.UUID]:
        """Device milliseconds each workspace was given from `since_ms` on."""
        given: Counter[uuid.UUID] = Counter()
        for one in self.served:
            if one.started_ms >= since_ms:
                given[one.workspace.pk] += one.took_ms
        return given


def jain(values: list[float]) -> float:
    """Jain's index of fairness: 1 where all are equal, 1/n where one has it all."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def assert_counters_are_true() -> None:
    """What the trigger keeps is what a count of the segments gives."""
    kept = {
        (queue.workspace_id, queue.job_class): (queue.queued, queue.queued_estimate_gpu_ms, queue.running)
        for queue in FairShareQueue.objects.all()
    }
    for (workspace_id, job_class), counts in kept.items():
        mine = Segment.objects.filter(workspace_id=workspace_id, job_class=job_class)
        waiting = mine.filter(state=SegmentState.QUEUED)
        running = mine.filter(state__in=[SegmentState.BOUND, SegmentState.RUNNING]).count()
        estimate = waiting.aggregate(sum=Sum("estimate_gpu_ms"))["sum"] or 0
        assert counts == (waiting.count(), estimate, running)
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT workspace_id, job_class FROM tts_segment WHERE state = 'queued'")
        assert set(cursor.fetchall()) <= set(kept)
    for queue in FairShareQueue.objects.all():
        of_workspace = FairShareQueue.objects.filter(workspace_id=queue.workspace_id)
        assert queue.workspace_running == of_workspace.aggregate(sum=Sum("running"))["sum"]


def class_row(job_class: str) -> FairShareClass:
    return FairShareClass.objects.get(job_class=job_class)
