"""Numbers and signs in Mandarin text, written out in characters."""

from __future__ import annotations

import re
from collections.abc import Callable

import cn2an

# Longer than that, and a number is a telephone or an account: nobody says "一千三百八十一亿…".
LONGEST_COUNT = 8
DIGITS = dict(zip("0123456789", "零一二三四五六七八九", strict=True))
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"

UNITS = {
    "℃": "摄氏度",
    "°C": "摄氏度",
    "°": "度",
    "km": "公里",
    "kg": "公斤",
    "cm": "厘米",
    "mm": "毫米",
}
CURRENCIES = {"¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}
SIGNS = {"+": "加", "=": "等于", "×": "乘以", "÷": "除以", "&": "和", "≈": "约等于", "<": "小于", ">": "大于"}


def spell_digits(digits: str) -> str:
    """Digit by digit: 2024 is 二零二四."""
    return "".join(DIGITS[digit] for digit in digits)


def spell_number(number: str) -> str:
    """A number as it is counted: 12,345.60 is 一万二千三百四十五点六零; a long one digit by digit."""
    whole, _, fraction = number.replace(",", "").partition(".")
    if len(whole) > LONGEST_COUNT or (len(whole) > 1 and whole[0] == "0"):
        spoken = spell_digits(whole)
    else:
        spoken = str(cn2an.an2cn(whole, "low"))
    return spoken + ("点" + spell_digits(fraction) if fraction else "")


def _currency(match: re.Match[str]) -> str:
    return spell_number(match[2]) + CURRENCIES[match[1]]


def _date(match: re.Match[str]) -> str:
    return (
        f"{spell_digits(match[1])}年{spell_number(str(int(match[2])))}月{spell_number(str(int(match[3])))}日"
    )


def _clock(match: re.Match[str]) -> str:
    hours, minutes = int(match[1]), int(match[2])
    return spell_number(str(hours)) + ("点整" if minutes == 0 else f"点{spell_number(str(minutes))}分")


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<!\d)((?:19|20)\d\d)[-/](0?[1-9]|1[0-2])[-/](0?[1-9]|[12]\d|3[01])(?!\d)"), _date),
    (re.compile(r"\d+(?:\.\d+){2,}"), lambda match: "点".join(map(spell_number, match[0].split(".")))),
    (re.compile(r"(?<!\d)(\d{2,4})(?=年)"), lambda match: spell_digits(match[1])),
    (re.compile(r"(?<!\d)([01]?\d|2[0-4]):([0-5]\d)(?!\d)"), _clock),
    (re.compile(rf"({NUMBER})\s*%"), lambda match: "百分之" + spell_number(match[1])),
    (re.compile(rf"([¥$€£])\s*({NUMBER})"), _currency),
    (
        re.compile(r"(?<![\d/])(\d+)/(\d+)(?![\d/])"),
        lambda m: f"{spell_number(m[2])}分之{spell_number(m[1])}",
    ),
    (re.compile(rf"({NUMBER})\s*[-~～]\s*(?={NUMBER})"), lambda match: spell_number(match[1]) + "到"),
    (re.compile(rf"(?<![A-Za-z\d-])-({NUMBER})"), lambda match: "负" + spell_number(match[1])),
    (re.compile(NUMBER), lambda match: spell_number(match[0])),
)
_UNIT = re.compile(rf"(?<=\d)\s*({'|'.join(map(re.escape, UNITS))})(?![A-Za-z])")
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))


def write_out(text: str) -> str:
    """The text with numbers, dates, times, amounts and signs in characters, as they are said in Mandarin."""
    text = _UNIT.sub(lambda match: UNITS[match[1]], text)
    for pattern, spoken in _RULES:
        text = pattern.sub(spoken, text)
    return _SIGN.sub(lambda match: SIGNS[match[0]], text)
