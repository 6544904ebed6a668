"""What a player on a page needs (templates/partials/player.html)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from django.urls import reverse

from tts import storage
from tts.audio.formats import FORMATS
from tts.audio.peaks import waveform_peaks
from tts.audio.wav import read_wav
from tts.models import SynthesisJob, Voice, VoiceKind

# With more bars than this a phone shows a solid block.
MAX_BARS: Final = 120


@dataclass(frozen=True)
class Download:
    """The audio in one format: its name and address."""

    name: str
    url: str


@dataclass(frozen=True)
class Player:
    """`element_id` is unique on the page. `title` says what sounds, for screen readers."""

    element_id: str
    audio_url: str
    duration_ms: int
    title: str
    peaks: list[int] = field(default_factory=list)
    download_url: str = ""
    downloads: tuple[Download, ...] = ()


def bars(peaks: Sequence[int]) -> list[int]:
    """The heights to draw: at most MAX_BARS, each the highest of the peaks that it stands for."""
    step = -(-len(peaks) // MAX_BARS) or 1
    return [max(peaks[start : start + step]) for start in range(0, len(peaks), step)]


def job_player(job: SynthesisJob, *, title: str) -> Player | None:
    """The player of a job's audio; None while there is none."""
    if not job.audio_key:
        return None
    url = reverse("job_audio_page", args=[job.pk])
    return Player(
        element_id=f"player-{job.pk}",
        audio_url=url,
        duration_ms=job.audio_ms,
        title=title,
        peaks=bars(job.peaks),
        download_url=f"{url}?download=1",
        downloads=tuple(
            Download(known.name, f"{url}?download=1&format={known.code}") for known in FORMATS.values()
        ),
    )


@lru_cache(maxsize=64)
def sample_outline(key: str, size_bytes: int) -> tuple[int, tuple[int, ...]]:
    """Length in ms and peaks of a preset's sample. Read once: a sample of the same size is the same sample."""
    audio = read_wav(storage.read(key))
    return audio.duration_ms, tuple(waveform_peaks(audio.pcm, count=MAX_BARS))


def _preset_player(voice: Voice, *, title: str) -> Player | None:
    key = storage.preset_sample_key(voice.preset_key)
    try:
        duration_ms, peaks = sample_outline(key, storage.size_of(key))
    except (FileNotFoundError, ValueError):
        return None
    return Player(
        element_id=f"player-{voice.pk}",
        audio_url=reverse("voice_audio", args=[voice.pk]),
        duration_ms=duration_ms,
        title=title,
        peaks=list(peaks),
    )


def voice_player(voice: Voice, *, title: str) -> Player | None:
    """The player of a voice's clip, or of a preset voice's sample; None where there is neither."""
    if voice.kind == VoiceKind.PRESET:
        return _preset_player(voice, title=title)
    if not voice.clip_key:
        return None
    return Player(
        element_id=f"player-{voice.pk}",
        audio_url=reverse("voice_audio", args=[voice.pk]),
        duration_ms=voice.clip_ms,
        title=title,
        peaks=bars(voice.peaks),
    )
