"""A Chinese character for a syllable: for models that read characters, but no pinyin.

pypinyin's dictionary is read the first time; without it, or for a syllable that no common character has for its
reading, there is "". Clean for Python 3.10.
"""

from __future__ import annotations

import functools

from tts.text.annotation_inventory import NEUTRAL_TONE, without_tone

# GB 2312's first level: its 3755 characters are the common ones, and Python can decode them.
_FIRST_ROW, _LAST_ROW = 0xB0, 0xD7
_FIRST_CELL, _LAST_CELL = 0xA1, 0xFE


def homophone(syllable: str) -> str:
    """Return a common character that is read as that syllable ("hao4", "lve4"); "" where there is none.

    One with no other reading where there is one. A neutral tone is given by a character of any tone.
    """
    known = _characters()
    tones = (5, 4, 1, 2, 3) if syllable.endswith(str(NEUTRAL_TONE)) else (syllable[-1:],)
    return next((known[wanted] for tone in tones if (wanted := f"{syllable[:-1]}{tone}") in known), "")


@functools.lru_cache(maxsize=1)
def _characters() -> dict[str, str]:
    try:
        from pypinyin.constants import PINYIN_DICT
    except ImportError:
        return {}
    only: dict[str, str] = {}
    usual: dict[str, str] = {}
    for row in range(_FIRST_ROW, _LAST_ROW + 1):
        for cell in range(_FIRST_CELL, _LAST_CELL + 1):
            character = bytes((row, cell)).decode("gb2312", "ignore")
            readings = PINYIN_DICT.get(ord(character), "").split(",") if character else [""]
            if readings[0]:
                letters, tone = without_tone(readings[0])
                kept = only if len(readings) == 1 else usual
                kept.setdefault(f"{letters}{tone or NEUTRAL_TONE}", character)
    return {**usual, **only}
