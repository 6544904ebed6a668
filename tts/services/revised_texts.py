"""What a job's whole text and its chapters are once some of its segments say something else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tts.models import SynthesisJob
from tts.services.quotes import QuotedChapter, SegmentPlan

_SPEAKER_ENDS = re.compile(r"\s*[:：]\s*")


@dataclass(frozen=True)
class Revised:
    """A segment of the new job, and the index that it, or what it was, has in the old one."""

    index: int
    plan: SegmentPlan


def whole_text(source: SynthesisJob, changed: Mapping[int, str]) -> str:
    """The old job's text with what these segments say now in its place; "" is left out, its speaker's name too."""
    text, written, at = source.text, [], 0
    for segment in source.segments.all():
        found = text.find(segment.text.strip(), _behind_speaker(text, at, segment.speaker))
        if found < 0:
            # A text that its segments cannot be found in is told by them alone.
            return _joined(source, changed)
        end = found + len(segment.text.strip())
        if segment.index not in changed:
            written.append(text[at:end])
        elif segment.part == 0:
            before = text[at:found]
            if not changed[segment.index].strip():
                before = _without_speaker(before, segment.speaker)
            written.append(before + changed[segment.index].strip())
        at = end
    return "".join([*written, text[at:]]).strip()


def _joined(source: SynthesisJob, changed: Mapping[int, str]) -> str:
    written = [
        segment.text if segment.index not in changed else changed[segment.index] * (segment.part == 0)
        for segment in source.segments.all()
    ]
    return "".join(written).strip()


def _behind_speaker(text: str, at: int, speaker: str) -> int:
    """Where words are to be looked for: the name before them may say the same."""
    start = len(text) - len(text[at:].lstrip())
    begins_line = at == 0 or "\n" in text[at:start]
    if not (speaker and begins_line and text.startswith(speaker, start)):
        return at
    colon = _SPEAKER_ENDS.match(text, start + len(speaker))
    return colon.end() if colon else at


def _without_speaker(before: str, speaker: str) -> str:
    start = before.rfind("\n") + 1
    line = before[start:].strip()
    named = speaker and line.startswith(speaker) and _SPEAKER_ENDS.fullmatch(line[len(speaker) :])
    return before[:start].rstrip("\n") if named else before


def revised_chapters(
    source: SynthesisJob, revised: Sequence[Revised]
) -> tuple[list[QuotedChapter], list[SegmentPlan]]:
    """The chapters that are left, with the segments that they begin with now, and the plan with their numbers."""
    chapters: list[QuotedChapter] = []
    plan: list[SegmentPlan] = []
    number, index = -1, -1
    for one in revised:
        index += one.plan.kept is None or one.plan.kept.part == 0
        if source.chapters and one.plan.chapter != number:
            number = one.plan.chapter
            chapters.append(QuotedChapter(_title(source, one, number), index))
        plan.append(replace(one.plan, chapter=max(0, len(chapters) - 1)))
    return chapters, plan


def _title(source: SynthesisJob, first: Revised, number: int) -> str:
    title = title_said_by(source, chapter=number, index=first.index)
    # Of a title that is edited, what its one segment says now.
    return first.plan.text.strip() if title and first.plan.kept is None else title


def title_said_by(source: SynthesisJob, *, chapter: int, index: int) -> str:
    """The title of the chapter where the segment `index` says it, else ""."""
    if chapter >= len(source.chapters) or source.chapters[chapter]["first_index"] != index:
        return ""
    title: str = source.chapters[chapter]["title"]
    return title
