"""Listening to what an engine said."""

from __future__ import annotations

import io
import wave

import numpy as np
from numpy.typing import NDArray

from tts.engine.process import Chunk, Done, EngineProcess, SpeakRequest

SAMPLE_RATE_HZ = 24_000
Samples = NDArray[np.int16]


def speak(engine: EngineProcess, request: SpeakRequest) -> tuple[list[Samples], Done]:
    """The chunks of one request, in order, and its end."""
    *chunks, done = list(engine.speak(request, no_progress_s=120, deadline_s=300))
    assert isinstance(done, Done)
    sounds: list[Samples] = []
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        sounds.append(np.frombuffer(chunk.pcm, "<i2"))
    return sounds, done


def wav_bytes(samples: Samples) -> bytes:
    """A canonical reference clip."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(SAMPLE_RATE_HZ)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def voice_like(
    *, pitch_hz: float, seconds: float, formants_hz: tuple[float, ...] = (600, 1300, 2600)
) -> Samples:
    """A made-up speaker: pulses through resonances, in syllables, with a melody."""
    count = round(seconds * SAMPLE_RATE_HZ)
    times = np.arange(count) / SAMPLE_RATE_HZ
    melody = pitch_hz * 2 ** (0.25 * np.sin(2 * np.pi * 0.7 * times))
    phase = np.cumsum(melody) / SAMPLE_RATE_HZ
    pulses = np.diff(np.floor(phase), prepend=0.0)
    frequencies = np.fft.rfftfreq(count, 1 / SAMPLE_RATE_HZ)
    response = sum(1 / (1 + ((frequencies - formant) / 90) ** 2) for formant in formants_hz)
    sound = np.fft.irfft(np.fft.rfft(pulses) * response, count)
    sound *= np.clip(np.sin(2 * np.pi * 2.5 * times) + 0.6, 0, 1)
    return np.asarray(sound / np.abs(sound).max() * 12_000, np.int16)
