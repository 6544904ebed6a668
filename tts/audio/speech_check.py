"""Is what an engine made speech, all of it, and not more than that? Measured, not heard.

Engines find some of it themselves (CosyVoice: numbers that are none, endless speech) and speak again inside the
attempt; this looks at what they deliver, whichever they are.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Findings. All but the last are bad: such speech is spoken again at our cost.
SILENT: Final = "silent"
TOO_SHORT: Final = "too_short"
TOO_LONG: Final = "too_long"
CLIPPED: Final = "clipped"
OTHER_SPEAKER: Final = "other_speaker"
LONG_SILENCE: Final = "long_silence"
BAD: Final = frozenset({SILENT, TOO_SHORT, TOO_LONG, CLIPPED, OTHER_SPEAKER})

FRAME_MS: Final = 20
# The loudest frame of the softest speech is far above it; dither and the noise of a model below.
SILENT_DBFS: Final = -50.0

# Against tts.text.estimate, whose error stays below a third for texts of a sentence and more, whatever the language.
# Single words stray further, so a fixed part is allowed on top.
SHORTEST_RATIO: Final = 0.35
SHORTEST_SLACK_MS: Final = 500
LONGEST_RATIO: Final = 3.5
LONGEST_SLACK_MS: Final = 1_500

# A limiter holds engines below full scale. One sample in a thousand there is heard as crackling.
FULL_SCALE: Final = 32_700
CLIPPED_SHARE: Final = 0.001

# A rest that no sentence has. Told, not refused: a text may ask for one.
LONG_SILENCE_MS: Final = 3_000

# Where the encoder that CosyVoice brings along (CAM++, 200,000 speakers) draws the line between one speaker and two in
# its publisher's own pipeline. A clone that is right lies far above it.
LEAST_SIMILARITY: Final = 0.31


@dataclass(frozen=True)
class SpeechCheck:
    """`score`: 100 is as good as can be told without hearing it. `duration_ratio`: of the length that was expected,
    None where nothing was. Shares are 0 to 1. `similarity`: of the speaker to the reference, -1 to 1; None where the
    engine has no encoder, or too little was said."""

    score: int
    findings: tuple[str, ...]
    duration_ratio: float | None
    longest_silence_ms: int
    clipped_share: float
    similarity: float | None = None

    @property
    def is_bad(self) -> bool:
        return bool(BAD & set(self.findings))

    @property
    def is_another_speaker(self) -> bool:
        """Whether that is all that is bad. Another try is worth it once: a clip of music or a whisper has no likeness
        that speech could have."""
        return BAD & set(self.findings) == {OTHER_SPEAKER}

    @property
    def is_silent(self) -> bool:
        return SILENT in self.findings

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "findings": list(self.findings)}


def check_speech(
    pcm: bytes,
    *,
    sample_rate_hz: int,
    expected_ms: int,
    similarity: float | None = None,
    may_differ: bool = False,
) -> SpeechCheck:
    """Judge mono signed 16-bit PCM that should play for about `expected_ms` (0: it cannot be told).

    `similarity` is the engine's. `may_differ`: the voice was told to sound otherwise (a role, an emotion).
    """
    samples = np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2")
    heard = _heard_frames(samples, sample_rate_hz)
    audio_ms = len(samples) * 1000 / sample_rate_hz
    ratio = audio_ms / expected_ms if expected_ms else None
    clipped_share = float(np.mean(np.abs(samples.astype(np.int32)) >= FULL_SCALE)) if len(samples) else 0.0
    longest_silence_ms = _longest_silence(heard) * FRAME_MS
    findings = []
    if not heard.any():
        findings.append(SILENT)
    if expected_ms and audio_ms + SHORTEST_SLACK_MS < SHORTEST_RATIO * expected_ms:
        findings.append(TOO_SHORT)
    if expected_ms and audio_ms > LONGEST_RATIO * expected_ms + LONGEST_SLACK_MS:
        findings.append(TOO_LONG)
    if clipped_share > CLIPPED_SHARE:
        findings.append(CLIPPED)
    if similarity is not None and similarity < LEAST_SIMILARITY and not may_differ:
        findings.append(OTHER_SPEAKER)
    if heard.any() and longest_silence_ms > LONG_SILENCE_MS:
        findings.append(LONG_SILENCE)
    return SpeechCheck(
        score=_score(findings, ratio, clipped_share),
        findings=tuple(findings),
        duration_ratio=None if ratio is None else round(ratio, 3),
        longest_silence_ms=longest_silence_ms,
        clipped_share=round(clipped_share, 6),
        similarity=None if similarity is None else round(similarity, 3),
    )


def _heard_frames(samples: NDArray[np.int16], sample_rate_hz: int) -> NDArray[np.bool_]:
    """Which frames of 20 ms can be heard."""
    size = sample_rate_hz * FRAME_MS // 1000
    count = len(samples) // size
    frames = samples[: count * size].reshape(count, size).astype(np.float64) / 32_768
    return np.asarray(np.sqrt(np.mean(frames**2, axis=1)) > 10 ** (SILENT_DBFS / 20), np.bool_)


def _longest_silence(heard: NDArray[np.bool_]) -> int:
    """How many frames in a row cannot be heard, between two that can."""
    places = np.flatnonzero(heard)
    return int(np.diff(places).max()) - 1 if len(places) > 1 else 0


def _score(findings: list[str], ratio: float | None, clipped_share: float) -> int:
    """100, less for a length that strays from what was expected by more than a half, for clipping, rests
    and another speaker."""
    if SILENT in findings:
        return 0
    strays = max(0.0, abs(math.log2(ratio)) - math.log2(1.5)) if ratio else 0.0
    lost = min(60.0, 40 * strays) + min(40.0, 20 * clipped_share / CLIPPED_SHARE)
    if LONG_SILENCE in findings:
        lost += 20
    if OTHER_SPEAKER in findings:
        lost += 40
    return max(1, round(100 - lost))
