"""When each segment of a job is heard: one rule for the file, the live sound and the subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tts.models import Segment, SynthesisJob
from tts.states import SegmentState
from tts.text.pauses import Joint, pause_after_ms


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
