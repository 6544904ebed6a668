"""A quote and its parts: what a request is cut into, what it needs, and what it costs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from billing.models import PriceVersion
from billing.pricing import Rate, price_gpu_ms
from tts.documents.scripts import NARRATOR
from tts.models import Segment, Voice
from tts.services.instructions import instruction_needs
from tts.services.phrases import Manner, Reusable, phrase_of
from tts.text.errors import TextTooManyParts
from tts.text.hints import Hint, hints_of
from tts.text.pronunciation import NOTHING, Dictionary
from tts.text.spoken import spoken_text

PREVIEW_SEGMENTS: Final = 60
# What a column of milliseconds holds: 24 days.
MAX_GPU_MS: Final = 2**31 - 1


@dataclass(frozen=True)
class SegmentPlan:
    """A segment as it will be stored. Price and limits go by `text`; `spoken` is what the engine is given for it."""

    text: str
    voice: Voice
    needs: list[str]
    characters: int
    estimate_gpu_ms: int
    held_gpu_ms: int
    speaker: str = NARRATOR
    chapter: int = 0
    language: str = ""
    pronunciations: Dictionary = NOTHING
    seed: int | None = None
    """None: the job's."""
    kept: Segment | None = None
    """The segment of an earlier job that it is, sound and all."""

    @functools.cached_property
    def spoken(self) -> str:
        """Made when it is first asked for, and kept: of a book it takes seconds."""
        return spoken_text(
            self.text,
            language=self.language,
            voice_language=self.voice.language,
            pronunciations=self.pronunciations,
        )


@dataclass(frozen=True)
class QuotedSpeaker:
    """A speaker of a script, and what is his. `voice` None: none is chosen, and the job would be refused."""

    name: str
    voice: Voice | None
    characters: int
    segment_count: int


@dataclass(frozen=True)
class QuotedChapter:
    """`title` is "" where the text begins without one; `first_index` is the segment that the chapter begins with."""

    title: str
    first_index: int


@dataclass(frozen=True)
class Quote:
    """`estimate_*` is what to expect, `held_*` what is set aside at most. `needs`: of all segments together."""

    voice: Voice
    text: str
    language: str
    characters: int
    plan: list[SegmentPlan]
    chapters: list[QuotedChapter]
    speakers: list[QuotedSpeaker]
    needs: list[str]
    estimate_audio_ms: int
    estimate_gpu_ms: int
    estimate_micros: int
    held_gpu_ms: int
    held_micros: int
    currency: str
    price: PriceVersion
    rate: Rate
    manner: Manner
    pronunciation_version: int | None = None
    """The number of the workspace's pronunciations; None: it has none."""
    reused: Mapping[int, Reusable] = field(default_factory=dict)
    """Segments, by their place in the plan, whose audio is there already: they cost nothing. `estimate_gpu_ms`,
    `estimate_micros` and `held_*` are of the others."""
    _phrases: dict[int, list[str]] = field(default_factory=dict, repr=False, compare=False)
    """By seed; the plan and the manner, which they follow from, are those of every copy of this quote."""

    @property
    def is_all_reused(self) -> bool:
        """Whether there is nothing to speak."""
        return len(self.reused) == len(self.plan)

    @property
    def reused_characters(self) -> int:
        return sum(self.plan[place].characters for place in self.reused)

    @property
    def instruction_needs(self) -> set[str]:
        """What a device must offer for the instruction, beside what a segment needs."""
        manner = self.manner
        return instruction_needs(instruction=manner.instruction, instruction_text=manner.instruction_text)

    def phrases(self, seed: int) -> list[str]:
        """`Segment.phrase` of each segment, were the job spoken with this seed. Of a book it takes seconds: what the
        look for speech has made is there when the job is stored."""
        if seed not in self._phrases:
            self._phrases[seed] = self._phrases_of(seed)
        return self._phrases[seed]

    def _phrases_of(self, seed: int) -> list[str]:
        return [
            part.kept.phrase
            if part.kept is not None
            else phrase_of(
                manner=self.manner,
                voice=part.voice,
                text=part.text,
                spoken=part.spoken,
                seed=seed if part.seed is None else part.seed,
            )
            for part in self.plan
        ]

    def with_reused(self, reused: Mapping[int, Reusable]) -> Quote:
        """The same request, priced for what is not among these. Raises TextTooManyParts for what no column holds."""
        left = [part for place, part in enumerate(self.plan) if place not in reused]
        estimate_gpu_ms = sum(part.estimate_gpu_ms for part in left)
        held_gpu_ms = sum(part.held_gpu_ms for part in left)
        if held_gpu_ms > MAX_GPU_MS:
            raise TextTooManyParts(parts=len(left), limit=len(left) * MAX_GPU_MS // held_gpu_ms)
        # Where nothing is spoken nothing is charged, not even the least charge.
        least = self.price.minimum_charge_micros if left else 0
        return replace(
            self,
            reused=dict(reused),
            estimate_gpu_ms=estimate_gpu_ms,
            estimate_micros=max(least, price_gpu_ms(gpu_ms=estimate_gpu_ms, rate=self.rate)),
            held_gpu_ms=held_gpu_ms,
            held_micros=max(least, price_gpu_ms(gpu_ms=held_gpu_ms, rate=self.rate)),
        )

    @property
    def segments(self) -> list[str]:
        return [part.text for part in self.plan]

    @property
    def spoken(self) -> list[str]:
        return [part.spoken for part in self.plan]

    @property
    def preview(self) -> list[SegmentPlan]:
        """What a page shows of the plan: of a book its beginning."""
        return self.plan[:PREVIEW_SEGMENTS]

    @property
    def further_count(self) -> int:
        """How many segments come after the preview."""
        return len(self.plan) - len(self.preview)

    @property
    def hints(self) -> list[Hint]:
        """What is read as it stands and may have been meant as an annotation."""
        return hints_of(self.text)

    @property
    def is_spoken_as_written(self) -> bool:
        """Whether nothing of the preview is said otherwise than it is written."""
        return all(part.spoken == part.text for part in self.preview)

    @property
    def price_version(self) -> int:
        return self.price.number

    @property
    def speakers_without_voice(self) -> list[str]:
        return [speaker.name for speaker in self.speakers if speaker.voice is None]
