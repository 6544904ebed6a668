"""The Job page, drawn: its own view and the editor of its segments show the same."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from tts.models import SynthesisJob, Voice
from tts.selectors.jobs import receipt_of
from tts.selectors.timeline import chapters_of, has_subtitles
from tts.services.jobs import repeat_request
from tts.services.labels import label_of
from tts.views.cards import attempt_rows, output_text, text_start, voice_name
from tts.views.curl import curl_command
from tts.views.job_log import job_log
from tts.views.live import live_context


def speakers_of(job: SynthesisJob) -> list[tuple[str, str]]:
    """Every speaker that a script names with the name of its voice, in the order in which they speak.

    Of a job of `job_of`: nothing more is read.
    """
    voices: dict[str, Voice] = {}
    for segment in job.segments.all():
        if segment.speaker:
            voices.setdefault(segment.speaker, segment.voice or job.voice)
    return [(speaker, voice_name(voice)) for speaker, voice in voices.items()]


def job_context(job: SynthesisJob) -> dict[str, Any]:
    """What the page says of a job of `job_of`."""
    receipt = receipt_of(job)
    source = job.revision_of
    return live_context(job, cancel_next=reverse("job", args=[job.pk])) | {
        "receipt": receipt,
        "speakers": speakers_of(job),
        "chapters": chapters_of(job),
        "has_subtitles": has_subtitles(job),
        "released_micros": receipt.held_micros - receipt.amount_micros,
        "attempts": attempt_rows(receipt),
        "curl": curl_command(repeat_request(job)),
        "text_start": text_start(job.text),
        "output_text": output_text(job),
        "log_lines": job_log(job),
        "implicit_label": label_of(job.pk),
        "source": source if source is not None and source.deleted_at is None else None,
    }


def render_job(
    request: HttpRequest,
    job: SynthesisJob,
    extra: dict[str, Any],
    *,
    template: str = "tts/job.html",
    status: int = 200,
) -> HttpResponse:
    return render(request, template, job_context(job) | extra, status=status)
