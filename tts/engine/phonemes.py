"""Text to the phonemes that Kokoro was trained on: Mandarin by misaki, everything else by eSpeak NG, mixed freely.

Mandarin by eSpeak's own rules is not intelligible with this model; misaki's is. English phonemes are rewritten the
way misaki writes them, since that is what the model has learned.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from pypinyin import Style, lazy_pinyin

from tts.engine.annotated import arpabet_phonemes, pinyin_phonemes
from tts.engine.errors import EngineError
from tts.engine.espeak import TIE, Espeak
from tts.engine.languages import latin_language, scripts_of
from tts.engine.numerals import write_out
from tts.engine.tones import spoken_tones
from tts.engine.words import word_cutter
from tts.text.annotations import Kind, Token, mask, tokens

# Language to eSpeak's voice. Each was read back by an independent recogniser nearly without a fault.
ESPEAK_VOICES = {"en": "en-us", "es": "es", "fr": "fr", "it": "it", "pt": "pt-br", "de": "de"}
LANGUAGES = ("zh", *ESPEAK_VOICES)
SPEAKABLE_SCRIPTS = frozenset({"han", "latin"})

HAN = r"〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KEPT_MARKS = ';:,.!?—…"()“”'
SENTENCE_ENDS = ".!?…"
# A point, comma or colon inside a number, an address or an abbreviation is not a mark but part of a word.
_INNER_MARK = r"(?<=\d)[,:](?=\d)|(?<=[^\W_])\.(?=[a-z0-9])|(?<=[A-Z])\.(?=[A-Z]\b)"
_SPAN = re.compile(rf"([{HAN}]+)|([{KEPT_MARKS}\n]+)|((?:{_INNER_MARK}|[^{HAN}{KEPT_MARKS}\n])+)")
# Nobody types this: what stands at the end of a text that an annotated word follows.
_ANY_WORD = " tip\u2060"
_LANGUAGE_SWITCH = re.compile(r"\([^)]*\)")

# Chinese and typographic marks to those in the model's vocabulary.
_MARKS = str.maketrans(
    {
        "，": ",", "、": ",", "。": ".", "．": ".", "！": "!", "？": "?", "；": ";", "：": ":", "¿": None, "¡": None,
        "「": "“", "」": "”", "『": "“", "』": "”", "《": "“", "》": "”", "〈": "“", "〉": "”", "«": "“", "»": "”",
        "„": "“", "（": "(", "）": ")", "【": "(", "】": ")", "[": "(", "]": ")", "{": "(", "}": ")", "–": "—",
        "―": "—", "·": " ", "・": " ", "’": "'", "‘": "'", "_": " ", "|": ",", "*": " ", "~": " ", "^": " ",
        "\t": " ", "\r": "\n", "\u2028": "\n", "\u2029": "\n",
    }
)  # fmt: skip

_CURRENCY = re.compile(r"([$€£¥])\s?(\d[\d,]*(?:\.\d+)?)")
_CURRENCY_NAMES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yuan"}

# eSpeak's English to misaki's (misaki/espeak.py has the same table; longest first). The tie is gone afterwards.
_ENGLISH = (
    ("ʔˌn\u0329", "ʔn"), ("ʔn\u0329", "ʔn"), ("a^ɪ", "I"), ("a^ʊ", "W"), ("d^ʒ", "ʤ"), ("e^ɪ", "A"), ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"), ("ə^l", "ᵊl"), ("o^ʊ", "O"), ("ʲo", "jo"), ("ʲə", "jə"), ("ʲ", ""), ("ɚ", "əɹ"), ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("e", "A"), ("r", "ɹ"), ("x", "k"), ("ç", "k"), ("ɐ", "ə"), ("ɬ", "l"), ("\u0303", ""),
    ("ː", ""), ("o", "ɔ"), ("ɾ", "T"), ("ʔ", "t"), ("\u0329", ""), (TIE, ""),
)  # fmt: skip
_OTHER = (
    ("a^ɪ", "I"), ("a^ʊ", "W"), ("d^z", "ʣ"), ("d^ʒ", "ʤ"), ("e^ɪ", "A"), ("o^ʊ", "O"), ("ə^ʊ", "Q"), ("s^s", "S"),
    ("t^s", "ʦ"), ("t^ʃ", "ʧ"), ("ɔ^ɪ", "Y"), (TIE, ""), ("-", ""),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Phrase:
    """Phonemes ("" where there is only silence), and the silence that the text asks for after them."""

    phonemes: str
    pause_after_ms: int = 0


class Phonemizer:
    """Turns text into phonemes. The first one that is made in a cache folder keeps its dictionary of words there."""

    def __init__(self, cache_folder: Path, vocabulary: frozenset[str]) -> None:
        self._vocabulary = vocabulary
        self._espeak = Espeak()
        self._cutter = word_cutter(cache_folder)

    def phonemes(self, text: str, language: str) -> str:
        """The phonemes of a text with its marks, in the model's vocabulary. `language` may be "" (detect).

        Annotations are obeyed, but for pauses and sounds, which are left out.

        Raises:
            EngineError: with blame "user": `language_not_supported` or `text_unspeakable`.
        """
        spoken = " ".join(phrase.phonemes for phrase in self.phrases(text, language))
        if not any(character.isalpha() for character in spoken):
            raise EngineError("text_unspeakable", "There is nothing in this text that can be spoken.", "user")
        return spoken

    def phrases(self, text: str, language: str) -> list[Phrase]:
        """The same from pause to pause (`[pause 1s]`).

        Raises:
            EngineError: with blame "user": `language_not_supported`.
        """
        if language and language not in LANGUAGES:
            raise _not_supported(language)
        prepared = _prepared(mask(text))
        scripts = scripts_of(prepared)
        if not scripts <= SPEAKABLE_SCRIPTS:
            raise _not_supported(", ".join(sorted(scripts - SPEAKABLE_SCRIPTS)))
        chinese_numbers = "han" in scripts or language == "zh"
        if language in ("", "zh"):
            language = latin_language(prepared)
        phrases: list[Phrase] = []
        pieces: list[str] = []
        spoken = _spoken_tokens(text)
        for index, token in enumerate(spoken):
            before_word = [later.kind for later in spoken[index + 1 : index + 2]] == [Kind.ARPABET]
            if token.kind is Kind.PAUSE:
                phrases.append(Phrase(self._joined(pieces), int(token.value)))
                pieces = []
            elif token.kind is Kind.PINYIN:
                pieces += [" ", pinyin_phonemes(token.value), " "]
            elif token.kind is Kind.ARPABET:
                pieces += [" ", arpabet_phonemes(token.value), " "]
            else:
                written = write_out(token.value) if chinese_numbers else token.value
                pieces += self._pieces(written, language, before_word=before_word)
        return [*phrases, Phrase(self._joined(pieces))] if pieces else phrases

    def _pieces(self, text: str, language: str, *, before_word: bool) -> Iterator[str]:
        """The phonemes of a text. `before_word`: an annotated word of English comes next."""
        if before_word and text[-1:] == " " and text[-2:-1].isascii():
            # "a" and "the" sound by what follows: eSpeak is shown a word, whose phonemes are then left out.
            yield from self._pieces(f"{text}{_ANY_WORD}", language, before_word=False)
            return
        for han, marks, other in _SPAN.findall(text):
            if han:
                yield " " + self._mandarin(han) + " "
            elif marks:
                yield _mark(marks)
            elif other.strip():
                yield " " + self._by_espeak(other, language) + " "
            else:
                yield " "

    def _joined(self, pieces: Sequence[str]) -> str:
        joined = "".join(character for character in "".join(pieces) if character in self._vocabulary)
        joined = re.sub(r"\s+", " ", joined).strip()
        joined = re.sub(r" ([;:,.!?…)”])", r"\1", joined)
        joined = re.sub(r"([(“]) ", r"\1", joined)
        return joined if any(character.isalpha() for character in joined) else ""

    def _mandarin(self, run: str) -> str:
        """A run of Chinese characters, word by word."""
        syllables = lazy_pinyin(run, style=Style.TONE3, neutral_tone_with_five=True, tone_sandhi=True)
        if len(syllables) != len(run):
            return " ".join(self._syllables(lazy_pinyin(run, style=Style.TONE3, neutral_tone_with_five=True)))
        words = self._cutter.lcut(run, HMM=False)
        syllables = spoken_tones(words, syllables)
        spoken: list[str] = []
        start = 0
        for word in words:
            spoken.append("".join(self._syllables(syllables[start : start + len(word)])))
            start += len(word)
        return " ".join(spoken)

    def _syllables(self, syllables: list[str]) -> Iterator[str]:
        for syllable in syllables:
            # A character without a known reading comes back as itself: there is nothing to say for it.
            if syllable.isascii():
                yield pinyin_phonemes(syllable)

    def _by_espeak(self, text: str, language: str) -> str:
        if language == "en":
            text = _CURRENCY.sub(lambda match: f"{match[2]} {_CURRENCY_NAMES[match[1]]}", text)
        phonemes = _LANGUAGE_SWITCH.sub("", self._espeak.phonemes(text, ESPEAK_VOICES[language]))
        for theirs, ours in _ENGLISH if language == "en" else _OTHER:
            phonemes = phonemes.replace(theirs, ours)
        if text.endswith(_ANY_WORD):
            phonemes = phonemes.rpartition(" ")[0]
        return phonemes


def _spoken_tokens(text: str) -> list[Token]:
    """The tokens that are heard; texts on both sides of one that is not are one text, ready to be spelled."""
    spoken: list[Token] = []
    for token in tokens(text):
        if token.kind is Kind.TEXT and spoken and spoken[-1].kind is Kind.TEXT:
            spoken[-1] = dataclasses.replace(spoken[-1], end=token.end, value=spoken[-1].value + token.value)
        elif token.kind in (Kind.TEXT, Kind.PINYIN, Kind.ARPABET, Kind.PAUSE):
            spoken.append(token)
    return [
        dataclasses.replace(token, value=_prepared(token.value)) if token.kind is Kind.TEXT else token
        for token in spoken
    ]


def _prepared(text: str) -> str:
    """The text with plain letters and the model's marks, without pictures."""
    return _spell_greek(_without_pictures(unicodedata.normalize("NFKC", text).translate(_MARKS)))


def _mark(marks: str) -> str:
    """A run of marks as one that the model knows. A new line ends a sentence."""
    if set(marks) <= {"\n"}:
        return ". "
    marks = marks.replace("\n", "")
    if set(marks) <= {"."} and len(marks) > 1:
        return "… "
    # "！！！" and "？！" are one mark; the strongest speaks.
    for end in "?!….":
        if end in marks:
            return end + ("”" if "”" in marks else "") + " "
    return (" " if marks[0] in "(“" else "") + "".join(dict.fromkeys(marks)) + " "


def _without_pictures(text: str) -> str:
    """The text without emoji and the like, which eSpeak would read out by their English names."""
    return "".join(
        " "
        if character != "°" and unicodedata.category(character) in ("So", "Sk", "Cf", "Co", "Cn", "Cs")
        else character
        for character in text
    )


def _spell_greek(text: str) -> str:
    """Single Greek letters, as in formulas, by their English names."""

    def name(match: re.Match[str]) -> str:
        return " " + unicodedata.name(match[0]).split()[-1].lower() + " "

    return re.sub(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])", name, text)


def _not_supported(what: str) -> EngineError:
    return EngineError("language_not_supported", f"This engine does not speak: {what}.", "user")
