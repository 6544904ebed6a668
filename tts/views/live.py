"""The live part of a job: where it waits, how far it is, how it ended. Studio and job page show the same."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from portal.lib.display import seconds_text
from tts.failures import failure_text
from tts.models import Segment, SynthesisJob
from tts.selectors.timeline import timeline_of
from tts.services.fair_share import Place, place_of
from tts.states import JOB_LIVE, JobState, SegmentState, VoiceState
from tts.views.cards import Badge, state_badge, text_start, voice_name
from tts.views.player import Player, job_player

# Up to this many ticks tell more than a bar alone; hundreds would be a wall.
MAX_TICKS: Final = 60
TICKS: Final[dict[str, str]] = {
    SegmentState.RUNNING: "running",
    SegmentState.SUCCEEDED: "succeeded",
    SegmentState.FAILED: "failed",
}


@dataclass(frozen=True)
class SegmentLine:
    """A segment's text, and where it sounds in the job's audio: both None while there is no audio."""

    number: int
    index: int
    part: int
    # Who says it in a script; "" for the narrator.
    speaker: str
    text: str
    reused: bool
    badge: Badge
    tick: str
    start_ms: int | None
    end_ms: int | None


@dataclass(frozen=True)
class LivePart:
    job: SynthesisJob
    text_start: str
    badge: Badge
    voice_name: str
    currency: str
    headline: str | Promise
    detail: str | Promise
    percent: int
    is_live: bool
    cancel_asked: bool
    can_repeat: bool
    """Whether the job's voice speaks still, or already."""
    segments: list[SegmentLine]
    show_ticks: bool
    player: Player | None


def live_part(job: SynthesisJob) -> LivePart:
    """What to show of `job`, which comes from `job_of` and so has its segments at hand."""
    segments = segment_lines(job)
    player = job_player(job, title=_("Speech by %(voice)s") % {"voice": voice_name(job.voice)})
    if player is not None and segments:
        # The file has pauses too, which are no speech: its clock is not to jump when it begins.
        player = replace(
            player, duration_ms=max(player.duration_ms, *(line.end_ms or 0 for line in segments))
        )
    place = place_of(job) if job.state == JobState.QUEUED else None
    return LivePart(
        job=job,
        text_start=text_start(job.text),
        badge=state_badge(job),
        voice_name=voice_name(job.voice),
        currency=job.price_version.currency,
        headline=_headline(job, place),
        detail=_detail(job, place, player),
        percent=round(100 * job.segments_done / job.segment_count) if job.segment_count else 0,
        is_live=job.state in JOB_LIVE,
        can_repeat=job.voice.state == VoiceState.READY,
        cancel_asked=job.cancel_requested_at is not None and job.state in JOB_LIVE,
        segments=segments,
        show_ticks=1 < len(segments) <= MAX_TICKS,
        player=player,
    )


def segment_lines(job: SynthesisJob) -> list[SegmentLine]:
    """The segments in order, with their places in the audio: each is followed by its pause."""
    placed = {(one.index, one.part): one for one in timeline_of(job)} if job.audio_key else {}
    lines = []
    for segment in job.segments.all():
        place = placed.get((segment.index, segment.part))
        if place is not None and place.end_ms == place.start_ms:
            place = None
        lines.append(_line(segment, place.start_ms if place else None, place.end_ms if place else None))
    return lines


def _line(segment: Segment, start_ms: int | None, end_ms: int | None) -> SegmentLine:
    return SegmentLine(
        number=segment.index + 1,
        index=segment.index,
        part=segment.part,
        reused=segment.reused,
        speaker=segment.speaker,
        text=segment.text,
        badge=state_badge(segment),
        tick=TICKS.get(segment.state, "waiting"),
        start_ms=start_ms,
        end_ms=end_ms,
    )


HEADLINES: Final[dict[str, str | Promise]] = {
    JobState.FAILED: gettext_lazy("This could not be spoken"),
    JobState.CANCELED: gettext_lazy("Canceled"),
}


def _headline(job: SynthesisJob, place: Place | None) -> str | Promise:
    if job.state in JOB_LIVE and job.cancel_requested_at is not None:
        return _("Stopping …")
    if job.state == JobState.RUNNING:
        return _("Speaking: %(done)d of %(all)d segments done") % {
            "done": job.segments_done,
            "all": job.segment_count,
        }
    if job.state == JobState.QUEUED:
        if place is None or place.position <= 1:
            return _("Next in the queue")
        return _("Number %(position)d in the queue") % {"position": place.position}
    if job.state == JobState.SUCCEEDED:
        return _("%(length)s of speech") % {"length": seconds_text(job.audio_ms)}
    return HEADLINES[job.state]


def _detail(job: SynthesisJob, place: Place | None, player: Player | None) -> str | Promise:
    if job.state == JobState.QUEUED:
        return _start_estimate(place)
    if job.state == JobState.RUNNING:
        return _("You may leave this page: nothing is lost, and the result stands in your history.")
    if job.state == JobState.FAILED:
        return failure_text(job.error_code)
    if job.state == JobState.CANCELED:
        return _("Only what had been spoken until then was charged.")
    return _length_with_pauses(job, player)


def _length_with_pauses(job: SynthesisJob, player: Player | None) -> str:
    """What the player counts, where it is more than the speech that the headline tells and that is paid."""
    if player is None or seconds_text(player.duration_ms) == seconds_text(job.audio_ms):
        return ""
    return _("With the pauses between its segments the recording lasts %(length)s.") % {
        "length": seconds_text(player.duration_ms)
    }


def _start_estimate(place: Place | None) -> str:
    if place is None or place.starts_in_ms is None:
        if place is not None:
            return _("No device is speaking right now. The job waits and starts as soon as one is back.")
        return _("Starts at once.")
    seconds = round(place.starts_in_ms / 1000)
    if seconds < 2:
        return _("Starts at once.")
    if seconds < 90:
        return _("Starts in about %(seconds)d s.") % {"seconds": seconds}
    minutes = round(seconds / 60)
    return ngettext(
        "Starts in about %(minutes)d minute.", "Starts in about %(minutes)d minutes.", minutes
    ) % {"minutes": minutes}


def live_context(job: SynthesisJob, *, cancel_next: str) -> dict[str, Any]:
    """What the live part's templates read. `cancel_next` is the page that a canceled job is looked at on."""
    return {"live": live_part(job), "job": job, "cancel_next": cancel_next, "repeat_token": uuid.uuid4()}
