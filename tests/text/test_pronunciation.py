"""A workspace's own pronunciations: which words are found, what is said for them, and what is no entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.text.annotations import mistakes
from tts.text.pronunciation import NOTHING, Dictionary, Entry, Fault, checked
from tts.text.spoken import spoken_text

ENTRIES = [
    Entry("重庆", "[chóng][qìng]"),
    Entry("重庆火锅", "火锅"),
    Entry("火锅", "hot pot"),
    Entry("SQL", "sequel"),
    Entry("it", "that"),
    Entry("IT", "eye tee"),
    Entry("Nguyen", "[N][UW1][IH0][N]"),
    Entry("can", "could"),
    Entry("3", "drei"),
    Entry("T恤", "tee恤"),
    Entry("New York", "the city"),
    Entry("Straße", "street"),
]
DICTIONARY = Dictionary(ENTRIES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # The longest word, and nothing in what was replaced.
        ("在重庆吃重庆火锅。", "在[chóng][qìng]吃火锅。"),
        ("SQL, SQLite, MySQL, SQL's, SQL-Server", "sequel, SQLite, MySQL, sequel's, sequel-Server"),
        # Words of capitals as they are, others in any case.
        ("sql IT it It's", "sql eye tee that that's"),
        ("NGUYEN and nguyen", "[N][UW1][IH0][N] and [N][UW1][IH0][N]"),
        ("STRASSE STRAßE", "STRASSE street"),
        ("can can't cannot", "could can't cannot"),
        ("3 3.5 13 3,000 a3", "drei 3.5 13 3,000 a3"),
        ("T恤和AT恤", "tee恤和AT恤"),
        ("new york, New Yorker", "the city, New Yorker"),
        # Never inside annotations, tags and addresses.
        ("[hào]<strong>it</strong>", "[hào]<strong>that</strong>"),
        ("https://it.example/SQL me@it.example it", "https://it.example/SQL me@it.example that"),
        # Brackets do not run into those of the text, nor words into words.
        ("Nguyen[breath]重庆[hǎo]", "[N][UW1][IH0][N] [breath] [chóng][qìng] [hǎo]"),
        ("", ""),
    ],
)  # fmt: skip
def test_words_are_said_as_the_entries_say(text: str, said: str):
    assert DICTIONARY.apply(text).text == said


def test_a_place_in_what_is_said_leads_back_to_what_was_typed():
    edited = DICTIONARY.apply("在重庆吃。")
    assert edited.source_span(1, 5) == (1, 3)


def test_entries_go_before_numbers_are_put_into_words():
    pronunciations = Dictionary([Entry("GPT-4", "G P T 4"), Entry("4", "quattro")])
    said = spoken_text(
        "GPT-4 has 4 parts.", language="en", voice_language="en", pronunciations=pronunciations
    )
    assert said == "G P T four has quattro parts."
    assert spoken_text("IT", language="en", voice_language="en") == "IT"
    assert not NOTHING


def fault_of(word: str, replacement: str) -> tuple[Fault, int, int]:
    kept, faults = checked([Entry("first", "one"), Entry(word, replacement)])
    assert kept == [Entry("first", "one")]
    (fault,) = faults
    assert fault.index == 1
    return fault.fault, fault.start, fault.end


@pytest.mark.parametrize(
    ("word", "replacement", "fault"),
    [
        (" ", "x", (Fault.WORD_EMPTY, 0, 1)),
        ("a" * 61, "x", (Fault.WORD_TOO_LONG, 60, 61)),
        ("go [breath]", "x", (Fault.WORD_ANNOTATED, 3, 11)),
        ("First", "x", (Fault.WORD_TWICE, 0, 5)),
        ("a", "", (Fault.REPLACEMENT_EMPTY, 0, 0)),
        ("a", "...", (Fault.REPLACEMENT_EMPTY, 0, 3)),
        ("a", "b" * 201, (Fault.REPLACEMENT_TOO_LONG, 200, 201)),
        ("a", "so <strong>x</strong>", (Fault.REPLACEMENT_TAG, 3, 11)),
        ("a", "b [1] c", (Fault.REPLACEMENT_BRACKET, 2, 5)),
    ],
)
def test_what_is_no_entry_is_told_with_its_place(word: str, replacement: str, fault: tuple[Fault, int, int]):
    assert fault_of(word, replacement) == fault


def test_a_mistaken_annotation_is_told_with_what_was_meant():
    _, (fault,) = checked([Entry("好", "很[hoa4]")])
    assert fault.mistake is not None
    assert (fault.fault, fault.start, fault.end, fault.mistake.suggestion) == (
        Fault.ANNOTATION,
        1,
        7,
        "[hao4]",
    )


def test_entries_are_kept_as_texts_are_cleaned():
    kept, faults = checked([Entry("  ＳＱＬ  server ", "se\u200bquel\n")])
    assert (kept, faults) == ([Entry("SQL server", "sequel")], [])


letters = st.text(alphabet="abIT重庆 [].'3", min_size=1, max_size=30)
replacements = st.sampled_from(["x", "[chóng][qìng]", "[R][IH1]", "two words", "[breath] so", "9"])


@given(st.lists(st.tuples(letters, replacements), max_size=8), letters, letters)
def test_a_text_without_mistakes_has_none_afterwards(drawn: list[tuple[str, str]], text: str, more: str):
    kept, _ = checked([Entry(word, replacement) for word, replacement in drawn])
    typed = f"{text}[hào]{more}"
    if mistakes(typed):
        return
    edited = Dictionary(kept).apply(typed)
    assert not mistakes(edited.text)
    assert "[hào]" in edited.text


def test_the_cost_of_a_thousand_entries_is_bounded_by_places_where_words_begin():
    """Counted in lookups, not in seconds: a text of one long word asks once."""
    asked = 0

    class Counting(Dictionary):
        def _at(self, plain: str, folded: str, start: int, end: int) -> str | None:
            nonlocal asked
            asked += 1
            return super()._at(plain, folded, start, end)

    entries = [Entry("a" * length, "x") for length in range(2, 60)] + [
        Entry(f"a{n}b", "y") for n in range(900)
    ]
    many = Counting(entries)
    many.apply("a" * 200_000)
    assert asked <= 60
    asked = 0
    many.apply("ab " * 60_000)
    assert asked <= 60_000
