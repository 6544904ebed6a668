"""What a request would cost, before anything is stored."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from accounts.models import User, Workspace
from billing.models import PriceVersion
from billing.pricing import Rate
from billing.selectors.prices import current_price, highest_rate
from tts.documents.passages import Passage, ReadText, read_text
from tts.documents.scripts import NARRATOR
from tts.engine.capabilities import needs_of
from tts.errors import NotOffered, PronunciationTooLong
from tts.models import Voice
from tts.selectors.devices import device_classes_in_use
from tts.selectors.engines import PoolOffer, pool_offer
from tts.selectors.pronunciations import pronunciations_for
from tts.selectors.voices import voice_of
from tts.services.casting import voices_of_cast
from tts.services.instructions import PLAIN
from tts.services.phrases import Manner, Reusable, find_spoken
from tts.services.quotes import Quote, QuotedChapter, QuotedSpeaker, SegmentPlan
from tts.text.annotations import counted_characters, silence_ms
from tts.text.errors import SpeechTooLong, TextTooManyParts
from tts.text.estimate import estimate_audio_ms
from tts.text.instructions import clean_free_instruction
from tts.text.language import languages_of
from tts.text.limits import (
    FIRST_SEGMENT_MS,
    MAX_JOB_AUDIO_MS,
    MAX_JOB_SEGMENTS,
    MAX_PRONOUNCED_MS,
    MAX_SEGMENT_MS,
    PREFERRED_SEGMENT_MS,
    max_job_characters,
)
from tts.text.pronunciation import Dictionary
from tts.text.segmentation import segment

__all__ = [
    "SCRIPT",
    "Planner",
    "Quote",
    "QuotedChapter",
    "QuotedSpeaker",
    "SegmentPlan",
    "priced_plan",
    "quote",
    "spoken_before",
]
# The hold is the quote's upper bound: this many times the estimate, and a fixed part for short texts. The engine is
# stopped when it is used up, so it has to cover a slow moment of a shared device, not a broken one.
HOLD_FACTOR = 4
HOLD_BASE_GPU_MS = 3000

# The mode of a text that is read as a script of several speakers.
SCRIPT: Final = "script"
HOUR_MS: Final = 3_600_000


def quote(
    *,
    workspace: Workspace,
    user: User | None,
    voice_id: uuid.UUID,
    text: str,
    language: str = "",
    job_class: str = "interactive",
    speed: float = 1.0,
    mode: str = PLAIN,
    cast: Mapping[str, uuid.UUID] | None = None,
    instruction: str = "",
    instruction_text: str = "",
    seed: int | None = None,
    pronunciation_version: int | None = None,
    draft: Voice | None = None,
) -> Quote:
    """Check the request, cut it into segments, and price it. Stores nothing.

    In the mode "script" the text's speakers are spoken by the voices of `cast`; a speaker without one is told in the
    answer, and counted with the job's voice. With a `seed`, what the workspace has had spoken in the same way is used
    again and costs nothing (tts.services.phrases). `pronunciation_version` None: the workspace's newest; 0: none.
    `draft`: the user's own draft that speaks, for tts.services.voice_drafts alone; `voice_id` finds no draft.

    Raises:
        PronunciationVersionUnknown, PronunciationTooLong
        VoiceNotFound: no such voice for this member of the workspace, the job's or one of the cast's.
        NotOffered: no device can speak this.
        text_* and the like: see tts.text.errors.
    """
    engine = pool_offer()
    own_words = clean_free_instruction(instruction_text)
    manner = Manner(workspace.pk, job_class, language, speed, instruction, own_words)
    read = read_text(
        text,
        is_script=mode == SCRIPT,
        supported_languages=engine.languages,
        language=language,
        max_characters=max_job_characters(job_class),
    )
    voice = draft or voice_of(workspace, user, voice_id)
    voices = voices_of_cast(workspace, user, narrator=voice, speakers=read.speakers, cast=cast or {})
    version, pronunciations = pronunciations_for(workspace, pronunciation_version)
    audio_ms = _audio_ms(read, speed, pronunciations)
    by_speaker = {NARRATOR: voice, **{name: voices.get(name, voice) for name in read.speakers}}
    planner = _planner(read, engine, manner, by_speaker, pronunciations)
    plan, chapters = planner.plan(read)
    priced = priced_plan(
        manner=manner,
        voice=voice,
        text=read.text,
        characters=read.characters,
        plan=plan,
        chapters=chapters,
        speakers=_speakers(read, plan, voices),
        needs=sorted(set().union(*planner.needs.values())),
        estimate_audio_ms=audio_ms,
        pronunciation_version=version,
    )
    return priced if seed is None else priced.with_reused(spoken_before(priced, seed))


def _planner(
    read: ReadText, engine: PoolOffer, manner: Manner, voices: Mapping[str, Voice], pronunciations: Dictionary
) -> Planner:
    """What cuts the text for these voices. Raises NotOffered where no device can speak for one of them."""
    planner = Planner(
        voices=voices,
        languages=languages_of(read.spoken, asked=manner.language),
        language=manner.language,
        gpu_ms_per_audio_s=engine.gpu_ms_per_audio_s,
        speed=manner.speed,
        pronunciations=pronunciations,
    )
    if not all(map(engine.suits, planner.needs.values())):
        raise NotOffered
    return planner


def priced_plan(
    *,
    manner: Manner,
    voice: Voice,
    text: str,
    characters: int,
    plan: list[SegmentPlan],
    chapters: list[QuotedChapter],
    speakers: list[QuotedSpeaker],
    needs: list[str],
    estimate_audio_ms: int,
    pronunciation_version: int | None = None,
) -> Quote:
    """What these segments cost at today's price, all of them spoken. Raises TextTooManyParts."""
    price = current_price()
    rate = _rate(price, manner.job_class)
    return Quote(
        voice=voice,
        text=text,
        language=manner.language,
        characters=characters,
        plan=plan,
        chapters=chapters,
        speakers=speakers,
        needs=needs,
        estimate_audio_ms=estimate_audio_ms,
        estimate_gpu_ms=0,
        estimate_micros=0,
        held_gpu_ms=0,
        held_micros=0,
        currency=rate.currency,
        price=price,
        rate=rate,
        manner=manner,
        pronunciation_version=pronunciation_version,
    ).with_reused({})


