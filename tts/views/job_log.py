"""What happened to a job, line by line, told from its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tts.failures import failure_text
from tts.models import Attempt, SynthesisJob
from tts.services.attempts import SPEECH_REJECTED
from tts.states import AttemptState, JobState

# Tries that came to nothing are told one by one up to so many: of a book on a bad day the table has the rest.
MOST_TRIES = 20


@dataclass(frozen=True)
class LogLine:
    at: datetime
    text: str


def job_log(job: SynthesisJob) -> list[LogLine]:
    """The lines in the order of time. Of a job from `job_of`: nothing more is read."""
    attempts = [attempt for segment in job.segments.all() for attempt in segment.attempts.all()]
    numbers = {segment.pk: segment.index + 1 for segment in job.segments.all()}
    lines = [LogLine(job.created_at, _("It was submitted"))]
    if job.reused_count:
        text = ngettext(
            "%(number)d segment was spoken before and is used again",
            "%(number)d segments were spoken before and are used again",
            job.reused_count,
        )
        lines.append(LogLine(job.created_at, text % {"number": job.reused_count}))
    if attempts:
        first = min(attempts, key=lambda attempt: attempt.bound_at)
        lines.append(
            LogLine(first.bound_at, _("Given to the device %(device)s") % {"device": first.device.name})
        )
    if job.started_at is not None and attempts:
        lines.append(LogLine(job.started_at, _("Speaking began")))
    if job.first_audio_at is not None:
        lines.append(LogLine(job.first_audio_at, _("The first sound was there")))
    failed = [attempt for attempt in attempts if _came_to_nothing(attempt) and attempt.finished_at]
    lines += [_failed(attempt, numbers[attempt.segment_id]) for attempt in failed[:MOST_TRIES]]
    if job.cancel_requested_at is not None:
        lines.append(LogLine(job.cancel_requested_at, _("Asked to stop")))
    if job.finished_at is not None:
        lines.append(LogLine(job.finished_at, _ending(job)))
    return sorted(lines, key=lambda line: line.at)


def _came_to_nothing(attempt: Attempt) -> bool:
    return attempt.state in (AttemptState.FAILED, AttemptState.LOST)


def _failed(attempt: Attempt, number: int) -> LogLine:
    names = {"number": number, "device": attempt.device.name}
    if attempt.error_code == SPEECH_REJECTED:
        text = _("What %(device)s spoke of segment %(number)d was found bad, at our cost") % names
    else:
        text = _("The try of %(device)s at segment %(number)d came to nothing, at our cost") % names
    assert attempt.finished_at is not None  # noqa: S101 - the caller has looked
    return LogLine(attempt.finished_at, text)


def _ending(job: SynthesisJob) -> str:
    if job.state == JobState.SUCCEEDED:
        return _("Done")
    if job.state == JobState.CANCELED:
        return _("Canceled")
    return _("Failed: %(reason)s") % {"reason": failure_text(job.error_code)}
