"""Characters with several readings, against pypinyin itself."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from pypinyin import Style, lazy_pinyin

from tts.text import polyphones as module
from tts.text.annotations import Kind, tokens
from tts.text.polyphone_examples import EXAMPLES
from tts.text.polyphones import polyphones

SENTENCES = (
    "银行行长说他还得重新数一数",
    "他长得好看觉得都好了",
    "重庆市长江大桥",
    "睡着了着急朝阳区朝鲜参差不齐人参",
    "中华",
)


def readings(text: str) -> list[tuple[str, str, list[str]]]:
    return [
        (one.character, one.reading.pinyin, [other.pinyin for other in one.others])
        for one in polyphones(text)
    ]


def test_the_reading_in_context_comes_first_and_the_common_others_after_it() -> None:
    assert readings("银行行走") == [("行", "háng", ["xíng"]), ("行", "xíng", ["háng"])]
    assert readings("我还了书，还在。")[0] == ("还", "hái", ["huán"])
    assert readings("睡着") == [("着", "zháo", ["zhe", "zhuó", "zhāo"])]
    assert readings("他很高。") == []
    assert readings("a [hào] 12") == []
    # Nobody chooses how 一 and 不 change with the next syllable.
    assert readings("一不小心") == []


def test_each_reading_has_a_word_that_has_it() -> None:
    (one,) = polyphones("行")
    assert (one.at, one.reading.example) == (0, "行走")
    assert [(other.pinyin, other.example) for other in one.others] == [("háng", "银行")]


@pytest.mark.parametrize("character", sorted(EXAMPLES))
def test_the_words_that_everybody_knows_are_offered_and_may_be_annotated(character: str) -> None:
    (one,) = polyphones(character)
    offered = {known.pinyin: known.example for known in (one.reading, *one.others)}
    assert EXAMPLES[character].items() <= offered.items()
    for pinyin, example in EXAMPLES[character].items():
        assert character in example
        written = pinyin if not pinyin.isascii() else f"{pinyin}5"
        assert [token.kind for token in tokens(f"[{written}]")] == [Kind.PINYIN]


def test_a_text_is_read_as_pypinyin_reads_it() -> None:
    tables = module._tables()
    assert tables is not None
    draw = random.Random(1)
    phrases = sorted(tables.phrases)
    made = ["".join(draw.choice(phrases)[: draw.randint(1, 4)] for _ in range(4)) for _ in range(1000)]
    for text in (*SENTENCES, *made):
        assert module._readings(text, tables) == lazy_pinyin(text, style=Style.TONE), text


def test_a_web_process_imports_no_pypinyin_and_reads_no_dictionary_before_it_is_needed() -> None:
    code = """
import sys
from tts.text.polyphones import polyphones, _tables
list(polyphones("No Chinese here."))
assert _tables.cache_info().currsize == 0
assert next(polyphones("银行")).reading.pinyin == "háng"
assert "pypinyin" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
