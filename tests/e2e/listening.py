"""Listening to what was spoken, with tools that the product itself does not use for its output."""

from __future__ import annotations

import functools
import io
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

VAD_RATE_HZ = 16_000


@dataclass(frozen=True)
class Heard:
    """`speech_share` is the part of the time in which silero-vad hears speech, 0 to 1."""

    seconds: float
    sample_rate_hz: int
    loudest: float
    rms_dbfs: float
    speech_share: float


@functools.cache
def _vad() -> tuple[Any, Any]:
    import silero_vad  # loads torch: only when something is to be heard

    return silero_vad.load_silero_vad(), silero_vad.get_speech_timestamps


def decode(audio: bytes, *, rate_hz: int | None = None) -> tuple[NDArray[np.float32], int]:
    """Mono samples between -1 and 1, and their rate; resampled to `rate_hz` where it is given."""
    with av.open(io.BytesIO(audio)) as container:
        stream = container.streams.audio[0]
        rate = rate_hz or stream.codec_context.sample_rate
        resampler = av.AudioResampler(format="flt", layout="mono", rate=rate)
        frames = [part for frame in container.decode(stream) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.float32), rate


def listen(audio: bytes) -> Heard:
    import torch

    samples, rate = decode(audio)
    spoken, _ = decode(audio, rate_hz=VAD_RATE_HZ)
    model, find_speech = _vad()
    parts = find_speech(torch.from_numpy(spoken), model, sampling_rate=VAD_RATE_HZ)
    rms = float(np.sqrt(np.mean(np.square(samples)))) if len(samples) else 0.0
    return Heard(
        seconds=len(samples) / rate,
        sample_rate_hz=rate,
        loudest=float(np.abs(samples).max(initial=0.0)),
        rms_dbfs=20 * float(np.log10(max(rms, 1e-9))),
        speech_share=sum(part["end"] - part["start"] for part in parts) / max(len(spoken), 1),
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
