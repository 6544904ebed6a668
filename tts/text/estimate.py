"""How long a text takes to say."""

from __future__ import annotations

HAN_PER_SECOND = 4.3
OTHER_PER_SECOND = 15.0


def estimate_audio_ms(text: str) -> int:
    han = sum("\u4e00" <= character <= "\u9fff" for character in text)
    return round(1000 * (han / HAN_PER_SECOND + (len(text) - han) / OTHER_PER_SECOND))
