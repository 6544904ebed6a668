"""Numbers as they are said in Mandarin.

cn2an does the counting too, but knows neither 两 nor 幺, and takes 0.3 s to import where a page waits.
"""

from __future__ import annotations

from typing import Final

DIGITS: Final = "零一二三四五六七八九"
LONGEST_COUNT: Final = 13
# Longer than that without commas, and a number is an account or an order: nobody says "一千三百八十一亿…".
_LONGEST_WITHOUT_COMMAS: Final = 8
_GROUPS: Final = ("", "万", "亿", "万亿")
_PLACES: Final = ("", "十", "百", "千")


def spell_digits(digits: str, *, telephone: bool = False) -> str:
    """Return the digits one by one: 2024 is 二零二四. On the telephone 1 is 幺. Other characters are left out."""
    spoken = "".join(DIGITS[int(digit)] for digit in digits if digit.isdecimal())
    return spoken.replace("一", "幺") if telephone else spoken


def spell_integer(digits: str) -> str:
    """Return a whole number as it is counted; very long ones and those with zeros before them digit by digit."""
    if len(digits) > LONGEST_COUNT or (len(digits) > 1 and int(digits[0]) == 0):
        return spell_digits(digits)
    value = int(digits)
    if value == 0:
        return DIGITS[0]
    spoken = ""
    needs_zero = False
    groups = [value // 10_000**power % 10_000 for power in range(len(_GROUPS))]
    for power in range(len(_GROUPS) - 1, -1, -1):
        group = groups[power]
        if group == 0:
            needs_zero = bool(spoken)
            continue
        if spoken and (needs_zero or group < 1000):
            spoken += DIGITS[0]
        # 万亿 is said once: 1,2000,0000,0000 is 一万两千亿.
        name = "万" if power == 3 and groups[2] else _GROUPS[power]
        spoken += _spell_group(group) + name
        needs_zero = False
    return spoken.removeprefix("一") if spoken.startswith("一十") else spoken


def _spell_group(group: int) -> str:
    spoken = ""
    for place in range(3, -1, -1):
        digit = group // 10**place % 10
        if digit:
            if spoken and group // 10 ** (place + 1) % 10 == 0:
                spoken += DIGITS[0]
            spoken += DIGITS[digit] + _PLACES[place]
    return spoken


def spell_number(number: str) -> str:
    """Return a number, its sign and thousands' commas understood: -1,234.50 is 负一千二百三十四点五零."""
    sign = "负" if number[0] in "-−" else "正" if number[0] == "+" else ""
    whole, point, fraction = number.lstrip("+-−").replace(",", "").partition(".")
    is_long = "," not in number and len(whole) > _LONGEST_WITHOUT_COMMAS
    spoken = sign + (spell_digits(whole) if is_long else spell_integer(whole or "0"))
    return spoken + ("点" + spell_digits(fraction) if point and fraction else "")


def spell_amount(number: str) -> str:
    """Return a number before a measure word: 2 is 两, everything else as it is counted."""
    return "两" if number == "2" else spell_number(number)
