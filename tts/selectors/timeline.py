"""When each segment of a job is heard: one rule for the file, the live sound and the subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tts.documents.subtitles import SpokenPart
from tts.models import Segment, SynthesisJob
from tts.states import JOB_ENDED, SegmentState
from tts.text.pauses import Joint, pause_after_ms
from tts.text.shown import shown_text


@dataclass(frozen=True)
class PlacedSegment:
    """A segment and when it is heard, in milliseconds from the job's beginning."""

    index: int
    part: int
    start_ms: int
    end_ms: int
    text: str
    speaker: str
    chapter: int


def timeline_of(job: SynthesisJob) -> list[PlacedSegment]:
    """The segments that were spoken, in order, up to the first one that was not: what the job's file has of whole ones.

    Of a job from `job_of` the segments at hand are taken. Lengths are those of the segments' files in whole
    milliseconds: each place is exact to half a millisecond for every segment before it.
    """
    placed: list[PlacedSegment] = []
    segments = spoken_segments(job)
    at_ms = 0
    for segment, pause_ms in zip(segments, pauses_ms(job, segments), strict=True):
        end_ms = at_ms + segment.audio_ms
        placed.append(
            PlacedSegment(
                index=segment.index,
                part=segment.part,
                start_ms=at_ms,
                end_ms=end_ms,
                text=segment.text,
                speaker=segment.speaker,
                chapter=segment.chapter,
            )
        )
        at_ms = end_ms + pause_ms
    return placed


def spoken_segments(job: SynthesisJob) -> list[Segment]:
    """The segments from the first one on that were spoken whole."""
    # Sorted here: rows that were fetched with the job are not read again.
    segments = sorted(job.segments.all(), key=lambda segment: (segment.index, segment.part))
    for number, segment in enumerate(segments):
        if segment.state != SegmentState.SUCCEEDED:
            return segments[:number]
    return segments


def pauses_ms(job: SynthesisJob, segments: Sequence[Segment]) -> list[int]:
    """The silence after each of the job's segments, which are in order; the last one's is 0."""
    return [*(pause_between_ms(job, one, following) for one, following in pairwise(segments)), 0][
        : len(segments)
    ]


def pause_between_ms(job: SynthesisJob, one: Segment, following: Segment) -> int:
    """The silence between two segments of the job, the second of which follows the first."""
    return pause_after_ms(one.text, speed=job.speed, joint=_joint(job, one, following))


def _joint(job: SynthesisJob, one: Segment, following: Segment) -> Joint:
    if one.index == following.index:
        return Joint.SAME
    if one.chapter != following.chapter:
        return Joint.CHAPTER
    chapters = job.chapters
    if one.chapter < len(chapters):
        chapter = chapters[one.chapter]
        if chapter["title"] and chapter["first_index"] == one.index:
            return Joint.TITLE_ENDS
    return Joint.SAME if one.speaker == following.speaker else Joint.SPEAKER


@dataclass(frozen=True)
class PlacedChapter:
    """A chapter and when it is heard; None where it was not spoken, or the job has not ended. `title` may be ""."""

    title: str
    first_index: int
    start_ms: int | None
    end_ms: int | None


def has_subtitles(job: SynthesisJob) -> bool:
    """Whether the job has ended with audio whose places are known."""
    return job.state in JOB_ENDED and bool(job.audio_key)


def chapters_of(job: SynthesisJob) -> list[PlacedChapter]:
    """The job's chapters, each of which lasts until the next one begins; [] where its text has no titles."""
    if not job.chapters:
        return []
    placed = timeline_of(job) if has_subtitles(job) else []
    starts: dict[int, int] = {}
    for segment in placed:
        starts.setdefault(segment.index, segment.start_ms)
    begins = [starts.get(chapter["first_index"]) for chapter in job.chapters]
    end_ms = placed[-1].end_ms if placed else None
    return [
        PlacedChapter(
            title=chapter["title"],
            first_index=chapter["first_index"],
            start_ms=start,
            end_ms=None if start is None else end_ms if following is None else following,
        )
        for chapter, start, following in zip(job.chapters, begins, [*begins[1:], None], strict=True)
    ]


def spoken_parts(job: SynthesisJob) -> list[SpokenPart]:
    """What subtitles show: each segment's text as people read it, when it is heard, and by whom it is said."""
    return [
        SpokenPart(shown, placed.start_ms, placed.end_ms, placed.speaker)
        for placed in timeline_of(job)
        if (shown := shown_text(placed.text))
    ]
