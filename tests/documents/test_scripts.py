"""Scripts of several speakers, as turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.documents.scripts import Turn, parse_script, speakers_of


def test_a_script_is_read_as_turns():
    script = "第一章\n\n旁白：天黑了。\n很黑。\nAlice: Who is there?\nBob (quietly):  Me.\n\nalice：Oh."
    turns = parse_script(script)
    assert turns == [
        Turn("", "第一章", 1),
        Turn("旁白", "天黑了。\n很黑。", 3),
        Turn("Alice", "Who is there?", 5),
        Turn("Bob", "Me.", 6),
        Turn("Alice", "Oh.", 8),
    ]
    assert speakers_of(turns) == ["", "旁白", "Alice", "Bob"]


@pytest.mark.parametrize(
    "line",
    [
        "See https://example.com: it is there.",
        "https://example.com",
        "12:30 is the time.",
        "He said, and he meant it: go.",
        "这句话很长，所以：不是名字。",
        "This is a sentence with many words before its colon: so it is none.",
        "A" * 31 + ": no",
        ": nothing before it",
    ],
)
def test_a_colon_alone_makes_no_speaker(line: str):
    assert parse_script(line) == [Turn("", line, 1)]


def test_turns_without_words_are_left_out():
    assert parse_script("Alice:\n\nBob: \nCarol: Yes.") == [Turn("Carol", "Yes.", 4)]
    assert parse_script("") == []


@given(st.text(alphabet="ab:：\n 旁白。.", max_size=200))
def test_no_word_is_lost(text: str):
    said = "".join(f"{turn.speaker}{turn.text}" for turn in parse_script(text))
    kept = {sign for sign in said if not sign.isspace()}
    # Names of speakers who say nothing may go, and a name that came before is spelled as it was then.
    assert kept <= set(text)
    assert sum(said.count(sign) for sign in "。.") <= sum(text.count(sign) for sign in "。.")
