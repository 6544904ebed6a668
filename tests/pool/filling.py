"""A process that stores something whose files come before its row: `python -m tests.pool.filling WHAT ID`.

WHAT: `job` says the same as the job ID again, `revision` leaves out its first segment, `voice` makes a voice for its
workspace, `version` replaces the recording of its newest one. It prints what became of it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import django


def main(what: str, job_id: str) -> str:
    django.setup()
    from django.core.files.uploadedfile import SimpleUploadedFile

    from portal.lib.errors import DomainError
    from tests.audio import clips
    from tts.models import SynthesisJob, Voice, VoiceKind
    from tts.services.jobs import repeat_request
    from tts.services.revisions import SegmentEdit, revise_job
    from tts.services.submit import submit_job
    from tts.services.voice_versions import replace_recording
    from tts.services.voices import create_voice

    job = SynthesisJob.objects.get(pk=job_id)
    assert job.created_by is not None
    sender = {
        "workspace": job.workspace,
        "user": job.created_by,
        "api_key": None,
        "idempotency_key": None,
        "client_address": None,
        "request_id": "",
    }
    try:
        if what == "job":
            request = replace(repeat_request(job), seed=job.seed)
            made = submit_job(request=request, **sender).job.pk
        elif what == "revision":
            made = revise_job(job_id=job.pk, edits=[SegmentEdit(0, "")], **sender).job.pk
        else:
            recorded: dict[str, Any] = {
                "workspace": job.workspace,
                "user": job.created_by,
                "upload": SimpleUploadedFile("clip.wav", clips.wav(clips.speech(4.0))),
                "language": "en",
                "transcript": "",
                "consent": True,
                "locale": "en",
                "address": None,
            }
            if what == "voice":
                made = create_voice(name="Mine", **recorded).pk
            else:
                newest = Voice.objects.filter(workspace=job.workspace, kind=VoiceKind.CLONE).latest(
                    "created_at"
                )
                made = replace_recording(voice_id=newest.pk, **recorded).pk
    except DomainError as error:
        return error.code
    return str(made)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
