"""A book to be spoken: chapters of plain sentences in two languages, with numbers, and what is true of its audio."""

from __future__ import annotations

import random
import re
import wave
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tts.models import SynthesisJob

SENTENCES = (
    "那天夜里下了很大的雨，街上一个人也没有，只有远处的灯还亮着。",
    "他站在窗前，想起许多年以前的事情，却怎么也记不清她的样子了。",
    "{year}年{month}月，他花了¥{amount}.50元买了{count}本书，便宜了{count}%。",
    "会议在下午{month}:{count}开始，一共有{count}个人。",
    "The rain had stopped by the time they reached the old harbour, and nobody spoke for a while. ",
    "“You never told me,” she said quietly, and looked out over the water. ",
    "On {month}/{month}/{year} the price rose {count}.5% to ${amount}.99. ",
)


class Wrong(Exception):
    """What was made is not what was asked for."""


def expect(truth: bool, what: str) -> None:
    if not truth:
        raise Wrong(what)


def book(*, characters: int, chapters: int) -> str:
    """A text of nearly so many characters: never more, and less by a sentence for each chapter at most."""
    chance, written = random.Random(1), []
    for number in range(1, chapters + 1):
        chapter = [f"第{number}章 远行\n"]
        left = characters // chapters - len(chapter[0])
        while True:
            sentence = chance.choice(SENTENCES).format(
                year=chance.randint(1900, 2030),
                month=chance.randint(1, 12),
                count=chance.randint(10, 59),
                amount=chance.randint(100, 9999),
            )
            sentence += "\n" if chance.random() < 0.1 else ""
            left -= len(sentence)
            if left < 1:
                break
            chapter.append(sentence)
        written.append("".join(chapter) + "\n")
    return "".join(written)


def check_spoken(job: SynthesisJob, *, chapters: int) -> None:
    """Raises Wrong unless everything that there is of a done job is whole and in its place."""
    from tts.documents.subtitles import cues_of, srt, vtt
    from tts.selectors.timeline import chapters_of, spoken_parts, timeline_of
    from tts.states import JobState, SegmentState

    expect(job.state == JobState.SUCCEEDED, f"it is {job.state} ({job.error_code})")
    segments = list(job.segments.order_by("index", "part"))
    expect(all(each.state == SegmentState.SUCCEEDED for each in segments), "a segment was not spoken")
    expect(len(segments) == job.segment_count == job.segments_done, "segments are missing")
    _check_length(job)
    timeline = timeline_of(job)
    expect(len(timeline) == len(segments), "a segment has no place")
    expect(all(one.end_ms <= other.start_ms for one, other in pairwise(timeline)), "places overlap")
    parts = spoken_parts(job)
    count = len(cues_of(parts))
    expect(vtt(parts).count(" --> ") == count >= len(segments), "WebVTT is not whole")
    srt_text = srt(parts)
    expect(srt_text.count(" --> ") >= len(segments), "SubRip is not whole")
    said = "".join(re.sub(r"(?m)^(\d+|.* --> .*)$", "", srt_text).split())
    shown = "".join("".join(part.text.split()) for part in parts)
    expect(said == shown, "the subtitles do not say the text")
    placed = chapters_of(job)
    expect(len(placed) == chapters and all(each.title for each in placed), "chapters are missing")
    expect(placed[0].start_ms == 0 and placed[-1].end_ms == timeline[-1].end_ms, "chapters are not whole")
    expect(all(one.end_ms == other.start_ms for one, other in pairwise(placed)), "chapters leave gaps")


def _check_length(job: SynthesisJob) -> None:
    """The file is as long as its segments' files with the pauses between them, to the sample."""
    from tts import storage
    from tts.selectors.timeline import pauses_ms, spoken_segments

    segments = spoken_segments(job)
    pauses = pauses_ms(job, segments)
    with storage.open_audio(job.audio_key) as file, wave.open(file) as master:
        rate_hz, frames = master.getframerate(), master.getnframes()
    spoken = 0
    for segment in segments:
        with storage.open_audio(segment.audio_key) as file, wave.open(file) as part:
            spoken += part.getnframes()
    silent = sum(round(pause * rate_hz / 1000) for pause in pauses)
    expect(frames == spoken + silent, f"the file has {frames} samples, its parts {spoken} and {silent}")
    expect(abs(sum(each.audio_ms for each in segments) - job.audio_ms) == 0, "the job's length is another")


def check_books() -> None:
    """Raises Wrong where any check of the books finds a difference."""
    from billing.reconciliation.checks import CHECKS, run_all
    from tts.selectors.reconciliation import CHECKS as POOL_CHECKS

    differing = [
        outcome.check.name for outcome in run_all((*CHECKS, *POOL_CHECKS), day=None) if outcome.differences
    ]
    expect(not differing, f"the books differ: {', '.join(differing)}")
