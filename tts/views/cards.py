"""Voices and jobs as the pages show them: every word and figure is ready, a template only places them."""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from tts.audio.formats import FORMATS
from tts.audio.quality import QualityReport, Verdict
from tts.audio.speech_check import CLIPPED, LONG_SILENCE, OTHER_SPEAKER, SILENT, TOO_LONG, TOO_SHORT
from tts.engine.catalogue import PRESET_VOICES
from tts.languages import language_name
from tts.models import SynthesisJob, Voice, VoiceKind
from tts.selectors.jobs import Receipt, ReceiptLine
from tts.states import AttemptState, JobState, SegmentState, VoiceState
from tts.views.player import Player, job_player, voice_player

PRESETS_BY_KEY: Final = {preset.key: preset for preset in PRESET_VOICES}
TEXT_START_WIDTH: Final = 90


@dataclass(frozen=True)
class Badge:
    """A word with its tone: `ok`, `warn`, `bad`, `live`, `wait` or `idle` (its shape and colour)."""

    text: str | Promise
    tone: str


VERDICT_BADGES: Final = {
    Verdict.PASS: Badge(gettext_lazy("Good recording"), "ok"),
    Verdict.WARNINGS: Badge(gettext_lazy("Usable"), "warn"),
}
TONES: Final[dict[str, str]] = {
    JobState.QUEUED: "wait",
    SegmentState.BOUND: "wait",
    JobState.RUNNING: "live",
    JobState.SUCCEEDED: "ok",
    JobState.FAILED: "bad",
    AttemptState.LOST: "bad",
    JobState.CANCELED: "idle",
}


@dataclass(frozen=True)
class VoiceCard:
    voice_id: uuid.UUID
    name: str
    is_preset: bool
    language: str | Promise
    description: str
    badge: Badge | None
    job_count: int
    created_at: datetime
    player: Player | None
    is_private: bool

    @property
    def initial(self) -> str:
        return self.name[:1].upper()

    @property
    def words(self) -> str:
        """What the filter over a long list looks through."""
        return f"{self.name} {self.language} {self.description}"


def voice_name(voice: Voice) -> str:
    """The voice's name in the reader's language, where it has one; a deleted voice says so, and a draft."""
    if voice.state == VoiceState.DELETED:
        return _("%(name)s (deleted)") % {"name": voice.name}
    if voice.state == VoiceState.DRAFT:
        return _("%(name)s (not saved)") % {"name": voice.name}
    preset = PRESETS_BY_KEY.get(voice.preset_key) if voice.kind == VoiceKind.PRESET else None
    if preset is None:
        return voice.name
    return preset.chinese_name if _in_chinese() else preset.english_name


def _description(voice: Voice) -> str:
    """A few words on how a preset sounds; empty for a cloned voice, which its owner knows."""
    preset = PRESETS_BY_KEY.get(voice.preset_key) if voice.kind == VoiceKind.PRESET else None
    if preset is None:
        return ""
    return preset.chinese_description if _in_chinese() else preset.english_description


def _in_chinese() -> bool:
    return (get_language() or "").startswith("zh")


def verdict_badge(voice: Voice) -> Badge | None:
    verdict = (voice.quality or {}).get("verdict")
    return VERDICT_BADGES.get(verdict) if verdict else None


def report_of(voice: Voice) -> QualityReport | None:
    """The stored report on its recording; None where there is none that this version can read."""
    try:
        return QualityReport.from_dict(voice.quality) if voice.quality else None
    except ValueError:
        return None


def voice_card(voice: Voice) -> VoiceCard:
    """The card of a voice of `voices_of` (which counts its jobs) or of a preset."""
    name = voice_name(voice)
    is_preset = voice.kind == VoiceKind.PRESET
    return VoiceCard(
        voice_id=voice.pk,
        name=name,
        is_preset=is_preset,
        language=language_name(voice.language),
        description=_description(voice),
        badge=verdict_badge(voice),
        job_count=getattr(voice, "job_count", 0),
        created_at=voice.created_at,
        player=voice_player(voice, title=name),
        is_private=not voice.shared,
    )


def voice_cards(voices: Iterable[Voice]) -> list[VoiceCard]:
    return [voice_card(voice) for voice in voices]


def state_badge(row: Any) -> Badge:
    """The badge of a job, a segment or an attempt."""
    return Badge(row.get_state_display(), TONES[row.state])


@dataclass(frozen=True)
class JobRow:
    """A job as a line of a list. Its player is there once there is audio."""

    job: SynthesisJob
    text_start: str
    voice_name: str
    badge: Badge
    currency: str
    player: Player | None

    @property
    def dialog_id(self) -> str:
        return f"delete-{self.job.pk}"


def text_start(text: str) -> str:
    """The first words of a text, on one line; a Chinese character takes the width of two letters."""
    line, width = " ".join(text[: 2 * TEXT_START_WIDTH].split()), 0
    for index, character in enumerate(line):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > TEXT_START_WIDTH:
            return f"{line[:index].rstrip()}…"
    return line


def output_text(job: SynthesisJob) -> str:
    """The form that a job's audio is delivered in, in words and figures."""
    known = FORMATS[job.response_format]
    words = f"{known.name}, {(job.sample_rate_hz or known.default_sample_rate_hz) / 1000:g} kHz"
    return words if job.loudness_lufs is None else f"{words}, {job.loudness_lufs:g} LUFS"


def job_rows(jobs: Iterable[SynthesisJob]) -> list[JobRow]:
    """Rows of jobs that come from `jobs_of`, which brings voice and price along."""
    return [
        JobRow(
            job=job,
            text_start=(start := text_start(job.text)),
            voice_name=voice_name(job.voice),
            badge=state_badge(job),
            currency=job.price_version.currency,
            player=job_player(job, title=start),
        )
        for job in jobs
    ]


FINDINGS: Final[dict[str, str | Promise]] = {
    SILENT: gettext_lazy("silent"),
    TOO_SHORT: gettext_lazy("shorter than the text"),
    TOO_LONG: gettext_lazy("longer than the text"),
    CLIPPED: gettext_lazy("distorted"),
    OTHER_SPEAKER: gettext_lazy("another speaker"),
    LONG_SILENCE: gettext_lazy("a long rest"),
}


@dataclass(frozen=True)
class AttemptRow:
    line: ReceiptLine
    segment_number: int
    badge: Badge
    is_charged: bool
    findings: list[str | Promise]
    """What was found in its speech, in words."""


def attempt_rows(receipt: Receipt) -> list[AttemptRow]:
    """The receipt's lines with their states in words."""
    return [
        AttemptRow(
            line=line,
            segment_number=line.segment_index + 1,
            badge=Badge(AttemptState(line.state).label, TONES[line.state]),
            is_charged=line.charged_micros > 0,
            findings=[FINDINGS[found] for found in (line.speech_check or {}).get("findings", [])],
        )
        for line in receipt.lines
    ]
