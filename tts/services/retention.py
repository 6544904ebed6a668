"""For how many days a workspace keeps what was spoken. Its plan says so."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta

from django.db.models.functions import Now

from accounts.models import Workspace
from tts.errors import JobNotFound
from tts.models import SynthesisJob
from tts.services.jobs import delete_job
from tts.states import JOB_ENDED

logger = logging.getLogger(__name__)
DELETED_AT_ONCE = 200


def delete_expired_jobs() -> int:
    """Delete jobs that ended longer ago than their workspace keeps them, as if the customer had; returns how many.

    For the clock, once a minute. Receipts, usage and the ledger stay.
    """
    deleted = 0
    for workspace in Workspace.objects.filter(retention_days__isnull=False):
        over = SynthesisJob.objects.filter(
            workspace=workspace,
            state__in=JOB_ENDED,
            deleted_at__isnull=True,
            finished_at__lt=Now() - timedelta(days=workspace.retention_days or 0),
        )
        for job_id in list(over.order_by("finished_at").values_list("pk", flat=True)[:DELETED_AT_ONCE]):
            with contextlib.suppress(JobNotFound):  # the customer was faster
                delete_job(workspace=workspace, job_id=job_id)
                deleted += 1
    if deleted:
        logger.info("jobs_expired", extra={"jobs": deleted})
    return deleted
