"""A job's subtitles and chapters as files."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.tenancy import require_workspace
from tts.documents.subtitles import SpokenPart, srt, vtt, vtt_chapters
from tts.errors import FormatUnknown, SubtitlesNotReady
from tts.models import SynthesisJob
from tts.selectors.jobs import lone_job_of
from tts.selectors.timeline import chapters_of, has_subtitles, spoken_parts
from tts.views.media import job_filename


@dataclass(frozen=True)
class SubtitleFormat:
    content_type: str
    extension: str
    write: Callable[[SynthesisJob], str]


def _chapters(job: SynthesisJob) -> str:
    return vtt_chapters(
        SpokenPart(chapter.title or _("Beginning"), chapter.start_ms, chapter.end_ms)
        for chapter in chapters_of(job)
        if chapter.start_ms is not None and chapter.end_ms is not None
    )


SUBTITLE_FORMATS: Final = {
    "srt": SubtitleFormat("application/x-subrip", "srt", lambda job: srt(spoken_parts(job))),
    "vtt": SubtitleFormat("text/vtt", "vtt", lambda job: vtt(spoken_parts(job))),
    "chapters": SubtitleFormat("text/vtt", "chapters.vtt", _chapters),
}


def subtitles_response(job: SynthesisJob, format_code: str, *, download: bool) -> HttpResponse:
    """The subtitles of the job. Raises FormatUnknown, SubtitlesNotReady."""
    chosen = SUBTITLE_FORMATS.get(format_code)
    if chosen is None:
        raise FormatUnknown(formats=", ".join(SUBTITLE_FORMATS))
    if not has_subtitles(job):
        raise SubtitlesNotReady
    response = HttpResponse(chosen.write(job), content_type=f"{chosen.content_type}; charset=utf-8")
    response["Cache-Control"] = "private, no-cache"
    if download:
        response["Content-Disposition"] = f'attachment; filename="{job_filename(job, chosen.extension)}"'
    return response


@login_required
@require_safe
def job_subtitles_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """To be saved, unless it is for the player (`?inline`)."""
    job = lone_job_of(require_workspace(request), job_id)
    return subtitles_response(job, request.GET.get("format") or "vtt", download="inline" not in request.GET)
