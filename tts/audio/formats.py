"""The formats that speech is delivered in, and what each of them can hold. Pure: no codec is loaded here.

The master of a job is 24 kHz mono 16-bit PCM. Everything else is made of it when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SAMPLE_RATES_HZ: Final = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
MASTER_SAMPLE_RATE_HZ: Final = 24_000

# A listener's taste lies between a film's dialogue (-27) and the loudest podcasts (-14); broadcasting uses -23.
MIN_LOUDNESS_LUFS: Final = -31.0
MAX_LOUDNESS_LUFS: Final = -12.0

# EBU R 128: codecs overshoot, so that much is kept free. In dB below full scale, of the true peak.
TRUE_PEAK_DBTP: Final = -1.0


@dataclass(frozen=True)
class AudioFormat:
    """`frame_samples` is how much one packet of its codec holds at `frame_rate_hz` (0: at its own rate)."""

    code: str
    name: str
    extension: str
    content_type: str
    default_sample_rate_hz: int
    sample_rates_hz: tuple[int, ...]
    codec: str
    container: str
    frame_samples: int = 1
    frame_rate_hz: int = 0
    has_label: bool = True
    """Whether the container has a place for the implicit label; else it travels beside the file."""


FORMATS: Final = {
    known.code: known
    for known in (
        AudioFormat("wav", "WAV", "wav", "audio/wav", 24_000, SAMPLE_RATES_HZ, "pcm_s16le", "riff"),
        AudioFormat("mp3", "MP3", "mp3", "audio/mpeg", 24_000, SAMPLE_RATES_HZ, "libmp3lame", "mp3", 1_152),
        # Opus always decodes at 48 kHz; the other rates are the bands that its encoder knows.
        AudioFormat(
            "opus",
            "Opus",
            "opus",
            "audio/ogg; codecs=opus",
            24_000,
            (8_000, 12_000, 16_000, 24_000, 48_000),
            "libopus",
            "ogg",
            960,
            48_000,
        ),
        # In MP4, not as a bare ADTS stream: that has no place for a label, and no exact length.
        AudioFormat("aac", "AAC", "m4a", "audio/mp4", 24_000, SAMPLE_RATES_HZ, "aac", "ipod", 1_024),
        AudioFormat("flac", "FLAC", "flac", "audio/flac", 24_000, SAMPLE_RATES_HZ, "flac", "flac"),
        AudioFormat(
            "pcm", "PCM", "pcm", "audio/pcm", 24_000, SAMPLE_RATES_HZ, "pcm_s16le", "raw", has_label=False
        ),
        # G.711 in a WAV file, for telephone systems: bare µ-law has no place for a label, and no rate.
        AudioFormat("mulaw", "µ-law", "wav", "audio/wav", 8_000, SAMPLE_RATES_HZ, "pcm_mulaw", "riff"),
    )
}
DEFAULT_FORMAT: Final = "wav"
FORMAT_CHOICES: Final = [(known.code, known.name) for known in FORMATS.values()]


def codec_options(audio_format: AudioFormat, *, sample_rate_hz: int) -> dict[str, str]:
    """What its encoder is told, for one channel of speech without audible loss; nothing where there is no choice."""
    if audio_format.code == "mp3":
        # Variable rate, quality 3 (FFmpeg counts in 1/118): at a fixed rate LAME makes everything 0.45 dB quieter.
        return {"flags": "+qscale", "global_quality": str(3 * 118)}
    if audio_format.code in ("opus", "aac"):
        rates = {
            8_000: 32_000,
            11_025: 32_000,
            12_000: 32_000,
            32_000: 96_000,
            44_100: 96_000,
            48_000: 96_000,
        }
        return {"b": str(rates.get(sample_rate_hz, 64_000))}
    return {}
