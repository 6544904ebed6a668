"""That a job has ended, in its own row and for customers' webhooks.

Where nobody wants to hear of it, which one read of the workspace's row in the same statement tells, a job's end costs
no statement more.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import connection

from accounts.services.webhook_events import note_fact
from accounts.webhooks.catalogue import JOB_CANCELED, JOB_FAILED, JOB_SUCCEEDED
from tts.states import JobState

EVENT_OF: Final = {
    JobState.SUCCEEDED: JOB_SUCCEEDED,
    JobState.FAILED: JOB_FAILED,
    JobState.CANCELED: JOB_CANCELED,
}


@dataclass(frozen=True)
class EndedJob:
    """A job as its end was written. `is_wanted`: an endpoint of its workspace wants to hear of it."""

    job_id: uuid.UUID
    workspace_id: uuid.UUID
    voice_id: uuid.UUID
    state: JobState
    error_code: str
    job_class: str
    characters: int
    segment_count: int
    audio_ms: int
    gpu_ms: int
    charged_micros: int
    created_at: datetime
    finished_at: datetime
    is_wanted: bool


_END: Final = """
UPDATE tts_synthesisjob job SET state = %(state)s, error_code = %(error_code)s, audio_key = %(audio_key)s,
    peaks = %(peaks)s, finished_at = statement_timestamp()
WHERE job.id = %(job)s AND job.state IN ('queued', 'running')
RETURNING job.workspace_id, job.voice_id, job.job_class, job.characters, job.segment_count, job.audio_ms, job.gpu_ms,
    job.charged_micros, job.created_at, job.finished_at, EXISTS (
        SELECT 1 FROM accounts_workspace workspace
        WHERE workspace.id = job.workspace_id AND %(event)s = ANY(workspace.webhook_events)
    )
"""


def move_to_end(
    *, job_id: uuid.UUID, state: JobState, error_code: str, audio_key: str, peaks: list[int]
) -> EndedJob | None:
    """Write the end of a live job; None, and nothing changed, when it had ended before. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            _END,
            {
                "job": job_id,
                "state": state.value,
                "error_code": error_code,
                "audio_key": audio_key,
                "peaks": json.dumps(peaks),
                "event": EVENT_OF[state],
            },
        )
        row = cursor.fetchone()
    if row is None:
        return None
    return EndedJob(
        job_id=job_id,
        state=state,
        error_code=error_code,
        workspace_id=row[0],
        voice_id=row[1],
        job_class=row[2],
        characters=row[3],
        segment_count=row[4],
        audio_ms=row[5],
        gpu_ms=row[6],
        charged_micros=row[7],
        created_at=row[8],
        finished_at=row[9],
        is_wanted=row[10],
    )


def note_end(ended: EndedJob, *, charged_micros: int) -> None:
    """Tell the workspace's endpoints, where one wants to hear of it. Call in the transaction of the end."""
    if not ended.is_wanted:
        return
    note_fact(
        workspace_id=ended.workspace_id,
        event_type=EVENT_OF[ended.state],
        subject=ended.job_id,
        data={
            "job_id": str(ended.job_id),
            "voice_id": str(ended.voice_id),
            "state": ended.state.value,
            "error_code": ended.error_code,
            "job_class": ended.job_class,
            "characters": ended.characters,
            "segment_count": ended.segment_count,
            "audio_ms": ended.audio_ms,
            "gpu_ms": ended.gpu_ms,
            "charged_micros": charged_micros,
            "created_at": ended.created_at.isoformat(),
            "finished_at": ended.finished_at.isoformat(),
        },
    )
