"""Annotated words in the phonemes that Kokoro was trained on: pinyin and ARPAbet."""

from __future__ import annotations

from misaki.transcription import pinyin_to_ipa

# The tones and syllabic consonants of misaki's syllables in the model's letters. misaki.zh does the same, and imports
# cn2an for what is not needed here: 0.3 s.
_MANDARIN = (
    ("˧˩˧", "↓"), ("˧˥", "↗"), ("˥˩", "↘"), ("˥", "→"), ("ɻ\u0329", "ɨ"), ("ɹ\u0329", "ɨ"), ("\u032f", ""),
)  # fmt: skip

# The CMU dictionary's phonemes in misaki's American English. AH and ER sound otherwise without stress.
_ARPABET = {
    "AA": "ɑ", "AE": "æ", "AH": "ʌ", "AO": "ɔ", "AW": "W", "AY": "I", "B": "b", "CH": "ʧ", "D": "d", "DH": "ð",
    "EH": "ɛ", "ER": "ɜɹ", "EY": "A", "F": "f", "G": "ɡ", "HH": "h", "IH": "ɪ", "IY": "i", "JH": "ʤ", "K": "k",
    "L": "l", "M": "m", "N": "n", "NG": "ŋ", "OW": "O", "OY": "Y", "P": "p", "R": "ɹ", "S": "s", "SH": "ʃ",
    "T": "t", "TH": "θ", "UH": "ʊ", "UW": "u", "V": "v", "W": "w", "Y": "j", "Z": "z", "ZH": "ʒ",
}  # fmt: skip
_WITHOUT_STRESS = {"AH0": "ə", "ER0": "əɹ"}
_STRESSES = {"1": "ˈ", "2": "ˌ"}


def pinyin_phonemes(syllable: str) -> str:
    """The phonemes of one syllable ("hao4", "lve4", "ma5") in the model's letters."""
    phonemes = "".join(pinyin_to_ipa(syllable)[0])
    for theirs, ours in _MANDARIN:
        phonemes = phonemes.replace(theirs, ours)
    return phonemes


def arpabet_phonemes(word: str) -> str:
    """The phonemes of one word ("R IH1 K ER0 D") in the model's letters, the stress before its vowel."""
    return "".join(map(_phoneme, word.split()))


def _phoneme(symbol: str) -> str:
    if symbol in _WITHOUT_STRESS:
        return _WITHOUT_STRESS[symbol]
    stress = _STRESSES.get(symbol[-1], "")
    return stress + _ARPABET[symbol.rstrip("012")]
