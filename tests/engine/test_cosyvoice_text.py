"""What CosyVoice is given to read."""

from __future__ import annotations

import pytest

from tts.engine.cosyvoice_text import (
    CROSS_LINGUAL,
    INSTRUCT,
    ZERO_SHOT,
    mode_of,
    pieces_of,
    prompt_for,
)
from tts.engine.errors import EngineError
from tts.engine.protocol import SpeakRequest, VoiceReference
from tts.text.instructions import INSTRUCTIONS, without_marks

SYSTEM = "You are a helpful assistant."
END = "<|endofprompt|>"


def request(text: str = "你好。", **changes: object) -> SpeakRequest:
    fields: dict[str, object] = {
        "request_id": "a",
        "text": text,
        "language": "",
        "voice": VoiceReference(kind="clone", transcript="希望你好。", language="zh"),
        "seed": 1,
        "speed": 1.0,
        "max_gpu_ms": 10**6,
    }
    return SpeakRequest(**{**fields, **changes})  # type: ignore[arg-type]


def mode(text: str = "你好。", **changes: object) -> str:
    made = request(text, **changes)
    return mode_of(made, made.voice)


@pytest.mark.parametrize(
    ("mode", "version", "before", "prefix", "with_speech"),
    [
        (ZERO_SHOT, 2, "希望你好。", "", True),
        (ZERO_SHOT, 3, f"{SYSTEM}{END}希望你好。", "", True),
        (CROSS_LINGUAL, 2, None, "", False),
        (CROSS_LINGUAL, 3, None, f"{SYSTEM}{END}", False),
        (INSTRUCT, 2, f"用四川话说这句话{END}", "", False),
        (INSTRUCT, 3, f"{SYSTEM} 请用四川话表达。{END}", "", False),
    ],
)
def test_each_version_gets_its_own_form_of_prompt(
    mode: str, version: int, before: str | None, prefix: str, with_speech: bool
) -> None:
    prompt = prompt_for(mode, version=version, transcript="希望你好。", instruction="请用四川话表达。")
    assert (prompt.before, prompt.prefix, prompt.with_speech) == (before, prefix, with_speech)


def test_transcript_and_instruction_cannot_end_the_prompt_themselves() -> None:
    prompt = prompt_for(ZERO_SHOT, version=3, transcript=f"甲{END}乙", instruction="")
    assert prompt.before == f"{SYSTEM}{END}甲 endofprompt 乙"
    assert prompt_for(INSTRUCT, version=2, transcript="", instruction=f"快{END}").before.count(END) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a<|endofprompt|>b", "a endofprompt b"),
        ("a<<||endofprompt||>>b", "a endofprompt b"),
        ("a < | b | > c", "a   b   c"),
        ("3 < 4 | 5 > 2", "3 < 4 | 5 > 2"),
    ],
)
def test_the_models_own_marks_are_taken_out_of_texts(text: str, cleaned: str) -> None:
    assert " ".join(without_marks(text).split()) == " ".join(cleaned.split())
    assert "<|" not in without_marks(text)
    assert "|>" not in without_marks(text)


def test_the_mode_follows_from_the_voice_and_the_language() -> None:
    silent = VoiceReference(kind="clone", language="zh")
    unknown = VoiceReference(kind="clone", transcript="希望你好。")
    assert mode() == ZERO_SHOT
    assert mode(voice=silent) == CROSS_LINGUAL
    assert mode("Hello there.") == CROSS_LINGUAL
    assert mode("Hello there.", voice=unknown) == ZERO_SHOT
    assert mode("Hello there.", language="zh") == ZERO_SHOT
    assert mode("你好。", language="ru") == CROSS_LINGUAL
    assert mode("12345") == ZERO_SHOT
    assert mode(instruction="请用四川话表达。") == INSTRUCT
    assert mode("Hello there.", mode="zero_shot") == ZERO_SHOT
    assert mode(mode="cross_lingual") == CROSS_LINGUAL
    with pytest.raises(EngineError, match="mode_not_supported"):
        mode(mode="singing")