def spoken_before(priced: Quote, seed: int) -> dict[int, Reusable]:
    """What of it was spoken before with this seed, by place."""
    phrases = priced.phrases(seed)
    # Voices of another kind may be another engine's affair.
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, part in enumerate(priced.plan):
        if part.kept is None:
            places[tuple(part.needs)].append(place)
    found: dict[int, Reusable] = {}
    for needs, those in places.items():
        reusable = find_spoken(
            workspace_id=priced.manner.workspace_id,
            phrases=[phrases[place] for place in those],
            needs={*needs, *priced.instruction_needs},
        )
        found |= {those[number]: source for number, source in reusable.items()}
    return found


def _rate(price: PriceVersion, job_class: str) -> Rate:
    """Whichever device speaks it, it costs no more. Devices are looked at only where they differ in price."""
    classes = device_classes_in_use() if price.device_class_rates else ()
    return highest_rate(price=price, job_class=job_class, device_classes=classes)


def _audio_ms(read: ReadText, speed: float, pronunciations: Dictionary) -> int:
    """How long it is expected to be. Raises SpeechTooLong where one file could not hold it."""
    texts = (pronunciations.apply(passage.text).text for passage in read.passages)
    said = sum(estimate_audio_ms(text) + silence_ms(text) for text in texts)
    audio_ms = round(said / speed)
    if audio_ms > MAX_JOB_AUDIO_MS:
        raise SpeechTooLong(hours=audio_ms // HOUR_MS + 1, limit_hours=MAX_JOB_AUDIO_MS // HOUR_MS)
    return audio_ms


def _speakers(
    read: ReadText, plan: Sequence[SegmentPlan], voices: Mapping[str, Voice]
) -> list[QuotedSpeaker]:
    characters, segments = Counter[str](), Counter[str]()
    for part in plan:
        characters[part.speaker] += part.characters
        segments[part.speaker] += 1
    return [QuotedSpeaker(name, voices.get(name), characters[name], segments[name]) for name in read.speakers]


class Planner:
    """Cuts passages into segments, each with its voice, needs and limits."""

    def __init__(
        self,
        *,
        voices: Mapping[str, Voice],
        languages: tuple[str, ...],
        language: str,
        gpu_ms_per_audio_s: int,
        speed: float,
        pronunciations: Dictionary,
    ) -> None:
        self._pronunciations = pronunciations
        self._voices = voices
        self._language = language
        self._gpu_ms_per_audio_s = gpu_ms_per_audio_s
        self._speed = speed
        self.needs = {
            kind: needs_of(voice_kind=kind, languages=languages)
            for kind in sorted({voice.kind for voice in voices.values()})
        }

    def plan(self, read: ReadText) -> tuple[list[SegmentPlan], list[QuotedChapter]]:
        """The segments of all passages, and which one each chapter begins with. Raises TextTooManyParts."""
        plan: list[SegmentPlan] = []
        first_indexes: list[int] = []
        for passage in read.passages:
            first_indexes.append(len(plan))
            plan += [
                self.planned(text, speaker=passage.speaker, chapter=passage.chapter)
                for text in cut(passage, is_first=not plan)
            ]
        if len(plan) > MAX_JOB_SEGMENTS:
            raise TextTooManyParts(parts=len(plan), limit=MAX_JOB_SEGMENTS)
        chapters = [
            QuotedChapter(chapter.title, first_indexes[chapter.first_passage]) for chapter in read.chapters
        ]
        return plan, chapters

    def planned(self, text: str, *, speaker: str, chapter: int) -> SegmentPlan:
        """One segment of a cleaned text. Raises PronunciationTooLong."""
        voice = self._voices[speaker]
        # What is held has to last for what is said; the price goes by the time that it takes.
        said_ms = estimate_audio_ms(self._pronunciations.apply(text).text)
        if said_ms > MAX_PRONOUNCED_MS:
            raise PronunciationTooLong
        audio_ms = said_ms / self._speed
        estimate = max(1, round(audio_ms * self._gpu_ms_per_audio_s / 1000))
        return SegmentPlan(
            text=text,
            voice=voice,
            needs=self.needs[voice.kind],
            characters=counted_characters(text),
            estimate_gpu_ms=estimate,
            held_gpu_ms=HOLD_BASE_GPU_MS + HOLD_FACTOR * estimate,
            speaker=speaker,
            chapter=chapter,
            language=self._language,
            pronunciations=self._pronunciations,
        )


def cut(passage: Passage, *, is_first: bool) -> list[str]:
    """The passage's segments. A title is one; only what is heard first of all is kept short."""
    if passage.is_title:
        return segment(passage.text, preferred_ms=MAX_SEGMENT_MS, first_ms=MAX_SEGMENT_MS)
    return segment(passage.text, first_ms=FIRST_SEGMENT_MS if is_first else PREFERRED_SEGMENT_MS)
