"""Is what the model made speech, all of it, and not more than that?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tts.engine.cosyvoice_calls import CallFailed

SAMPLE_RATE_HZ = 24_000
TOKENS_PER_S = 25
# The model's own limits, for each token of text: at least 2 tokens of speech (which CosyVoice3 does not hold itself
# to), at most 20.
SHORTEST_S_PER_TOKEN = 2 / TOKENS_PER_S
LONGEST_S_PER_TOKEN = 20 / TOKENS_PER_S
# Speech that ends by itself ends well before the limit; the tokens of silence that CosyVoice3 leaves out are no speech.
ENDLESS_SHARE = 0.95
# A word or two with the silence around them come near that limit, and say nothing about it.
FEW_TOKENS = 5
QUIETEST_RMS = 10 ** (-60 / 20)
# What the noise of the model's last stages has room for, the prompt included.
LONGEST_S = 300.0
LONGEST_TRT_S = 60.0

Sound = NDArray[np.float32]


def most_tokens(text_tokens: int, *, prompt_s: float, with_trt: bool) -> int:
    """How many tokens of speech a call may make."""
    room_s = (LONGEST_TRT_S if with_trt else LONGEST_S) - prompt_s - 1
    return max(1, min(text_tokens * 20, int(room_s * TOKENS_PER_S)))


def check_numbers(sound: Sound) -> None:
    """
    Raises:
        CallFailed: `not_finite`.
    """
    if not np.isfinite(sound).all():
        raise CallFailed("not_finite")


def check_speech(sound: Sound, *, text_tokens: int, speed: float) -> None:
    """
    Raises:
        CallFailed: `not_finite`, `silent`, `too_short` (it stopped early), `too_long` (it repeats itself).
    """
    check_numbers(sound)
    if len(sound) == 0 or float(np.sqrt(np.mean(np.square(sound, dtype=np.float64)))) < QUIETEST_RMS:
        raise CallFailed("silent")
    spoken_s = len(sound) / SAMPLE_RATE_HZ * speed
    if spoken_s < SHORTEST_S_PER_TOKEN * text_tokens:
        raise CallFailed("too_short")
    if spoken_s > ENDLESS_SHARE * LONGEST_S_PER_TOKEN * text_tokens and text_tokens >= FEW_TOKENS:
        raise CallFailed("too_long")
