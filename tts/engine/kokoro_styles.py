"""The styles that come with Kokoro's Japanese voices, measured: where an adaptation starts from.

Each spoke one English and one Mandarin sentence (10 and 12 s); pitch by `pitch.pitch_statistics`, the third formant by
`formants.third_formant_hz`, spectrum by `spectrum.long_term_spectrum`, in decibels below the loudest band, the mean of
both languages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tts.engine.kokoro_model import Style
from tts.engine.spectrum import Array


@dataclass(frozen=True)
class StyleMeasure:
    pitch_hz: float
    spread_semitones: float
    third_formant_hz: float
    spectrum_db: Array


Mix = tuple[tuple[str, float], ...]
"""Names of styles with their shares, which sum to 1."""


def _measure(pitch_hz: float, spread_semitones: float, third_formant_hz: float, levels: str) -> StyleMeasure:
    return StyleMeasure(
        pitch_hz, spread_semitones, third_formant_hz, -np.array([float(level) for level in levels.split()])
    )


STYLES: Mapping[str, StyleMeasure] = MappingProxyType(
    {
        "jf_alpha": _measure(
            265.2,
            3.4,
            3078.0,
            "45 26 10 4 1 0 6 9 4 4 7 10 15 16 13 16 18 21 22 21 21 21 22 22 23 27 31 28 "
            "27 24 22 23 26 25 27 28 32 32 31 32 35 38 37 35 38 35 33 32 32 35 33 32 33 33 31 33",
        ),
        "jf_gongitsune": _measure(
            218.5,
            3.3,
            3090.0,
            "30 14 4 0 1 7 9 7 9 12 15 16 17 16 18 18 17 22 26 27 28 28 29 31 33 35 37 39 "
            "40 39 35 35 37 37 42 41 42 38 37 38 37 33 32 34 36 36 36 35 34 34 33 37 40 42 43 48",
        ),
        "jf_nezumi": _measure(
            245.4,
            2.7,
            3059.0,
            "38 21 7 1 0 5 12 7 5 5 7 8 8 8 7 9 10 12 14 16 15 16 18 21 25 28 30 31 "
            "31 30 28 29 30 32 39 40 41 39 39 39 42 40 39 40 40 41 41 38 36 37 37 40 40 42 43 46",
        ),
        "jf_tebukuro": _measure(
            317.4,
            2.8,
            3150.0,
            "37 35 18 9 3 0 1 9 12 10 9 8 8 11 10 10 12 14 19 21 22 22 23 24 24 27 29 30 "
            "32 31 31 31 32 30 35 38 40 38 37 37 41 39 38 37 39 40 41 38 36 37 37 39 40 41 39 41",
        ),
        "jm_kumo": _measure(
            92.0,
            2.6,
            2644.0,
            "1 2 0 1 4 5 3 2 4 7 9 9 10 11 12 13 15 14 15 16 18 20 21 22 24 27 27 27 "
            "27 27 30 33 35 36 38 38 39 38 35 35 36 34 33 33 35 34 33 31 31 32 32 34 39 42 44 51",
        ),
    }
)


# Pitch, spread and third formant of equal parts of the man's style and a woman's, measured: the pitch is higher and
# livelier than halfway.
_EQUAL_WITH_KUMO: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "jf_alpha": (168.0, 4.1, 2834.0),
        "jf_gongitsune": (152.0, 3.9, 2800.0),
        "jf_nezumi": (157.0, 3.2, 2744.0),
        "jf_tebukuro": (194.0, 4.0, 2855.0),
    }
)


def mixed_measure(mix: Mix) -> StyleMeasure:
    """What a mix of styles sounds like, near enough: pitch in between on a logarithmic scale, levels in between."""
    between = _interpolated(mix)
    shares = dict(mix)
    for name, (pitch_hz, spread_semitones, third_formant_hz) in _EQUAL_WITH_KUMO.items():
        if shares == {name: 0.5, "jm_kumo": 0.5}:
            return StyleMeasure(pitch_hz, spread_semitones, third_formant_hz, between.spectrum_db)
    return between


def _interpolated(mix: Mix) -> StyleMeasure:
    return StyleMeasure(
        pitch_hz=float(np.exp(sum(share * np.log(STYLES[name].pitch_hz) for name, share in mix))),
        third_formant_hz=sum(share * STYLES[name].third_formant_hz for name, share in mix),
        spread_semitones=sum(share * STYLES[name].spread_semitones for name, share in mix),
        spectrum_db=np.sum([share * STYLES[name].spectrum_db for name, share in mix], axis=0),
    )


def mixed_style(styles: Mapping[str, Style], mix: Mix) -> Style:
    """The model's input for a mix."""
    return np.asarray(np.sum([np.float32(share) * styles[name] for name, share in mix], axis=0), np.float32)