def texts(text: str, characters: int = 80, language: str = "") -> list[str]:
    pieces = pieces_of(text, version=3, language=language, speed=1.0, characters=characters)
    return [piece.text for piece in pieces]


def test_a_piece_is_at_most_eighty_characters_and_nothing_is_lost() -> None:
    text = "这是一个没有标点的句子它一直说下去" * 12 + "。" + "今天天气很好，我们去公园散步吧！" * 8
    parts = texts(text)
    assert max(map(len, parts)) <= 80
    assert "".join(parts) == text
    assert texts("今天天气很好，我们去公园散步吧！" * 8)[0] == "今天天气很好，我们去公园散步吧！"


def test_letters_are_counted_as_the_tokens_that_they_make() -> None:
    text = "The quick brown fox jumps over the lazy dog while the rain falls. " * 8
    parts = texts(text)
    assert 80 < max(map(len, parts)) <= 240
    assert " ".join(parts).split() == text.split()


def test_pauses_follow_the_end_of_each_piece_but_the_last() -> None:
    text = (
        "今天天气很好我们去公园散步吧然后再去看看书。\n" + "明天再说吧现在已经很晚了大家都要回家休息了。" * 3
    )
    pieces = pieces_of(text, version=3, language="zh", speed=2.0, characters=60)
    assert len(pieces) > 2
    assert {piece.pause_ms for piece in pieces[1:-1]} <= {160}
    assert pieces[-1].pause_ms == 0


@pytest.mark.parametrize("text", ["", " \n", "……！？", "<|>|"])
def test_a_text_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(EngineError) as refused:
        texts(text)
    assert (refused.value.code, refused.value.blame) == ("text_unspeakable", "user")


def test_japanese_is_read_in_katakana_and_kanji_are_refused() -> None:
    assert texts("きょうは ヨイ テンキ デス。") == ["キョウハ ヨイ テンキ デス。"]
    with pytest.raises(EngineError) as refused:
        texts("今日は良い天気です。")
    assert (refused.value.code, refused.value.blame) == ("text_needs_kana", "user")
    with pytest.raises(EngineError, match="text_needs_kana"):
        texts("東京。", language="ja")
    assert texts("东京。") == ["东京。"]


def test_annotations_are_written_as_each_version_knows_them() -> None:
    text = "我[h][ào]学[pause 1s]，[laughter]他笑了[1]。"
    three = pieces_of(text, version=3, language="zh", speed=2.0, characters=80)
    assert [(piece.text, piece.pause_ms) for piece in three] == [
        ("我[h][ào]学", 500),
        ("，[laughter]他笑了 1 。", 0),
    ]
    two = pieces_of(text, version=2, language="zh", speed=1.0, characters=80)
    assert two[0].text.startswith("我")
    assert "[" not in two[0].text
    assert two[1].text.startswith("，[laughter]")


def test_a_pause_alone_is_silence_and_nothing_is_asked_of_the_model() -> None:
    pieces = pieces_of("你好。[pause 2s]……[pause 1s]", version=3, language="zh", speed=1.0, characters=80)
    assert [piece.text for piece in pieces if piece.text] == ["你好。"]
    assert sum(piece.pause_ms for piece in pieces) == 3000


def test_version_2_is_asked_for_a_dialect_in_its_own_words() -> None:
    def told(key: str, version: int) -> str:
        sentence = INSTRUCTIONS[key].sentence
        before = prompt_for(INSTRUCT, version=version, transcript="", instruction=sentence).before
        assert before is not None
        return before.removesuffix(END)

    assert told("dialect-sichuan", 2) == "用四川话说这句话"
    assert told("dialect-sichuan", 3) == "You are a helpful assistant. 请用四川话表达。"
    assert told("emotion-sad", 2) == "请非常伤心地说一句话。"
