"""What a player on a page needs, with its waveform as the outline of an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from tts.audio.peaks import PEAK_MAXIMUM
from tts.models import SynthesisJob, Voice, VoiceKind

# Units of the drawing, not pixels: the page stretches it.
BAR_PITCH: Final = 4
BAR_WIDTH: Final = 2.6
WAVEFORM_HEIGHT: Final = 100
# A pause is still seen as a dot.
MIN_BAR_HEIGHT: Final = 4
# With more bars than this a phone shows a solid block.
MAX_BARS: Final = 120


@dataclass(frozen=True)
class Waveform:
    """`path` outlines every bar; it fills `width` × `height` units."""

    path: str
    width: int
    height: int = WAVEFORM_HEIGHT


@dataclass(frozen=True)
class Player:
    """`element_id` is unique on the page. `title` says what sounds, for screen readers."""

    element_id: str
    audio_url: str
    duration_ms: int
    title: str
    waveform: Waveform | None = None
    download_url: str = ""


def waveform_of(peaks: Sequence[int]) -> Waveform | None:
    """Bars around a middle line; None where there are no peaks."""
    if not peaks:
        return None
    step = -(-len(peaks) // MAX_BARS)
    heights = [max(peaks[start : start + step]) for start in range(0, len(peaks), step)]
    bars = []
    for index, peak in enumerate(heights):
        height = max(MIN_BAR_HEIGHT, round(WAVEFORM_HEIGHT * peak / PEAK_MAXIMUM))
        top = (WAVEFORM_HEIGHT - height) / 2
        left = index * BAR_PITCH + (BAR_PITCH - BAR_WIDTH) / 2
        bars.append(f"M{left:g} {top:g}h{BAR_WIDTH:g}v{height}h-{BAR_WIDTH:g}z")
    return Waveform(path="".join(bars), width=len(heights) * BAR_PITCH)


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
        waveform=waveform_of(job.peaks),
        download_url=f"{url}?download=1",
    )


def voice_player(voice: Voice, *, title: str) -> Player | None:
    """The player of a voice's clip, or of a preset voice's sample; None where there is neither."""
    if voice.kind == VoiceKind.CLONE and not voice.clip_key:
        return None
    return Player(
        element_id=f"player-{voice.pk}",
        audio_url=reverse("voice_audio", args=[voice.pk]),
        duration_ms=voice.clip_ms,
        title=title,
        waveform=waveform_of(voice.peaks),
    )
