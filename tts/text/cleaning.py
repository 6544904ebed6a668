"""From what was typed to what is spoken: refused with the place at fault, or cleaned by fixed rules.

Left out: invisible format characters (zero width, bidirectional controls, soft hyphens), emoji and pictures,
model markers (`<|…|>`, which would steer the engine), markup (SSML and Markdown; see `tts.text.markup`),
private-use characters. Changed: Unicode composed (NFC), full-width and mathematical letters and digits to plain ones,
every kind of line end to a newline, every kind of space to one, runs of signs and of stacked marks cut short.
Cleaning twice changes nothing.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from tts.text.alignment import Edited
from tts.text.annotations import Mistake, counted_characters, heard, mask, mistakes
from tts.text.characters import Script, has_speech, is_speakable, script_of, scripts_of_languages
from tts.text.errors import (
    AnnotationInvalid,
    LanguageNotSupported,
    ScriptNotSupported,
    SsmlInvalid,
    TextControlCharacter,
    TextEmpty,
    TextLoneSurrogate,
    TextTooLong,
    TextUnspeakable,
)
from tts.text.language import scripts_in
from tts.text.limits import (
    MAX_JOB_CHARACTERS,
    MAX_MARKS_PER_CHARACTER,
    MAX_RAW_CHARACTERS,
    MAX_UNSPOKEN_RUN,
)
from tts.text.markup import without_markup
from tts.text.ssml import SsmlFault

# Line ends of every system, and the two old ones of printers, which PDFs and word processors leave behind.
_LINE_END: Final = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
_LINE_ENDS: Final = frozenset("\n\r\v\f\x85\u2028\u2029")
_MARKER: Final = re.compile(r"<\|[^<>|]*\|>")
_MARKER_ENDS: Final = re.compile(r"<\||\|>")
_SSML_TAG: Final = re.compile(
    r"</?(?:speak|break|prosody|emphasis|say-as|phoneme|voice|audio|mark|lang|sub|amazon:\w+|mstts:[\w-]+)"
    r"\b[^<>]*>",
    re.IGNORECASE,
)
# Each round takes away at least one character of markup; texts that people write need two.
_MOST_ROUNDS: Final = 12
_SPACES_AROUND_LINE_END: Final = re.compile(r" *\n *")
_MANY_LINE_ENDS: Final = re.compile(r"\n{3,}")
_MANY_SPACES: Final = re.compile(r" {2,}")

# Pictures: nobody agrees on how to say them, and engines skip, spell or choke on them.
_PICTURE_RANGES: Final = (
    ("\u2190", "\u21ff"),  # arrows
    ("\u2300", "\u23ff"),  # technical signs, among them ⌚ and ⏰
    ("\u2500", "\u27bf"),  # lines, shapes, weather, dingbats
    ("\u2900", "\u297f"),  # more arrows
    ("\u2b00", "\u2bff"),  # more arrows and stars
    ("\U0001f000", "\U0001faff"),  # emoji, flags, tiles and cards
)
_FOLDED_RANGES: Final = (
    ("\uff10", "\uff19"),  # full-width digits
    ("\uff21", "\uff3a"),  # full-width capitals
    ("\uff41", "\uff5a"),  # full-width small letters
    ("\U0001d400", "\U0001d7ff"),  # mathematical letters and digits, used as fonts
)


@dataclasses.dataclass(frozen=True)
class CleanText:
    """What is spoken: `text`, its length as limits count it (an annotation is one), and the scripts of its letters."""

    text: str
    characters: int
    scripts: frozenset[Script]


def clean_text(
    raw: str,
    *,
    supported_languages: Sequence[str] = (),
    language: str = "",
    max_characters: int = MAX_JOB_CHARACTERS,
) -> CleanText:
    """Return the text as it will be spoken.

    `supported_languages` are the engine's, by ISO 639-1 code; without any, every script passes. `language` is
    the one that was asked for, "" for none in particular.

    Raises:
        TextRefused: TextEmpty, TextUnspeakable, TextTooLong, TextControlCharacter, TextLoneSurrogate,
            AnnotationInvalid, SsmlInvalid, LanguageNotSupported (ScriptNotSupported where the text itself shows it).
    """
    if language and supported_languages and language not in supported_languages:
        raise LanguageNotSupported(supported_languages=supported_languages)
    if len(raw) > MAX_RAW_CHARACTERS:
        raise TextTooLong(characters=len(raw), limit=max_characters)
    _refuse_broken_characters(raw)
    text = _cleaned_text(raw)
    if not has_speech(heard(text)):
        raise TextUnspeakable if _has_visible(raw) else TextEmpty
    if supported_languages:
        _refuse_other_scripts(mask(raw), supported_languages)
    characters = counted_characters(text)
    if characters > max_characters:
        raise TextTooLong(characters=characters, limit=max_characters)
    return CleanText(text=text, characters=characters, scripts=scripts_in(mask(text)))


def _cleaned_text(raw: str) -> str:
    """The text without markup and without what is left out, until nothing changes any more.

    What one removal puts together the next round removes. Mistakes that come about only so have no place in what was
    sent; theirs is that in the text as it is then.
    """
    text = raw
    for _round in range(_MOST_ROUNDS):
        try:
            marked = without_markup(text)
        except SsmlFault as fault:
            raise SsmlInvalid(fault=fault.fault, start=fault.start, end=fault.end) from fault
        if found := mistakes(marked.text):
            raise AnnotationInvalid(mistakes=[_placed(mistake, marked) for mistake in found])
        cleaned = _cleaned(marked.text)
        if cleaned == text:
            break
        text = cleaned
    return text


def _placed(mistake: Mistake, marked: Edited) -> Mistake:
    start, end = marked.source_span(mistake.start, mistake.end)
    return dataclasses.replace(mistake, start=start, end=end)


def _refuse_broken_characters(raw: str) -> None:
    for position, character in enumerate(raw):
        category = unicodedata.category(character)
        if category == "Cs":
            raise TextLoneSurrogate(position=position)
        if category == "Cc" and character not in _LINE_ENDS and character != "\t":
            raise TextControlCharacter(position=position)


def _refuse_other_scripts(raw: str, supported_languages: Sequence[str]) -> None:
    spoken = scripts_of_languages(supported_languages)
    for position, character in enumerate(raw):
        for kept in _kept(unicodedata.normalize("NFC", character)):
            script = script_of(kept)
            if script is not None and script not in spoken:
                raise ScriptNotSupported(
                    script=script, position=position, supported_languages=supported_languages
                )


def _has_visible(raw: str) -> bool:
    return any(unicodedata.category(character)[0] not in "ZC" for character in raw)


def _cleaned(raw: str) -> str:
    text = _LINE_END.sub("\n", unicodedata.normalize("NFC", raw))
    text = "".join(map(_kept, text))
    text = _without_markers(text)
    # Characters that were held apart by something invisible may compose now.
    text = _without_stacked_marks(unicodedata.normalize("NFC", text))
    text = _SPACES_AROUND_LINE_END.sub("\n", _MANY_SPACES.sub(" ", text))
    text = _MANY_LINE_ENDS.sub("\n\n", text).strip()
    return _without_long_unspoken_runs(text).strip()


def _kept(character: str) -> str:
    """What stays of one character: itself, another form of it, a space in its place, or nothing."""
    if character.isascii():
        return " " if character == "\t" else character
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    if category in ("Cf", "Co", "Cn") or _is_variation_selector(character) or character == "\u20e3":
        return ""
    if _within(character, _PICTURE_RANGES):
        return " "
    if _within(character, _FOLDED_RANGES):
        return unicodedata.normalize("NFKC", character)
    return character


def _within(character: str, ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(first <= character <= last for first, last in ranges)


def _is_variation_selector(character: str) -> bool:
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _without_markers(text: str) -> str:
    """Remove markers until none is left: taking one out may put the halves of another together."""
    while True:
        cleaned = _MARKER_ENDS.sub(" ", _MARKER.sub(" ", _SSML_TAG.sub(" ", text)))
        if cleaned == text:
            return text
        text = cleaned


def _without_stacked_marks(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" else 0
        if marks <= MAX_MARKS_PER_CHARACTER:
            kept.append(character)
    return "".join(kept)


def _without_long_unspoken_runs(text: str) -> str:
    kept: list[str] = []
    unspoken = 0
    for character in text:
        speakable = is_speakable(character) or unicodedata.category(character)[0] == "M"
        unspoken = 0 if speakable else unspoken + 1
        if unspoken <= MAX_UNSPOKEN_RUN:
            kept.append(character)
    return "".join(kept)
