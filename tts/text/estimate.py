"""How long a text takes to say, before anyone says it: for quotes, and to keep segments short.

Measured on the built-in engine at normal speed, and near what people do: newsreaders speak 4 to 5 Mandarin
syllables and about 150 English words, that is 15 characters with their spaces, a second.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

from tts.text.annotations import Kind, heard, tokens
from tts.text.characters import Script, has_speech, script_of

MS_PER_HAN_CHARACTER: Final = 233  # 4.3 a second
MS_PER_KANA: Final = 150  # a mora; about 7 a second
MS_PER_HANGUL_SYLLABLE: Final = 190
MS_PER_LETTER: Final = 60  # with its pauses 15 a second, the space after a word counted as a letter
MS_PER_DIGIT: Final = 350  # 240 in Mandarin, 430 in English ("nineteen ninety-nine")
MS_PER_SYMBOL: Final = 300  # "per cent", "dollars"
MS_PER_ANNOTATION: Final = 300  # a word of English, or a breath
SENTENCE_PAUSE_MS: Final = 350
CLAUSE_PAUSE_MS: Final = 200

# The shortest thing that an engine says, with the silence around it.
MIN_AUDIO_MS: Final = 400

_SENTENCE_ENDS: Final = frozenset("。！？!?.…\n")
_CLAUSE_ENDS: Final = frozenset("，、；：,;:—")
# Pause marks with nothing but spaces between them: two or more, of which only the first one counts whole.
_PAUSES: Final = re.compile(r"[{0}](?:\s*[{0}])+".format(re.escape("".join(_SENTENCE_ENDS | _CLAUSE_ENDS))))
_MS_BY_SCRIPT: Final = {
    Script.HAN: MS_PER_HAN_CHARACTER,
    Script.BOPOMOFO: MS_PER_HAN_CHARACTER // 2,
    Script.KANA: MS_PER_KANA,
    Script.HANGUL: MS_PER_HANGUL_SYLLABLE,
}
_ANNOTATION_MS: Final = {
    Kind.PINYIN: MS_PER_HAN_CHARACTER,
    Kind.ARPABET: MS_PER_ANNOTATION,
    Kind.SOUND: MS_PER_ANNOTATION,
}


def character_times_ms(text: str) -> list[int]:
    """Return what each character adds to the length of speech;

    of several pause marks in a row only the first adds. An annotation adds a word's time with its first character;
    its own silence (`[pause 1s]`) is no speech and adds nothing.
    """
    times: list[int] = []
    for token in tokens(text):
        if token.kind is Kind.TEXT:
            times += _text_times_ms(token.value)
        else:
            times += [_ANNOTATION_MS.get(token.kind, 0), *[0] * (token.end - token.start - 1)]
    return times


def _text_times_ms(text: str) -> list[int]:
    times = list(map(_time_ms, text))
    for run in _PAUSES.finditer(text):
        paused_ms = 0
        for at in range(run.start(), run.end()):
            if pause_ms := _pause_ms(text[at]):
                times[at] = max(0, pause_ms - paused_ms)
                paused_ms = max(pause_ms, paused_ms)
    return times


@functools.lru_cache(maxsize=16_384)
def _time_ms(character: str) -> int:
    """What it adds by itself."""
    return _pause_ms(character) or _character_ms(character)


def _pause_ms(character: str) -> int:
    if character in _SENTENCE_ENDS:
        return SENTENCE_PAUSE_MS
    return CLAUSE_PAUSE_MS if character in _CLAUSE_ENDS else 0


def _character_ms(character: str) -> int:
    category = unicodedata.category(character)
    if category[0] == "N":
        return MS_PER_DIGIT
    if category in ("Sc", "Sm") or character in "%@&":
        return MS_PER_SYMBOL
    if category[0] == "L":
        return _MS_BY_SCRIPT.get(script_of(character) or Script.LATIN, MS_PER_LETTER)
    return MS_PER_LETTER if character == " " else 0


def estimate_audio_ms(text: str) -> int:
    """Return how many milliseconds of audio a text becomes at normal speed;

    0 when nothing in it is spoken.
    """
    if not has_speech(heard(text)):
        return 0
    return max(MIN_AUDIO_MS, sum(character_times_ms(text)))
