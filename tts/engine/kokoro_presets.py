"""What the catalogue's preset voices are made of: mixes of styles, with pitch and formants moved a little."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tts.engine.adaptation import Recipe
from tts.engine.kokoro_styles import Mix, mixed_measure
from tts.engine.spectrum import CENTRES_HZ, Array


def _tilt(db_per_octave: float) -> Array:
    """Brighter above 1 kHz and thinner below, or the reverse."""
    return np.asarray(np.clip(np.log2(CENTRES_HZ / 1000) * db_per_octave, -6, 6))


def _recipe(mix: Mix, *, to_hz: float, warp: float, spread: float = 1.0, tilt: float = 0.0) -> Recipe:
    return Recipe(
        mix=mix,
        warp=warp,
        from_hz=mixed_measure(mix).pitch_hz * warp,
        to_hz=to_hz,
        spread=spread,
        gain_db=_tilt(tilt) if tilt else None,
    )


PRESET_RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        # A recogniser takes fewer of its Mandarin syllables for others than without jf_gongitsune's part: 10 to 13 in a
        # hundred characters instead of 16 to 18, over three sets of sentences.
        "xiaohe": _recipe(
            (("jf_gongitsune", 0.4), ("jf_alpha", 0.4), ("jf_tebukuro", 0.2)),
            to_hz=255.0,
            warp=0.98,
            spread=1.1,
        ),
        "shuyun": _recipe((("jf_gongitsune", 1.0),), to_hz=200.0, warp=0.97, tilt=0.8),
        "zhiyuan": _recipe((("jm_kumo", 1.0),), to_hz=102.0, warp=1.02, spread=1.3, tilt=0.6),
        "emma": _recipe(
            (("jf_nezumi", 0.6), ("jf_alpha", 0.4)), to_hz=225.0, warp=0.97, spread=1.3, tilt=0.4
        ),
        "claire": _recipe((("jf_gongitsune", 0.6), ("jf_nezumi", 0.4)), to_hz=178.0, warp=0.94, tilt=0.6),
        "henry": _recipe((("jm_kumo", 0.8), ("jf_nezumi", 0.2)), to_hz=124.0, warp=1.0, spread=1.3, tilt=0.5),
    }
)
