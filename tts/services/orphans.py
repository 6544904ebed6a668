"""Segments that are with nobody: assigned or spoken by their state, and no attempt of theirs is live.

Nothing should make one. If something does, the sweep gives it back, because nobody else would ever look at it again.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef

from billing.services import holds
from tts.models import Attempt, Segment, SynthesisJob
from tts.services.endings import end_job
from tts.states import ATTEMPT_LIVE, JOB_LIVE, JobState, SegmentState

logger = logging.getLogger(__name__)
IN_HAND = (SegmentState.BOUND, SegmentState.RUNNING)


def return_orphans() -> int:
    """Queue such segments again, or end their job if it was canceled; returns how many there were.

    Locks the credit account, the job, the segment.
    """
    live = Attempt.objects.filter(
        segment_id=OuterRef("pk"), attempt_number=OuterRef("attempt_number"), state__in=ATTEMPT_LIVE
    )
    orphans = Segment.objects.filter(~Exists(live), state__in=IN_HAND, job__state__in=JOB_LIVE)
    returned = 0
    for segment in orphans.select_related("job")[:100]:
        with transaction.atomic():
            holds.lock_account(workspace_id=segment.workspace_id)
            job = SynthesisJob.objects.select_for_update(no_key=True).get(pk=segment.job_id)
            canceled = job.cancel_requested_at is not None
            moved = orphans.filter(pk=segment.pk, attempt_number=segment.attempt_number).update(
                state=SegmentState.CANCELED if canceled else SegmentState.QUEUED
            )
            if not moved:
                continue
            returned += 1
            if canceled and not Segment.objects.filter(job=job, state__in=IN_HAND).exists():
                end_job(job_id=job.pk, state=JobState.CANCELED)
        logger.error("segment_orphaned", extra={"job_id": segment.job_id, "segment_id": segment.pk})
    return returned
