"""Chinese characters with several readings: which one is taken where they stand, and which others there are.

    for one in polyphones("银行行长"): one.reading, one.others     # háng …; háng …; zhǎng, cháng

The reading taken is that of pypinyin's dictionaries, by the longest phrase that begins at each place, as the built-in
engine reads (`tts.engine.phonemes`). Other models read by the sentence, and mostly alike.

The dictionaries' own JSON is read, once and when it is first needed: in the form kept here they take a tenth of the
memory of importing pypinyin, which every web process would pay. Without the package there are no polyphones. Pure.
"""

from __future__ import annotations

import bisect
import functools
import importlib.util
import json
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tts.text.annotation_inventory import SYLLABLES, without_tone
from tts.text.polyphone_examples import EXAMPLES

# A reading that fewer phrases have is one of old texts, names or dialects.
LEAST_PHRASES: Final = 3
LEAST_SHARE: Final = 0.03
# Their tones change with the next syllable, as the engines know; nobody chooses between them.
_CHANGE_WITH_THE_NEXT: Final = frozenset("一不")
_HAN_RUN: Final = re.compile(r"[〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
# GB 2312's first level: its 3755 characters are the common ones.
_FIRST_ROW, _LAST_ROW = 0xB0, 0xD7


@dataclass(frozen=True)
class KnownReading:
    """A reading in pinyin with its tone's mark, and a word in which the character has it ("": none is known)."""

    pinyin: str
    example: str


@dataclass(frozen=True)
class Polyphone:
    """The character at index `at` of a text. `reading` is the one it will have, `others` the common others, the most
    frequent first."""

    at: int
    character: str
    reading: KnownReading
    others: tuple[KnownReading, ...]


@dataclass(frozen=True)
class _Tables:
    """`readings`: a character's first reading in the dictionary. `phrases`: "" where all its characters have their
    first reading, else all readings, with spaces. `ordered`: the phrases by code points, to look for beginnings."""

    readings: Mapping[str, str]
    phrases: Mapping[str, str]
    ordered: tuple[str, ...]
    longest: int
    common: Mapping[str, tuple[KnownReading, ...]]


def polyphones(text: str) -> Iterator[Polyphone]:
    """Yield the common characters of a text that have several common readings, in order. Never raises."""
    tables = _loaded() if _HAN_RUN.search(text) else None
    if tables is None:
        return
    for run in _HAN_RUN.finditer(text):
        for offset, (character, reading) in enumerate(zip(run[0], _readings(run[0], tables), strict=True)):
            known = tables.common.get(character)
            if known is None:
                continue
            taken = next((one for one in known if one.pinyin == reading), KnownReading(reading, ""))
            others = tuple(one for one in known if one.pinyin != reading)
            yield Polyphone(run.start() + offset, character, taken, others)


def _readings(run: str, tables: _Tables) -> list[str]:
    """The reading of each character, phrase by phrase from the left. "" where none is known."""
    found: list[str] = []
    at = 0
    while at < len(run):
        phrase = _phrase_at(run, at, tables)
        if not phrase and _begins_a_phrase(run[at:], tables):
            # As pypinyin does: what may become a phrase at the end is read character by character.
            return [*found, *(tables.readings.get(character, "") for character in run[at:])]
        phrase = phrase or run[at]
        listed = tables.phrases.get(phrase, "")
        found += listed.split(" ") if listed else [tables.readings.get(one, "") for one in phrase]
        at += len(phrase)
    return found


def _phrase_at(run: str, at: int, tables: _Tables) -> str:
    for length in range(min(tables.longest, len(run) - at), 0, -1):
        if run[at : at + length] in tables.phrases:
            return run[at : at + length]
    return ""


def _begins_a_phrase(beginning: str, tables: _Tables) -> bool:
    if len(beginning) > tables.longest:
        return False
    at = bisect.bisect_left(tables.ordered, beginning)
    return at < len(tables.ordered) and tables.ordered[at].startswith(beginning)


_lock = threading.Lock()


def _loaded() -> _Tables | None:
    """The dictionaries; None without pypinyin. One thread reads them, others wait for it."""
    with _lock:
        return _tables()


@functools.lru_cache(maxsize=1)
def _tables() -> _Tables | None:
    found = importlib.util.find_spec("pypinyin")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0])
    first: dict[str, str] = {}
    listed: dict[str, list[str]] = {}
    for code, readings in _items(folder / "pinyin_dict.json"):
        character, known = chr(int(code)), readings.split(",")
        first[character] = sys.intern(known[0])
        if character in _common_characters():
            listed[character] = known
    phrases: dict[str, str] = {}
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    examples = {(one, reading): word for one, words in EXAMPLES.items() for reading, word in words.items()}
    for phrase, syllables in _items(folder / "phrases_dict.json"):
        spoken = [one[0] for one in syllables]
        if len(spoken) != len(phrase):
            continue
        is_usual = all(first.get(one) == reading for one, reading in zip(phrase, spoken, strict=True))
        phrases[phrase] = "" if is_usual else " ".join(spoken)
        for character, reading in zip(phrase, spoken, strict=True):
            counted[character][reading] += 1
            _keep_example(examples, (character, reading), phrase)
    return _Tables(
        readings=first,
        phrases=phrases,
        ordered=tuple(sorted(phrases)),
        longest=max(map(len, phrases)),
        common={
            character: tuple(
                KnownReading(sys.intern(reading), examples.get((character, reading), ""))
                for reading in readings
            )
            for character in listed
            if len(readings := _common_readings(character, listed[character], counted)) > 1
        },
    )


def _keep_example(examples: dict[tuple[str, str], str], key: tuple[str, str], phrase: str) -> None:
    """The shortest phrase of common characters, where none is known yet."""
    character, reading = key
    if reading in EXAMPLES.get(character, {}) or not 1 < len(phrase) < len(examples.get(key, "12345")):
        return
    if all(one in _common_characters() for one in phrase):
        examples[key] = phrase


def _common_readings(character: str, listed: list[str], counted: Mapping[str, Counter[str]]) -> list[str]:
    """Those that the dictionary lists and enough phrases show, the most frequent first."""
    counts = counted.get(character, Counter())
    enough = max(LEAST_PHRASES, LEAST_SHARE * counts.total())
    if character in _CHANGE_WITH_THE_NEXT:
        return []
    # Of words of one character, phrases show little.
    alone = EXAMPLES.get(character, {})
    common = [
        reading
        for reading in listed
        if without_tone(reading)[0] in SYLLABLES
        and (counts[reading] >= enough or reading in alone or reading == listed[0])
    ]
    return sorted(common, key=lambda reading: -counts[reading])


@functools.lru_cache(maxsize=1)
def _common_characters() -> frozenset[str]:
    decoded = (
        bytes((row, cell)).decode("gb2312", "ignore")
        for row in range(_FIRST_ROW, _LAST_ROW + 1)
        for cell in range(0xA1, 0xFF)
    )
    return frozenset(character for character in decoded if character)


def _items(path: Path) -> Iterator[tuple[str, Any]]:
    """The items of a JSON object one by one, so that never all of it is in memory as Python's lists."""
    content = path.read_text(encoding="utf-8")
    decoder = json.JSONDecoder()
    at = content.index("{") + 1
    separators = re.compile(r"[\s,:}]*")

    def skipped(place: int) -> int:
        match = separators.match(content, place)
        return match.end() if match else place

    at = skipped(at)
    while at < len(content):
        key, at = decoder.raw_decode(content, at)
        value, at = decoder.raw_decode(content, skipped(at))
        at = skipped(at)
        yield key, value
