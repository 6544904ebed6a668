"""Which segment goes next. The one home of that rule; `bind` and the estimate of a place both ask here.

Today's rule: the more urgent class first; within a class, the workspace with the least work in hand; within a
workspace, the oldest. Weights, virtual time and the age override of the full rule replace `ORDER` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Count, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from tts.models import Segment, SynthesisJob
from tts.selectors.devices import ready_slot_count
from tts.states import JobClass, JobState, SegmentState

CLASS_RANK = Case(
    When(job_class=JobClass.INTERACTIVE, then=Value(0)),
    When(job_class=JobClass.STANDARD, then=Value(1)),
    default=Value(2),
    output_field=IntegerField(),
)


def queue_in_order() -> QuerySet[Segment]:
    """Every waiting segment, the next one first."""
    in_hand = (
        Segment.objects.filter(
            workspace=OuterRef("workspace"), state__in=[SegmentState.BOUND, SegmentState.RUNNING]
        )
        .order_by()
        .values("workspace")
        .annotate(number=Count("pk"))
        .values("number")
    )
    return (
        Segment.objects.filter(state=SegmentState.QUEUED)
        .annotate(class_rank=CLASS_RANK, in_hand=Coalesce(Subquery(in_hand, output_field=IntegerField()), 0))
        .order_by("class_rank", "in_hand", "created_at", "index", "pk")
    )


def segments_before(segment: Segment) -> QuerySet[Segment]:
    """The waiting segments of other jobs that would go before this one, were nothing new to come."""
    # Annotated rows: the type checker does not see what the query adds.
    mine: Any = queue_in_order().filter(pk=segment.pk).first()
    if mine is None:
        return Segment.objects.none()
    rank, in_hand = mine.class_rank, mine.in_hand
    earlier = Q(created_at__lt=segment.created_at) | Q(created_at=segment.created_at, pk__lt=segment.pk)
    same = Q(class_rank=rank) & (Q(in_hand__lt=in_hand) | (Q(in_hand=in_hand) & earlier))
    return queue_in_order().filter(Q(class_rank__lt=rank) | same).exclude(job_id=segment.job_id)


@dataclass(frozen=True)
class Place:
    """Where a job waits: 1 is next. `starts_in_ms` is None when no device takes work."""

    position: int
    segments_ahead: int
    starts_in_ms: int | None


def place_of(job: SynthesisJob) -> Place | None:
    """The waiting job's place and an estimate of its start; None once it has started or ended.

    The estimate adds up the estimated GPU time of all that goes before it and of what is being spoken now,
    shared by the slots that take work.
    """
    if job.state != JobState.QUEUED:
        return None
    first = Segment.objects.filter(job=job, state=SegmentState.QUEUED).order_by("index").first()
    if first is None:
        return Place(position=1, segments_ahead=0, starts_in_ms=0)
    ahead = segments_before(first)
    work = ahead.aggregate(ms=Sum("estimate_gpu_ms"))["ms"] or 0
    running = Segment.objects.filter(state__in=[SegmentState.BOUND, SegmentState.RUNNING])
    # On average, half of what is being spoken now is still to come.
    work += (running.aggregate(ms=Sum("estimate_gpu_ms"))["ms"] or 0) // 2
    slots = ready_slot_count()
    return Place(
        position=ahead.order_by().values("job_id").distinct().count() + 1,
        segments_ahead=ahead.count(),
        starts_in_ms=work // slots if slots else None,
    )
