"""Every format of the same speech: how far lengths and loudness stray.

Speech of the built-in engine in two languages is rendered as a web process has it rendered, once as the engine left it
and once at -16 LUFS, and decoded again. `length_spread_frames`: the largest difference from the master's length, in
frames of that codec (a sample where a codec has none). `loudness_spread_db`: between the loudest and the quietest,
measured by the engine's own meter and not by the one that set the gain, at the rate of the master.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from tests.bench._speech import SAMPLE_RATE_HZ, chunks_of, engine
from tests.bench.engine import TEN_SECONDS
from tts.audio.aigc import implicit_label
from tts.audio.formats import FORMATS, AudioFormat
from tts.audio.rendering import RenderSpec, render_file
from tts.audio.resample import resample
from tts.audio.wav import wav_file
from tts.engine.loudness import loudness

LABEL = implicit_label(producer="bench", produce_id="bench")
TARGETS_LUFS = (None, -16.0)


def run() -> dict[str, float]:
    """Measure and return the figures; prints each file."""
    with engine() as process:
        pcm = b"".join(
            chunk
            for language, text in TEN_SECONDS.items()
            for chunk in chunks_of(process, text, language=language)
        )
    lengths, spreads = [], []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "master.wav"
        source.write_bytes(wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ))
        for target_lufs in TARGETS_LUFS:
            measured = [
                _measure(source, known, target_lufs, master_samples=len(pcm) // 2)
                for known in FORMATS.values()
            ]
            lengths += [frames for frames, _ in measured]
            found = [lufs for _, lufs in measured]
            spreads.append(max(found) - min(found))
    return {"length_spread_frames": round(max(lengths), 3), "loudness_spread_db": round(max(spreads), 3)}


def _measure(
    source: Path, known: AudioFormat, target_lufs: float | None, *, master_samples: int
) -> tuple[float, float]:
    """How far its length strays, in frames, and its loudness."""
    target = source.with_name(f"{known.code}.{known.extension}")
    rate = known.default_sample_rate_hz
    made = render_file(
        RenderSpec(
            source=str(source),
            target=str(target),
            format=known.code,
            sample_rate_hz=rate,
            label=LABEL,
            loudness_lufs=target_lufs,
        )
    )
    samples, decoded_hz = _decoded(target, known)
    # Resampling to another rate cannot land between two samples.
    away = abs(len(samples) - master_samples * decoded_hz / SAMPLE_RATE_HZ)
    frames = (0.0 if away < 1 else away) / known.frame_samples
    lufs = loudness(resample(samples, source_rate_hz=decoded_hz, target_rate_hz=SAMPLE_RATE_HZ))
    assert lufs is not None
    print(
        f"{known.code:6} at {target_lufs or 'as is':>6}: {frames:.3f} frames off, {lufs:.2f} LUFS, "
        f"{made.size_bytes} bytes, {made.cpu_ms} ms of processor, {made.peak_memory_bytes >> 20} MiB",
        flush=True,
    )
    return frames, lufs


def _decoded(path: Path, known: AudioFormat) -> tuple[NDArray[np.float32], int]:
    if known.code == "pcm":
        return np.fromfile(path, "<i2").astype(np.float32) / 32_768, known.default_sample_rate_hz
    with av.open(str(path)) as container:
        resampler = av.AudioResampler("flt", "mono", None)
        frames = list(container.decode(audio=0))
        parts = [part.to_ndarray()[0] for frame in frames for part in resampler.resample(frame)]
    return np.concatenate(parts).astype(np.float32), int(frames[0].sample_rate)
