"""How like its reference CosyVoice spoke: by the speaker encoder (CAM++) that its own frontend has loaded.

On the processor, after the sound has been sent: the first seconds alone, since more of them change little. Its figures
are cosines; CAM++ takes two clips for one speaker from 0.31 on (tts.audio.speech_check).
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from tts.engine.clips import SAMPLE_RATE_HZ
from tts.engine.cosyvoice_voices import file_with

LONGEST_S = 4.0
# Of less than that the encoder says more about the words than about the speaker.
SHORTEST_S = 2.0


class Likeness:
    """Of the speech of one request to the voice that it was asked for."""

    def __init__(self, frontend: Any, embedding: Any) -> None:
        self._frontend = frontend
        self._embedding = embedding
        self._heard = bytearray()

    def hear(self, pcm: bytes) -> None:
        """What was sent, in order."""
        missing = int(LONGEST_S * SAMPLE_RATE_HZ) * 2 - len(self._heard)
        self._heard += pcm[:missing] if missing > 0 else b""

    def value(self) -> Optional[float]:
        """-1 to 1; None where too little was said to tell. Raises whatever the encoder does."""
        samples = np.frombuffer(bytes(self._heard), "<i2") / 32768
        if len(samples) < SHORTEST_S * SAMPLE_RATE_HZ:
            return None
        with file_with(samples) as path:
            spoken = _vector(self._frontend._extract_spk_embedding(path))
        wanted = _vector(self._embedding)
        lengths = float(np.linalg.norm(spoken) * np.linalg.norm(wanted))
        cosine = float(spoken @ wanted) / lengths if lengths > 0 else float("nan")
        return cosine if np.isfinite(cosine) else None


def _vector(embedding: Any) -> Any:
    return embedding.detach().float().cpu().numpy().reshape(-1).astype(np.float64)
