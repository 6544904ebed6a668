"""Repairs what a worker left undone that died between the end of a job and the publishing of what was spoken."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from tts.models import Attempt, Segment, SynthesisJob
from tts.services.aside import ASIDE_FROM_MS, ASIDE_WITHIN
from tts.services.endings import keep_what_was_spoken
from tts.states import JobState

logger = logging.getLogger(__name__)
# Whoever ended the job publishes its audio right after; only when it has not come by then is it missing.
AFTER_S = 5
# Once the repair has failed for this long (the disk is gone, say), more tries will not help.
WITHIN_S = 3600
AT_ONCE = 100


def publish_partial_audio() -> int:
    """Put together what jobs that were stopped early had spoken and been charged for; returns how many."""
    first = Attempt.objects.filter(job=OuterRef("pk"), segment__index=0, segment__part=0).exclude(
        audio_key=""
    )
    reused = Segment.objects.filter(job=OuterRef("pk"), index=0, reused=True)
    missing = SynthesisJob.objects.filter(
        Q(Exists(first)) | Q(Exists(reused)),
        state__in=[JobState.FAILED, JobState.CANCELED],
        finished_at__gte=Now() - timedelta(seconds=WITHIN_S),
        finished_at__lt=Now() - timedelta(seconds=AFTER_S),
    ).filter(
        # A long one is put together aside.
        Q(audio_ms__lt=ASIDE_FROM_MS) | Q(finished_at__lt=Now() - ASIDE_WITHIN),
        charged_micros__gt=0,
        audio_key="",
        deleted_at__isnull=True,
    )
    published = 0
    for job_id in missing.order_by("finished_at").values_list("pk", flat=True)[:AT_ONCE]:
        try:
            published += keep_what_was_spoken(job_id=job_id)
        except OSError as error:
            # Deleted meanwhile, or lost: the others' audio is not to wait for it.
            logger.error("partial_audio_lost", extra={"job_id": job_id, "error": type(error).__name__})
    return published
