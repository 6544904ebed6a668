"""How a text may be read: the sentences that CosyVoice was trained to obey, which it does not read aloud, and what an
instruction in a customer's own words may be, for engines that take any.

Loaded by pages and by the API; an engine is given the sentence itself. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

MAX_FREE_CHARACTERS: Final = 200
"""Of a free instruction. Longer ones engines tend to read aloud."""

KINDS: Final = ("dialect", "emotion", "speed", "volume", "role")
_BAR = re.compile(r"<\s*\||\|\s*>")


@dataclass(frozen=True)
class Instruction:
    """`sentence` is what the model is told, word for word. `kind`: dialect, emotion, speed, volume or role."""

    key: str
    kind: str
    sentence: str
    english_name: str
    chinese_name: str


# key, Chinese name, English name. The first 17 are the list of CosyVoice3's own code (cosyvoice/utils/common.py). Its
# page speaks of "18+" and names none that is not among them; CosyVoice2's page names Wuhan beside these.
_DIALECTS = (
    ("cantonese", "广东话", "Cantonese"),
    ("northeastern", "东北话", "Northeastern Mandarin"),
    ("gansu", "甘肃话", "Gansu dialect"),
    ("guizhou", "贵州话", "Guizhou dialect"),
    ("henan", "河南话", "Henan dialect"),
    ("hubei", "湖北话", "Hubei dialect"),
    ("hunan", "湖南话", "Hunan dialect"),
    ("jiangxi", "江西话", "Jiangxi dialect"),
    ("minnan", "闽南话", "Minnan (Hokkien)"),
    ("ningxia", "宁夏话", "Ningxia dialect"),
    ("shanxi", "山西话", "Shanxi dialect"),
    ("shaanxi", "陕西话", "Shaanxi dialect"),
    ("shandong", "山东话", "Shandong dialect"),
    ("shanghai", "上海话", "Shanghainese"),
    ("sichuan", "四川话", "Sichuanese"),
    ("tianjin", "天津话", "Tianjin dialect"),
    ("yunnan", "云南话", "Yunnan dialect"),
    ("wuhan", "武汉话", "Wuhan dialect"),
)

_ALL = (
    *(
        Instruction(f"dialect-{key}", "dialect", f"请用{chinese}表达。", english, chinese)
        for key, chinese, english in _DIALECTS
    ),
    Instruction("emotion-happy", "emotion", "请非常开心地说一句话。", "Happy", "开心"),
    Instruction("emotion-sad", "emotion", "请非常伤心地说一句话。", "Sad", "伤心"),
    Instruction("emotion-angry", "emotion", "请非常生气地说一句话。", "Angry", "生气"),
    Instruction("speed-slow", "speed", "请用尽可能慢地语速说一句话。", "As slowly as possible", "尽可能慢"),
    Instruction("speed-fast", "speed", "请用尽可能快地语速说一句话。", "As fast as possible", "尽可能快"),
    Instruction(
        "volume-loud",
        "volume",
        "Please say a sentence as loudly as possible.",
        "As loudly as possible",
        "尽可能大声",
    ),
    Instruction(
        "volume-soft", "volume", "Please say a sentence in a very soft voice.", "Very softly", "非常轻声"
    ),
    Instruction("role-peppa", "role", "我想体验一下小猪佩奇风格，可以吗？", "Like Peppa Pig", "小猪佩奇风格"),
    Instruction("role-robot", "role", "你可以尝试用机器人的方式解答吗？", "Like a robot", "机器人"),
)

INSTRUCTIONS: Mapping[str, Instruction] = MappingProxyType({one.key: one for one in _ALL})


def sentence_of(key: str) -> str:
    """The sentence of an instruction; "" for none. Raises KeyError for one that there is not."""
    return INSTRUCTIONS[key].sentence if key else ""


# In which CosyVoice2 is asked for a dialect (its example.py); its other sentences are the same.
_VERSION_2: Mapping[str, str] = MappingProxyType(
    {f"请用{chinese}表达。": f"用{chinese}说这句话" for _, chinese, _ in _DIALECTS}
)


def version_2_sentence(sentence: str) -> str:
    """What CosyVoice2 is told in place of a sentence of the catalogue; any other sentence as it is."""
    return _VERSION_2.get(sentence, sentence)


def without_marks(text: str) -> str:
    """The text without the halves of `<|…|>`, with which a customer could end a model's prompt, or be one endless
    piece."""
    while True:
        # Again, as long as taking one out brings the halves of another together.
        cleaned = _BAR.sub(" ", text)
        if cleaned == text:
            return cleaned
        text = cleaned


def clean_free_instruction(text: str) -> str:
    """A free instruction as it is stored and told: one line, without control characters and `<|…|>`. "" for none."""
    printable = "".join(sign if sign.isprintable() else " " for sign in without_marks(text))
    return " ".join(without_marks(printable).split())
