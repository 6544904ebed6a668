"""Reading reference clips."""

from __future__ import annotations

import io
import wave

import numpy as np
from numpy.typing import NDArray

from tts.engine.errors import EngineError

SAMPLE_RATE_HZ = 24_000
# More of a clip than that changes what is taken from it by little, costs 50 ms a second, and is refused by CosyVoice.
LONGEST_S = 30
QUIETEST_PEAK = 1e-4


def read_clip(wav: bytes) -> NDArray[np.float32]:
    """The samples of a canonical clip, -1 to 1.

    Raises:
        EngineError: with blame "platform": the intake stores no other form.
    """
    try:
        with wave.open(io.BytesIO(wav)) as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            data = file.readframes(LONGEST_S * SAMPLE_RATE_HZ)
    except (wave.Error, EOFError) as error:
        raise EngineError("clip_unreadable", "The reference clip is no WAV file.") from error
    if form != (1, 2, SAMPLE_RATE_HZ):
        raise EngineError("clip_unreadable", f"The reference clip is not 24 kHz mono 16-bit but {form}.")
    return np.asarray(np.frombuffer(data[: len(data) // 2 * 2], "<i2") / 32768, np.float32)
