"""The explicit label: what a listener hears of it.

GB 45438-2025 section 5.3 lets a sound be marked by the rhythm short-long short-short, the Morse code of A and I, or by
words at the beginning or the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

NONE: Final = "none"
TONE: Final = "tone"
SPOKEN: Final = "spoken"
KINDS: Final = (NONE, TONE, SPOKEN)
AT_START: Final = "start"
AT_END: Final = "end"
POSITIONS: Final = (AT_START, AT_END)

SHORT_MS: Final = 100
LONG_MS: Final = 300
BETWEEN_SIGNS_MS: Final = 100
BETWEEN_LETTERS_MS: Final = 300
REST_MS: Final = 500
EDGE_MS: Final = 8  # rises and falls so softly that it does not click
FREQUENCY_HZ: Final = 880
AMPLITUDE: Final = 0.12  # about as loud as the speech beside it

# "A" and "I".
_RHYTHM: Final = ((SHORT_MS, LONG_MS), (SHORT_MS, SHORT_MS))


def tone_label(sample_rate_hz: int) -> NDArray[np.int16]:
    """The rhythm, without the rest that parts it from speech."""
    parts: list[NDArray[np.float64]] = []
    for letter in _RHYTHM:
        if parts:
            parts.append(_silence(BETWEEN_LETTERS_MS, sample_rate_hz))
        for number, sign_ms in enumerate(letter):
            if number:
                parts.append(_silence(BETWEEN_SIGNS_MS, sample_rate_hz))
            parts.append(_sign(sign_ms, sample_rate_hz))
    return np.round(np.concatenate(parts) * 32_767).astype(np.int16)


def with_label(
    speech: Iterator[NDArray[np.int16]], label: Iterator[NDArray[np.int16]], *, at: str, sample_rate_hz: int
) -> Iterator[NDArray[np.int16]]:
    """The label before or behind the speech, with a rest between them."""
    rest = np.zeros(sample_rate_hz * REST_MS // 1000, np.int16)
    first, second = (label, speech) if at == AT_START else (speech, label)
    yield from first
    yield rest
    yield from second


def _silence(duration_ms: int, sample_rate_hz: int) -> NDArray[np.float64]:
    return np.zeros(sample_rate_hz * duration_ms // 1000)


def _sign(duration_ms: int, sample_rate_hz: int) -> NDArray[np.float64]:
    count, edge = sample_rate_hz * duration_ms // 1000, sample_rate_hz * EDGE_MS // 1000
    envelope = np.ones(count)
    slope = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    envelope[:edge], envelope[-edge:] = slope, slope[::-1]
    return AMPLITUDE * envelope * np.sin(2 * np.pi * FREQUENCY_HZ * np.arange(count) / sample_rate_hz)
