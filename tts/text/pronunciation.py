"""A workspace's own pronunciations: words, and what is said for each.

    重庆 → [chóng][qìng]        SQL → sequel        Nguyen → [N][UW1][IH0][N]

The rule.
- A word is found as it is written, wherever it stands: of words that begin at one place the longest is taken.
- Where it begins or ends with a letter or a digit of a script with spaces, it has to begin or end a word there: SQL is
  not found in SQLite, but in SQL-Server and in SQL's. Chinese and kana are found anywhere.
- Case does not matter, unless the word has two letters or more and all of them are capitals: IT is not found in "it".
  Where both are entered, IT goes before it.
- Nothing is found inside an annotation, a tag, a web or mail address, or a decimal number, and nothing in what was
  replaced.
- A replacement is text, with annotations (pinyin, ARPAbet, sounds, pauses) but no tags. It is read like the text
  around it: numbers in it become words.

Words that a cut between two segments divides are not found; cuts are made at the ends of sentences and clauses first.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tts.text.alignment import Edit, Edited, edit
from tts.text.annotations import Kind, Mistake, heard, mask, mistakes, tokens
from tts.text.characters import has_speech
from tts.text.cleaning import clean_line

MAX_ENTRIES: Final = 1_000
MAX_WORD_CHARACTERS: Final = 60
MAX_REPLACEMENT_CHARACTERS: Final = 200

# Stands for every character of an annotation; no cleaned text holds it.
_FILLER: Final = "\ue000"
_ASCII_RUN: Final = re.compile(r"[!-~]{4,}")
_ADDRESS: Final = re.compile(r"://|^[^a-z]*www\.|@[^@]*\.", re.IGNORECASE)
# Beside a Chinese character even a mistaken syllable is certainly meant as one.
_BESIDE: Final = "中"
_BRACKETED: Final = re.compile(r"\\?\[[^\]]*\]?|\]|<[^>]*>?")
_APOSTROPHES: Final = "'’"
_IN_NUMBERS: Final = ".,:/-"


@dataclass(frozen=True)
class Entry:
    """`replacement` is said for `word`."""

    word: str
    replacement: str


class Fault(enum.Enum):
    """What is wrong with an entry."""

    WORD_EMPTY = "word_empty"
    WORD_TOO_LONG = "word_too_long"
    WORD_ANNOTATED = "word_annotated"
    WORD_TWICE = "word_twice"
    REPLACEMENT_EMPTY = "replacement_empty"
    REPLACEMENT_TOO_LONG = "replacement_too_long"
    REPLACEMENT_TAG = "replacement_tag"
    REPLACEMENT_BRACKET = "replacement_bracket"
    ANNOTATION = "annotation"


@dataclass(frozen=True)
class EntryFault:
    """What is wrong with characters `start` to `end` of entry `index`'s word or replacement.

    `mistake` for ANNOTATION; its place is the same.
    """

    index: int
    fault: Fault
    start: int
    end: int
    mistake: Mistake | None = None

    @property
    def in_word(self) -> bool:
        return self.fault.value.startswith("word")


def checked(entries: Sequence[Entry]) -> tuple[list[Entry], list[EntryFault]]:
    """Return the entries as they are kept, and every fault of them as they were given, the first of each entry."""
    kept: list[Entry] = []
    faults: list[EntryFault] = []
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        word = " ".join(clean_line(entry.word).split())
        fault = _word_fault(index, entry.word, word) or _replacement_fault(index, entry.replacement)
        if fault is None and _key(word) in seen:
            fault = EntryFault(index, Fault.WORD_TWICE, 0, len(entry.word))
        seen.add(_key(word))
        if fault is None:
            kept.append(Entry(word, " ".join(clean_line(entry.replacement).split())))
        else:
            faults.append(fault)
    return kept, faults


def _word_fault(index: int, given: str, word: str) -> EntryFault | None:
    if not word:
        return EntryFault(index, Fault.WORD_EMPTY, 0, len(given))
    if len(word) > MAX_WORD_CHARACTERS:
        return EntryFault(index, Fault.WORD_TOO_LONG, MAX_WORD_CHARACTERS, len(given))
    if wrong := mistakes(given):
        return EntryFault(index, Fault.WORD_ANNOTATED, wrong[0].start, wrong[0].end)
    for token in tokens(given):
        if token.kind is not Kind.TEXT:
            return EntryFault(index, Fault.WORD_ANNOTATED, token.start, token.end)
    return None


def _replacement_fault(index: int, given: str) -> EntryFault | None:
    if len(given) > MAX_REPLACEMENT_CHARACTERS:
        return EntryFault(index, Fault.REPLACEMENT_TOO_LONG, MAX_REPLACEMENT_CHARACTERS, len(given))
    # Tags first: one that stands alone is a mistake too, but a pair is not allowed either.
    for token in tokens(given):
        if token.kind in (Kind.OPEN, Kind.CLOSE):
            return EntryFault(index, Fault.REPLACEMENT_TAG, token.start, token.end)
    if wrong := mistakes(f"{_BESIDE}{given}{_BESIDE}"):
        start, end = wrong[0].start - len(_BESIDE), wrong[0].end - len(_BESIDE)
        return EntryFault(index, Fault.ANNOTATION, start, end, replace(wrong[0], start=start, end=end))
    for token in tokens(given):
        if token.kind is Kind.TEXT and (bracket := _BRACKETED.search(token.value)):
            return EntryFault(
                index, Fault.REPLACEMENT_BRACKET, token.start + bracket.start(), token.start + bracket.end()
            )
    if not has_speech(heard(clean_line(given))):
        return EntryFault(index, Fault.REPLACEMENT_EMPTY, 0, len(given))
    return None


class Dictionary:
    """Entries ready to be applied. Made of checked entries; applying costs a few microseconds for each place of a text
    where a word could begin."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._replacements: dict[str, str] = {}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for entry in entries:
            key = _key(entry.word)
            self._replacements[key] = entry.replacement
            lengths[_folded(key[:2])].add(len(key))
        # For each two characters with which words begin, the lengths of those words, the longest first.
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}
        firsts = {form for start in self._lengths for form in (start[0], start[0].upper()) if len(form) == 1}
        self._firsts = re.compile(f"[{''.join(map(re.escape, sorted(firsts)))}]") if firsts else None

    def __bool__(self) -> bool:
        return bool(self._replacements)

    def apply(self, text: str) -> Edited:
        """Return the text with what is said for the words that are found."""
        if self._firsts is None or not self._firsts.search(text):
            return edit(text, [])
        plain = mask(text, _FILLER) if "[" in text or "<" in text else text
        plain = _ASCII_RUN.sub(
            lambda run: _FILLER * len(run[0]) if _ADDRESS.search(run[0]) else run[0], plain
        )
        return edit(text, self._edits(text, plain, self._firsts))

    def _edits(self, text: str, plain: str, firsts: re.Pattern[str]) -> list[Edit]:
        folded = _folded(plain)
        edits: list[Edit] = []
        found = firsts.search(plain)
        while found:
            start, end = found.start(), found.start() + 1
            if edited := self._edit_at(text, plain, folded, start):
                end = edited.end
                edits.append(edited)
            found = firsts.search(plain, end)
        return edits

    def _edit_at(self, text: str, plain: str, folded: str, start: int) -> Edit | None:
        """What the longest word that stands there becomes."""
        longer = self._lengths.get(folded[start : start + 2], ())
        # Two characters and more, then one.
        lengths = (*longer, *self._lengths.get(folded[start], ())) if start + 1 < len(folded) else longer
        if not lengths or not _begins_word(plain, start):
            return None
        for length in lengths:
            replacement = self._at(plain, folded, start, start + length)
            if replacement is not None:
                return Edit(start, start + length, _set_apart(text, start, start + length, replacement))
        return None

    def _at(self, plain: str, folded: str, start: int, end: int) -> str | None:
        # Words of capitals are the only ones that have capitals here.
        replacement = self._replacements.get(plain[start:end]) or self._replacements.get(folded[start:end])
        if replacement is None or end > len(plain):
            return None
        return replacement if _ends_word(plain, end) else None


