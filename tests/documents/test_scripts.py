"""Lines of scripts that begin what a speaker says. (Whole scripts: test_passages.)"""

from __future__ import annotations

import pytest

from tts.documents.scripts import name_key, turn_start


@pytest.mark.parametrize(
    ("line", "speaker", "colon", "words"),
    [
        ("旁白：天黑了。", "旁白", "：", "天黑了。"),
        ("Alice: Who is there?", "Alice", ":", "Who is there?"),
        ("  Bob (quietly):  Me.", "Bob", ":", "Me."),
        ("小明（小声）：我。", "小明", "：", "我。"),
        ("**Alice:** Yes.", "Alice", ":", "Yes."),
        ("**Alice**: Yes.", "Alice", ":", "Yes."),
        ("- The  old   man: No.", "The old man", ":", "No."),
        ("A" * 30 + ": yes", "A" * 30, ":", "yes"),
        ("Alice:", "Alice", ":", ""),
    ],
)
def test_a_name_and_a_colon_begin_a_turn(line: str, speaker: str, colon: str, words: str):
    found = turn_start(line)
    assert found is not None
    assert (found.speaker, found.colon, line[found.words_at :]) == (speaker, colon, words)


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
        "",
    ],
)
def test_a_colon_alone_makes_no_speaker(line: str):
    assert turn_start(line) is None


def test_names_that_differ_in_case_or_width_are_one_speaker():
    assert name_key("ALICE") == name_key("alice") == name_key("ａlice") != name_key("alicia")
