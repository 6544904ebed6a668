"""A text as passages: chapters, speakers, and the text that is kept."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tts.documents.passages import Chapter, Passage, ReadText, read_text
from tts.text import errors
from tts.text.annotations import counted_characters
from tts.text.cleaning import clean_text
from tts.text.errors import TextRefused

BOOK = """# The box

旁白：天黑了。
很黑。
**Alice:** Who is there?
- Bob (quietly):  Me.
bob: Yes, me.
Carol: ……

第二章　开始
没人说话。
alice：Oh [hào]."""


def script(raw: str) -> ReadText:
    return read_text(raw, is_script=True)


def test_a_script_with_chapters_is_read():
    read = script(BOOK)
    assert read.passages == [
        Passage("The box", chapter=0, is_title=True),
        Passage("天黑了。\n很黑。", "旁白", 0),
        Passage("Who is there?", "Alice", 0),
        Passage("Me.\nYes, me.", "Bob", 0),
        Passage("第二章 开始", chapter=1, is_title=True),
        Passage("没人说话。", "", 1),
        Passage("Oh [hào].", "Alice", 1),
    ]
    assert read.chapters == [Chapter("The box", 0), Chapter("第二章 开始", 4)]
    assert read.speakers == ["旁白", "Alice", "Bob"]
    assert read.characters == sum(counted_characters(passage.text) for passage in read.passages)
    assert read.text == (
        "# The box\n\n旁白：天黑了。\n很黑。\nAlice: Who is there?\nBob: Me.\nYes, me.\n\n"
        "第二章 开始\n\n没人说话。\nAlice：Oh [hào]."
    )


def test_names_are_text_where_no_script_is_read():
    read = read_text(BOOK)
    assert read.speakers == []
    assert read.passages[1].text.startswith(
        "旁白：天黑了。\n很黑。\nAlice: Who is there?\nBob (quietly): Me."
    )


@pytest.mark.parametrize(
    "line",
    [
        "# One",
        "## One",
        "第一章",
        "第十二回：风雪",
        "第100章 归来",
        "Chapter 1",
        "CHAPTER XII: The End",
        "Part two",
        "楔子",
        "Epilogue",
    ],
)
def test_a_title_begins_a_chapter(line: str):
    title = line.lstrip("# ")
    assert read_text(f"Before.\n{line}\nAfter.").passages == [
        Passage("Before."),
        Passage(title, chapter=1, is_title=True),
        Passage("After.", chapter=1),
    ]
    assert read_text(f"Before.\n{line}\nAfter.").chapters == [Chapter("", 0), Chapter(title, 1)]


@pytest.mark.parametrize(
    "line",
    [
        "#1 in the charts",
        "### Three",
        "第一章他来了。",
        "第一章我读完了",
        "Chapter 1 was the best one.",
        "Part of it",
        "Chapters 1",
        "In Chapter 1",
        "第二天",
        "# " + "字" * 61,
    ],
)
def test_other_lines_are_text(line: str):
    read = read_text(f"Before.\n{line}\nAfter.")
    assert (len(read.passages), read.chapters) == (1, [])


def test_a_text_without_titles_is_one_passage_as_it_was_always_cleaned():
    for raw in (
        "Hello.\n\n\nWorld ① !",
        "<speak># One<break time='1s'/></speak>",
        "```\n# no title\n```\nText.",
    ):
        read = read_text(raw)
        assert [passage.text for passage in read.passages] == [clean_text(raw).text] == [read.text]


def refusal(raw: str, **options: object) -> TextRefused:
    with pytest.raises(TextRefused) as caught:
        read_text(raw, is_script=True, **options)  # type: ignore[arg-type]
    return caught.value


def test_places_are_those_of_the_whole_text():
    raw = "# A title\r\n  Alice:  Hi [breth] there.\n\nBob: x\nBob:   [laughtr] and [hao4]."
    error = refusal(raw)
    assert isinstance(error, errors.AnnotationInvalid)
    assert [raw[one.start : one.end] for one in error.mistakes] == ["[breth]", "[laughtr]"]
    error = refusal("Alice: Hi.\nBob: Доброе", supported_languages=("zh", "en"))
    assert error.params["position"] == len("Alice: Hi.\nBob: ")
    assert refusal("Alice: Hi.\nBob: \x07").params["position"] == len("Alice: Hi.\nBob: ")


def test_a_name_may_be_in_letters_that_nobody_speaks():
    assert read_text("Иван: Hello.", is_script=True, supported_languages=("en",)).speakers == ["Иван"]


def test_what_has_nothing_to_say_is_refused_only_where_all_of_it_has_not():
    assert refusal("Alice: …\n# !!!\nBob:").code == "text_unspeakable"
    assert refusal("  \n ").code == "text_empty"
    assert [passage.text for passage in script("Alice: …\n# !!!\nBob: Yes.").passages] == ["Yes."]


def test_only_what_is_spoken_counts():
    assert read_text("Alice: 12345", is_script=True, max_characters=5).characters == 5
    assert refusal("Alice: 123456", max_characters=5).code == "text_too_long"


_PARTS = st.sampled_from(
    ["Alice: ", "Bob：", "旁白：", "**", "# ", "## ", "#", "第一章", "Chapter 1", "\n", "\n\n", "```\n", "- ", "> ",
     "//", "hi", "你好", "…", ".", ":", " ", "\u200b", "<speak>", "</speak>", "<strong>", "</strong>", "[hào]",
     "[pause 1s]", "_", "`", "<|x|>", "\u3000", "<p>", "|", "(a)", "🎉"]
)  # fmt: skip


@settings(max_examples=600)
@given(st.lists(_PARTS, max_size=24).map("".join), st.booleans())
def test_the_text_that_is_kept_reads_the_same_and_says_all_of_it(raw: str, is_script: bool):
    try:
        read = read_text(raw, is_script=is_script)
    except TextRefused:
        return
    assert read_text(read.text, is_script=is_script) == read
    # Names and marks are all that is in the text beside what is spoken.
    rest = read.text
    for passage in read.passages:
        rest = rest.lstrip("\n")
        if passage.is_title:
            rest = re.sub(r"^#{1,2} ", "", rest)
        elif passage.speaker:
            rest = re.sub(rf"^{re.escape(passage.speaker)}[:：] ?", "", rest)
        assert rest.startswith(passage.text)
        rest = rest.removeprefix(passage.text)
    assert rest == ""
