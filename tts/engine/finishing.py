"""What is done to the sound of an engine that leaves it undone: silent ends off, another speed at the same pitch.

Piece by piece: nothing waits but silence, and a tenth of a second in the filter. However a sound is cut into pieces,
the same comes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts.engine.edges import EDGE_MS, FADE_MS, FRAME, SAMPLE_RATE_HZ
from tts.engine.errors import EngineError

HEARD_DBFS = -50.0
"""A frame of 5 ms that is louder is speech. A fixed level, as the loudest frame is not known while the sound comes: the
same that the check of the result goes by (tts.audio.speech_check)."""
EDGE = EDGE_MS * SAMPLE_RATE_HZ // 1000
BLOCK = 480
"""So many samples go into the filter at once: where its windows lie depends on it."""
FADE = FADE_MS * SAMPLE_RATE_HZ // 1000

Samples = NDArray[np.int16]
_HEARD_POWER = (32_768 * 10 ** (HEARD_DBFS / 20)) ** 2


class Finish:
    """Signed 16-bit little-endian PCM of 24 kHz in, the same out: at `speed`, and with 25 ms at the most of what cannot
    be heard at either end where `trim` says so."""

    def __init__(self, *, speed: float = 1.0, trim: bool = True) -> None:
        self._stages: list[Tempo | Trimmer] = []
        if speed != 1.0:
            self._stages.append(Tempo(speed))
        if trim:
            self._stages.append(Trimmer())
        self._odd = b""

    def push(self, pcm: bytes) -> bytes:
        """What can be said of the sound once this has come; b"" where nothing can."""
        pcm = self._odd + pcm
        whole = len(pcm) // 2 * 2
        self._odd = pcm[whole:]
        samples = np.frombuffer(pcm[:whole], "<i2").astype(np.int16)
        for stage in self._stages:
            samples = stage.push(samples)
        return bytes(samples.astype("<i2").tobytes())

    def finish(self) -> bytes:
        """The rest. b"" in all where nothing could be heard."""
        samples = np.zeros(0, np.int16)
        for stage in self._stages:
            samples = np.concatenate([stage.push(samples), stage.finish()])
        return bytes(samples.astype("<i2").tobytes())


def silence_of(duration_ms: int) -> bytes:
    """So much PCM in which there is nothing."""
    return bytes(2 * (duration_ms * SAMPLE_RATE_HZ // 1000))


class Trimmer:
    """Takes silent ends off; silence between two sounds stays as it is."""

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.int16)
        self._quiet: list[Samples] = []
        self._begun = False

    def push(self, samples: Samples) -> Samples:
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) // FRAME * FRAME
        self._rest = samples[whole:]
        return self._judged([samples[at : at + FRAME] for at in range(0, whole, FRAME)])

    def finish(self) -> Samples:
        out = self._judged([self._rest]) if len(self._rest) else self._rest
        if not self._begun:
            return out[:0]
        quiet = np.concatenate([np.zeros(0, np.int16), *self._quiet])
        return np.concatenate([out, _faded(quiet[:EDGE], out=True) if len(quiet) > EDGE else quiet])

    def _judged(self, frames: list[Samples]) -> Samples:
        said: list[Samples] = [np.zeros(0, np.int16)]
        for frame in frames:
            if float(np.mean(np.square(frame, dtype=np.float64))) <= _HEARD_POWER:
                self._quiet.append(frame)
                if not self._begun:
                    # One more than is kept, so that it is known whether any was taken off.
                    del self._quiet[: -(EDGE // FRAME + 1)]
                continue
            said += [*(self._quiet if self._begun else self._beginning()), frame]
            self._quiet, self._begun = [], True
        return np.concatenate(said)

    def _beginning(self) -> list[Samples]:
        if len(self._quiet) * FRAME <= EDGE:
            return self._quiet
        return [_faded(np.concatenate(self._quiet)[-EDGE:], out=False)]


def _faded(samples: Samples, *, out: bool) -> Samples:
    """From nothing, or (`out`) to nothing at the end."""
    gains = np.ones(len(samples))
    gains[:FADE] = np.linspace(0, 1, FADE)
    return np.asarray(np.round(samples * (gains[::-1] if out else gains)), np.int16)


class Tempo:
    """FFmpeg's `atempo`: overlap-add of windows that fit, so that the pitch stays. 0.5 to 2."""

    def __init__(self, speed: float) -> None:
        try:
            import av
            import av.error
            import av.filter
        except ImportError as error:
            raise EngineError(
                "library_missing", "This engine does not change the speed, and PyAV is not there to do it."
            ) from error
        self._av = av
        graph: Any = av.filter.Graph()
        graph.threads = 1
        shape = f"sample_fmts=s16:sample_rates={SAMPLE_RATE_HZ}:channel_layouts=mono"
        graph.link_nodes(
            graph.add_abuffer(sample_rate=SAMPLE_RATE_HZ, format="s16", layout="mono"),
            graph.add("atempo", f"{speed:.6f}"),
            graph.add("aformat", shape),
            graph.add("abuffersink"),
        ).configure()
        self._graph = graph
        self._rest = np.zeros(0, np.int16)

    def push(self, samples: Samples) -> Samples:
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) // BLOCK * BLOCK
        self._rest = samples[whole:]
        for at in range(0, whole, BLOCK):
            self._give(samples[at : at + BLOCK])
        return self._ready()

    def finish(self) -> Samples:
        if len(self._rest):
            self._give(self._rest)
        self._graph.push(None)
        return self._ready()

    def _give(self, samples: Samples) -> None:
        frame = self._av.AudioFrame.from_ndarray(np.ascontiguousarray(samples[np.newaxis, :]), "s16", "mono")
        frame.sample_rate = SAMPLE_RATE_HZ
        self._graph.push(frame)

    def _ready(self) -> Samples:
        made: list[Samples] = [np.zeros(0, np.int16)]
        while True:
            try:
                made.append(self._graph.pull().to_ndarray().reshape(-1))
            except (self._av.error.BlockingIOError, self._av.error.EOFError):
                return np.concatenate(made)