NOTHING: Final = Dictionary()


def _key(word: str) -> str:
    """Under which a word is looked up: words of capitals as they are, others in small letters."""
    return word if _is_capitals(word) else _folded(word)


def _is_capitals(word: str) -> bool:
    letters = [sign for sign in word if sign.upper() != sign.lower()]
    return len(letters) > 1 and all(sign == sign.upper() for sign in letters)


def _folded(text: str) -> str:
    """The text in small letters, each in its place."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)


def _in_word(sign: str) -> bool:
    """Whether words of this character's script are set apart by spaces."""
    return sign == "_" or (
        sign.isalnum() and not "\u2e80" <= sign <= "\u9fff" and not "\uf900" <= sign <= "\ufaff"
    )


def _begins_word(plain: str, start: int) -> bool:
    if start == 0 or not _in_word(plain[start]):
        return True
    before = plain[start - 1]
    if _in_word(before):
        return False
    # 3.5 is one number, and don't one word.
    between = plain[start].isdecimal() and before in _IN_NUMBERS
    return not (start > 1 and between and plain[start - 2].isdecimal()) and not (
        start > 1 and before in _APOSTROPHES and plain[start - 2].isalpha()
    )


def _ends_word(plain: str, end: int) -> bool:
    if end == len(plain) or not _in_word(plain[end - 1]):
        return True
    after, next_one = plain[end], plain[end + 1 : end + 2]
    if _in_word(after):
        return False
    if plain[end - 1].isdecimal() and after in _IN_NUMBERS and next_one.isdecimal():
        return False
    if after in _APOSTROPHES and next_one.isalpha():
        # The genitive is a word's ending; can't is no can.
        return next_one in "sS" and not plain[end + 2 : end + 3].isalnum()
    return True


def _set_apart(text: str, start: int, end: int, replacement: str) -> str:
    """The replacement with spaces where its brackets would run into those of the text, or its words into a word."""
    before, after = text[start - 1 : start], text[end : end + 1]
    left = " " if before and _runs_into(before, replacement[0]) else ""
    right = " " if after and _runs_into(replacement[-1], after) else ""
    return f"{left}{replacement}{right}"


def _runs_into(one: str, other: str) -> bool:
    bracketed = one == "]" or other == "["
    return (bracketed and (one == "]" or _in_word(one)) and (other == "[" or _in_word(other))) or (
        _in_word(one) and _in_word(other)
    )
