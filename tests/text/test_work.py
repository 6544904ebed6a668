"""How much work a text makes: a hostile one no more, by its length, than one that people write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tts.documents.chapters import title_line
from tts.text.cleaning import clean_line
from tts.text.markup import without_markup


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, generators gone on with among them."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(earlier)
    return count


def nested(tag: str, depth: int) -> str:
    return f"Hello {tag * depth}{'>' * depth} you"


@pytest.mark.parametrize("tag", ["<break ", "<mstts:a ", "</mark "])
def test_tags_in_tags_are_not_taken_out_one_by_one(tag: str) -> None:
    """A pass over the whole text for each of them would be minutes for a text of a few pages."""
    few, many = nested(tag, 40), nested(tag, 400)
    signs = calls_of(lambda: clean_line("." * (len(many) - len(few))))
    assert calls_of(lambda: clean_line(many)) <= calls_of(lambda: clean_line(few)) + 2 * signs
    for text in (few, many):
        cleaned = clean_line(text)
        assert tag.strip() not in cleaned
        assert clean_line(cleaned) == cleaned
        assert cleaned.startswith("Hello")


@pytest.mark.parametrize(
    ("opening", "closing"), [("<p>", "</p>"), ("<emphasis>", "</emphasis>"), ("<emphasis>so</emphasis>", "")]
)
def test_work_on_tags_grows_as_their_number(opening: str, closing: str) -> None:
    def document(count: int) -> str:
        return f"<speak>{opening * count}Hello{closing * count}</speak>"

    few = calls_of(lambda: without_markup(document(100)))
    many = calls_of(lambda: without_markup(document(400)))
    assert many < 5 * few


def test_a_heading_with_a_gap_in_it_is_looked_through_once() -> None:
    """Once for each space of the gap would be hours: whoever breaks this sees it hang."""
    gap = " " * 700_000
    assert title_line(f"# Title{gap}with a gap") is None
    closed = title_line(f"# Title{gap}##{gap}")
    assert closed is not None
    assert (closed.marks, closed.start, closed.end) == ("#", 2, 7)


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# One", "One"),
        ("## One ##", "One"),
        ("# One#", "One#"),
        ("# One # two", "One # two"),
        ("# One # #", "One #"),
        ("# #", "#"),
        ("## #\t", "#"),
        ("  #\tOne\t#\t", "One"),
    ],
)
def test_the_signs_that_close_a_heading_are_no_part_of_it(line: str, title: str) -> None:
    found = title_line(line)
    assert found is not None
    assert line[found.start : found.end] == title
