"""From what was typed to what is spoken: refused with the place at fault, or cleaned by fixed rules.

Left out: invisible format characters (zero width, bidirectional controls, soft hyphens), emoji and pictures,
model markers (`<|…|>`, which would steer the engine), markup (SSML and Markdown; see `tts.text.markup`),
private-use characters. Changed: Unicode composed (NFC), full-width and mathematical letters and digits to plain ones,
every kind of line end to a newline, every kind of space to one, runs of signs and of stacked marks cut short.
Cleaning twice changes nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Callable, Sequence
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
    TextUnspeakable,
    too_long,
)
from tts.text.language import scripts_in
from tts.text.limits import (
    MAX_JOB_CHARACTERS,
    MAX_MARKS_PER_CHARACTER,
    MAX_UNSPOKEN_RUN,
    RAW_FACTOR,
)
from tts.text.markup import without_markup
from tts.text.ssml import SsmlFault

# Line ends of every system, and the two old ones of printers, which PDFs and word processors leave behind.
LINE_END: Final = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
_LINE_ENDS: Final = frozenset("\n\r\v\f\x85\u2028\u2029")
_MARKER: Final = re.compile(r"<\|[^<>|]*\|>")
_MARKER_ENDS: Final = re.compile(r"<\||\|>")
_SSML_TAG_BEGINS: Final = re.compile(
    r"</?(?:speak|break|prosody|emphasis|say-as|phoneme|voice|audio|mark|lang|sub|amazon:\w+|mstts:[\w-]+)\b",
    re.IGNORECASE,
)
_SSML_TAG: Final = re.compile(_SSML_TAG_BEGINS.pattern + r"[^<>]*>", re.IGNORECASE)
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
    check_request(
        raw, supported_languages=supported_languages, language=language, max_characters=max_characters
    )
    text = clean_part(raw)
    if not is_spoken(text):
        raise nothing_to_say(raw)
    refuse_other_scripts(raw, supported_languages)
    characters = counted_characters(text)
    if characters > max_characters:
        raise too_long(characters=characters, limit=max_characters)
    return CleanText(text=text, characters=characters, scripts=scripts_in(mask(text)))


Place = Callable[[int, int], tuple[int, int]]
"""Where characters of a part stand in the whole text that it is a part of."""


def _itself(start: int, end: int) -> tuple[int, int]:
    return start, end


def check_request(
    raw: str, *, supported_languages: Sequence[str], language: str, max_characters: int
) -> None:
    """Refuse what need not be looked at closer: an unknown language, far too much, what is no text.

    Raises:
        LanguageNotSupported, TextTooLong, TextControlCharacter, TextLoneSurrogate.
    """
    if language and supported_languages and language not in supported_languages:
        raise LanguageNotSupported(supported_languages=supported_languages)
    if len(raw) > RAW_FACTOR * max_characters:
        raise too_long(characters=len(raw), limit=max_characters)
    _refuse_broken_characters(raw)


def is_spoken(text: str) -> bool:
    """Whether a cleaned text has anything to say."""
    return has_speech(heard(text))


def nothing_to_say(raw: str) -> TextUnspeakable | TextEmpty:
    """The refusal of a text that has nothing to say."""
    return TextUnspeakable() if _has_visible(raw) else TextEmpty()


def clean_part(raw: str, place: Place = _itself) -> str:
    """The text without markup and without what is left out, until nothing changes any more; "" where nothing stays.

    What one removal puts together the next round removes. Mistakes that come about only so have no place in what was
    sent; theirs is that in the text as it is then.

    Raises:
        AnnotationInvalid, SsmlInvalid: with their places in the whole text.
    """
    text = raw
    for _round in range(_MOST_ROUNDS):
        try:
            marked = without_markup(text)
        except SsmlFault as fault:
            start, end = place(fault.start, fault.end)
            raise SsmlInvalid(fault=fault.fault, start=start, end=end) from fault
        if found := mistakes(marked.text):
            raise AnnotationInvalid(mistakes=[_placed(mistake, marked, place) for mistake in found])
        cleaned = clean_line(marked.text)
        if cleaned == text:
            break
        text, place = cleaned, _itself
    return text


def _placed(mistake: Mistake, marked: Edited, place: Place) -> Mistake:
    start, end = place(*marked.source_span(mistake.start, mistake.end))
    return dataclasses.replace(mistake, start=start, end=end)


def _refuse_broken_characters(raw: str) -> None:
    # A text has few different characters: only where one of them is broken is its place looked for.
    broken = {
        character
        for character in set(raw)
        if unicodedata.category(character) in ("Cs", "Cc")
        and character not in _LINE_ENDS
        and character != "\t"
    }
    if not broken:
        return
    for position, character in enumerate(raw):
        if character in broken:
            is_half = unicodedata.category(character) == "Cs"
            raise (TextLoneSurrogate if is_half else TextControlCharacter)(position=position)


def refuse_other_scripts(raw: str, supported_languages: Sequence[str], place: Place = _itself) -> None:
    """Refuse letters that no supported language is written in; without any, every script passes.

    Raises:
        ScriptNotSupported: with the place of the first one in the whole text.
    """
    if not supported_languages:
        return
    spoken = scripts_of_languages(supported_languages)
    masked = mask(raw)
    if scripts_in("".join(_kept(unicodedata.normalize("NFC", one)) for one in set(masked))) <= spoken:
        return
    for position, character in enumerate(masked):
        for kept in _kept(unicodedata.normalize("NFC", character)):
            script = script_of(kept)
            if script is not None and script not in spoken:
                raise ScriptNotSupported(
                    script=script,
                    position=place(position, position + 1)[0],
                    supported_languages=supported_languages,
                )


# Every run of so many signs that nobody speaks is one, and there are others, with marks in them.
_LONG_RUN: Final = re.compile(rf"[\W_]{{{MAX_UNSPOKEN_RUN + 1}}}")


def _has_visible(raw: str) -> bool:
    return any(unicodedata.category(character)[0] not in "ZC" for character in raw)


def clean_line(raw: str) -> str:
    """The text without what is left out or changed character by character; markup stays."""
    text = LINE_END.sub("\n", unicodedata.normalize("NFC", raw))
    text = "".join(map(_kept, text))
    text = _without_markers(text)
    # Characters that were held apart by something invisible may compose now.
    text = _without_stacked_marks(unicodedata.normalize("NFC", text))
    text = _SPACES_AROUND_LINE_END.sub("\n", _MANY_SPACES.sub(" ", text))
    text = _MANY_LINE_ENDS.sub("\n\n", text).strip()
    return _without_long_unspoken_runs(text).strip()


@functools.lru_cache(maxsize=16_384)
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
    for _round in range(_MOST_ROUNDS):
        cleaned = _MARKER_ENDS.sub(" ", _MARKER.sub(" ", _SSML_TAG.sub(" ", text)))
        if cleaned == text:
            return text
        text = cleaned
    # Tags in tags in tags, which nobody writes: a round for each of them would take minutes. Without their brackets
    # there are none.
    return _SSML_TAG_BEGINS.sub(" ", text)


def _without_stacked_marks(text: str) -> str:
    if not any(map(_is_mark, set(text))):
        return text
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if _is_mark(character) else 0
        if marks <= MAX_MARKS_PER_CHARACTER:
            kept.append(character)
    return "".join(kept)


@functools.lru_cache(maxsize=16_384)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


@functools.lru_cache(maxsize=16_384)
def _is_part_of_word(character: str) -> bool:
    return is_speakable(character) or _is_mark(character)


def _without_long_unspoken_runs(text: str) -> str:
    if not _LONG_RUN.search(text):
        return text
    kept: list[str] = []
    unspoken = 0
    for character in text:
        unspoken = 0 if _is_part_of_word(character) else unspoken + 1
        if unspoken <= MAX_UNSPOKEN_RUN:
            kept.append(character)
    return "".join(kept)
