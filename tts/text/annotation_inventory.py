"""What may stand in an annotation: pinyin syllables, ARPAbet symbols, sounds, spans, pauses. Fixed, and complete.

The sounds, spans and the forms of CosyVoice are the special tokens of its tokenizers (CosyVoice2Tokenizer and
CosyVoice3Tokenizer); the phonemes are those of the CMU Pronouncing Dictionary. Loaded by engines: clean for
Python 3.10, no Django.
"""

from __future__ import annotations

import itertools
import unicodedata
from typing import Final


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


INITIALS: Final = _words("b p m f d t n l g k h j q x zh ch sh r z c s y w")

# Every syllable of standard Mandarin, as it is spelled, by its initial; "v" stands for ü where it is written so.
_FINALS: Final = {
    "": "a ai an ang ao e ei en eng er o ou",
    "b": "a ai an ang ao ei en eng i ian iao ie in ing o u",
    "p": "a ai an ang ao ei en eng i ian iao ie in ing o ou u",
    "m": "a ai an ang ao e ei en eng i ian iao ie in ing iu o ou u",
    "f": "a an ang ei en eng o ou u",
    "d": "a ai an ang ao e ei en eng i ia ian iao ie ing iu ong ou u uan ui un uo",
    "t": "a ai an ang ao e ei eng i ian iao ie ing ong ou u uan ui un uo",
    "n": "a ai an ang ao e ei en eng i ia ian iang iao ie in ing iu ong ou u uan un uo v ve",
    "l": "a ai an ang ao e ei eng i ia ian iang iao ie in ing iu o ong ou u uan un uo v ve",
    "g": "a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo",
    "k": "a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo",
    "h": "a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo",
    "j": "i ia ian iang iao ie in ing iong iu u uan ue un",
    "q": "i ia ian iang iao ie in ing iong iu u uan ue un",
    "x": "i ia ian iang iao ie in ing iong iu u uan ue un",
    "zh": "a ai an ang ao e ei en eng i ong ou u ua uai uan uang ui un uo",
    "ch": "a ai an ang ao e en eng i ong ou u ua uai uan uang ui un uo",
    "sh": "a ai an ang ao e ei en eng i ou u ua uai uan uang ui un uo",
    "r": "an ang ao e en eng i ong ou u ua uan ui un uo",
    "z": "a ai an ang ao e ei en eng i ong ou u uan ui un uo",
    "c": "a ai an ang ao e en eng i ong ou u uan ui un uo",
    "s": "a ai an ang ao e en eng i ong ou u uan ui un uo",
    "y": "a an ang ao e i in ing o ong ou u uan ue un",
    "w": "a ai an ang ei en eng o u",
}
FINALS: Final = frozenset(" ".join(_FINALS.values()).split())
SYLLABLES: Final = frozenset(
    initial + final for initial, finals in _FINALS.items() for final in finals.split()
)

VOWELS: Final = _words("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW")
CONSONANTS: Final = _words("B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH")
STRESSED_VOWELS: Final = frozenset(
    vowel + stress for vowel, stress in itertools.product(VOWELS, ("0", "1", "2"))
)
ARPABET: Final = VOWELS | CONSONANTS | STRESSED_VOWELS

SOUNDS: Final = frozenset(
    {
        "breath", "quick_breath", "laughter", "cough", "clucking", "accent", "noise", "hissing", "sigh",
        "vocalized-noise", "lipsmack", "mn",
    }
)  # fmt: skip
SPANS: Final = frozenset({"strong", "laughter"})

# A span is a word or a phrase: it is never cut, so it has to fit into a segment with room to spare.
MAX_SPAN_CHARACTERS: Final = 60
# The longest words have about twenty; a chain that goes on is several words without spaces, and cannot be cut.
MAX_PHONEMES: Final = 24
# Longer silences are the work of whoever mixes the audio.
MAX_PAUSE_MS: Final = 10_000

_TONE_MARKS: Final = {"\u0304": 1, "\u0301": 2, "\u030c": 3, "\u0300": 4}
_MARK_OF_TONE: Final = {tone: mark for mark, tone in _TONE_MARKS.items()}
NEUTRAL_TONE: Final = 5


def without_tone(spelled: str) -> tuple[str, int]:
    """Return pinyin letters ("v" for ü) and the tone that a mark gives them: 1 to 4, 0 without a mark.

    More than one mark, or a mark that is no tone, is left in the letters.
    """
    decomposed = unicodedata.normalize("NFD", spelled).replace("u\u0308", "v")
    marks = [mark for mark in decomposed if mark in _TONE_MARKS]
    if len(marks) != 1:
        return unicodedata.normalize("NFC", decomposed), 0
    bare = decomposed.replace(marks[0], "").replace("u\u0308", "v")
    return unicodedata.normalize("NFC", bare), _TONE_MARKS[marks[0]]


def with_tone(letters: str, tone: int) -> str:
    """Return letters (a syllable or a final) with the tone's mark where it is written: hao, 4 is hào."""
    mark = _MARK_OF_TONE.get(tone, "")
    at = _marked_vowel(letters)
    if not mark or at < 0:
        return letters.replace("v", "ü")
    marked = letters[: at + 1] + mark + letters[at + 1 :]
    return unicodedata.normalize("NFC", marked.replace("v", "u\u0308"))


def _marked_vowel(letters: str) -> int:
    """The index of the vowel that carries the mark: a or e, the o of ou, else the last one."""
    for vowel in ("a", "e"):
        if vowel in letters:
            return letters.index(vowel)
    if "ou" in letters:
        return letters.index("ou")
    return max(letters.rfind(vowel) for vowel in "aeiouv")


def split_syllable(syllable: str) -> tuple[str, str]:
    """Return the initial ("" where there is none) and the final of a syllable without a tone."""
    for length in (2, 1):
        if syllable[:length] in INITIALS:
            return syllable[:length], syllable[length:]
    return "", syllable
