"""What the platform says itself, spoken by the pool as the least urgent of jobs and kept as a file."""

from __future__ import annotations

import logging

from accounts.models import Workspace
from accounts.services.workspaces import platform_workspace
from billing.services.grants import grant
from tts import storage
from tts.models import SynthesisJob, Voice
from tts.services.quoting import quote
from tts.services.submit import JobRequest, submit_job
from tts.states import JOB_LIVE, JobClass, JobState

logger = logging.getLogger(__name__)
MAX_TRIES = 3
# The same seed for all: what was lost is made again byte for byte.
SEED = 1


def advance(*, name: str, voice: Voice, text: str, storage_key: str) -> None:
    """Store the file once it is spoken, else have it spoken, at most MAX_TRIES times. `name` tells it from others."""
    workspace = platform_workspace()
    tries = list(
        SynthesisJob.objects.filter(workspace=workspace, idempotency_key__startswith=f"{name}-").order_by(
            "-created_at"
        )
    )
    if tries and tries[0].state == JobState.SUCCEEDED and storage.exists(tries[0].audio_key):
        storage.save(storage_key, storage.read(tries[0].audio_key))
        logger.info("platform_speech_stored", extra={"speech": name})
    elif len(tries) < MAX_TRIES and not (tries and tries[0].state in JOB_LIVE):
        _submit(workspace, voice, text, key=f"{name}-{len(tries) + 1}")


def _submit(workspace: Workspace, voice: Voice, text: str, *, key: str) -> None:
    request = JobRequest(voice_id=voice.pk, text=text, job_class=JobClass.BATCH, seed=SEED)
    priced = quote(workspace=workspace, user=None, voice_id=voice.pk, text=text, job_class=request.job_class)
    grant(
        workspace_id=workspace.pk, amount_micros=priced.held_micros, idempotency_key=f"{key}:{workspace.pk}"
    )
    submit_job(
        workspace=workspace,
        user=None,
        api_key=None,
        request=request,
        idempotency_key=key,
        client_address=None,
        request_id="",
    )
