"""What stands in a Chinese text in digits and signs, as it is said in Mandarin."""

from __future__ import annotations

import re
from typing import Final

from tts.text.normalisation_web import Signs, web_rules
from tts.text.numbers_zh import spell_amount, spell_digits, spell_integer, spell_number
from tts.text.rewriting import Rule, rule

NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_TO: Final = r"\s?(?:[-–—~～]|至|到)\s?"

SIGNS: Final = Signs(
    words={".": "点", "/": "斜杠", "-": "杠", "_": "下划线", "@": "艾特", ":": "冒号", "?": "问号", "=": "等于",
           "&": "和", "#": "井号", "+": "加", "%": "百分号", "~": "波浪号"},
    digits=spell_digits,
)  # fmt: skip
UNITS: Final = {
    "km/h": "公里每小时", "m/s": "米每秒", "kWh": "千瓦时", "mAh": "毫安时", "km²": "平方公里", "m²": "平方米",
    "m³": "立方米", "cm²": "平方厘米", "cm³": "立方厘米", "℃": "摄氏度", "°C": "摄氏度", "℉": "华氏度",
    "°F": "华氏度",
    "°": "度", "km": "公里", "kg": "公斤", "cm": "厘米", "mm": "毫米", "nm": "纳米", "μm": "微米", "µm": "微米",
    "mg": "毫克",
    "ml": "毫升", "mL": "毫升", "GB": "GB", "MB": "MB", "TB": "TB", "GHz": "吉赫兹", "MHz": "兆赫兹", "kHz": "千赫兹",
    "Hz": "赫兹", "kW": "千瓦", "dB": "分贝", "ms": "毫秒", "g": "克", "m": "米", "L": "升", "t": "吨", "h": "小时",
    "s": "秒",
    "W": "瓦", "V": "伏",
}  # fmt: skip
_UNIT: Final = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
# Of temperatures one says 零下, not 负.
_DEGREES: Final = frozenset({"℃", "°C", "℉", "°F"})
_CURRENCIES: Final = {
    "¥": "元", "￥": "元", "RMB": "元", "CNY": "元", "$": "美元", "US$": "美元", "USD": "美元", "HK$": "港元",
    "NT$": "新台币", "€": "欧元", "EUR": "欧元", "£": "英镑", "₩": "韩元", "₽": "卢布", "₹": "卢比",
}  # fmt: skip
_CURRENCY: Final = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
# 2 before these is 两. 2万 and 2千 too; 2百 and 2十 are 二.
_MEASURES: Final = (
    "个|位|只|条|张|本|件|台|辆|家|名|次|天|年|周|小时|分钟|秒钟|块|斤|岁|种|句|章节|层|杯|碗|瓶|支|枝|座|间|间|双|对|套|份|颗|棵|头|匹|架|艘|"
    "把|根|片|滴|篇|首|部|场|顿|遍|趟|回|批|群|组|排|行|步|口|米|公里|公斤|升|吨|倍|万|千|亿|点钟|下|元|人|种"
)
_POWERS: Final = {"²": "平方", "³": "立方"}
_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_OPERATORS: Final = {
    "+": "加", "=": "等于", "×": "乘以", "÷": "除以", "≈": "约等于", "≠": "不等于", "≤": "小于等于", "≥": "大于等于",
    "<": "小于", ">": "大于", "±": "正负", "*": "乘以",
}  # fmt: skip


def _date(match: re.Match[str]) -> str:
    day = f"{spell_integer(str(int(match[3])))}日" if match[3] else ""
    return f"{spell_digits(match[1])}年{spell_integer(str(int(match[2])))}月{day}"


def _clock(hours: str, minutes: str, seconds: str | None = None) -> str:
    hour = "零" if int(hours) == 0 else spell_amount(str(int(hours)))
    if int(minutes) == 0 and not seconds:
        return f"{hour}点"
    minute = ("零" if len(minutes) == 2 and minutes[0] == "0" and int(minutes) else "") + spell_integer(
        str(int(minutes))
    )
    return f"{hour}点{minute}分" + (f"{spell_integer(str(int(seconds)))}秒" if seconds else "")


def _time(match: re.Match[str]) -> str:
    return _clock(match[1], match[2], match[3])


def _year(match: re.Match[str]) -> str | None:
    digits = match[1]
    if len(digits) == 4 and digits[0] in "12":
        return spell_digits(digits)
    # 98年 is a year, 10年 a time; a month after it tells.
    return spell_digits(digits) if len(digits) == 2 and (match[2] or int(digits) >= 60) else None


def _percent(match: re.Match[str]) -> str:
    share = "百分之" if match[2] in "%％" else "千分之"
    sign = "负" if match[1][0] in "-−" else ""
    return f"{sign}{share}{spell_number(match[1].lstrip('+-−'))}"


def _range(match: re.Match[str]) -> str:
    share = "百分之" if match[3] else ""
    return f"{share}{spell_number(match[1])}到{share}{spell_number(match[2])}"


def _money(match: re.Match[str]) -> str:
    if _CURRENCIES[match[1]] == "元" and not match[3]:
        return _yuan(match[2])
    return f"{spell_number(match[2])}{match[3] or ''}{_CURRENCIES[match[1]]}"


def _yuan(number: str) -> str:
    """12.50 is 十二元五角, 12.05 十二元零五分, 0.5 五角. With more than two places it is a rate: a decimal."""
    whole, _, fraction = number.replace(",", "").partition(".")
    if not fraction or len(fraction) > 2:
        return f"{spell_number(number)}元"
    tenths, hundredths = fraction[0], fraction[1:].rstrip("0")
    said = f"{spell_number(whole)}元" if int(whole) or not fraction.strip("0") else ""
    if tenths != "0":
        said += f"{spell_amount(tenths) if not said else spell_digits(tenths)}角"
    elif said and hundredths:
        said += "零"
    return said + (
        f"{spell_amount(hundredths) if not said else spell_digits(hundredths)}分" if hundredths else ""
    )


def _money_after(match: re.Match[str]) -> str:
    return f"{spell_number(match[1])}{match[2] or ''}{_CURRENCIES[match[3]]}"


def _telephone(match: re.Match[str]) -> str:
    plus = "加" if match[0].startswith("+") else ""
    groups = [spell_digits(group, telephone=True) for group in re.findall(r"\d+", match[0])]
    return plus + "，".join(groups) if len(groups) < 5 else plus + "".join(groups)


def _fraction(match: re.Match[str]) -> str | None:
    if int(match[2]) == 0:
        return None
    return f"{spell_integer(match[2])}分之{spell_integer(match[1])}"


def _power(match: re.Match[str]) -> str:
    exponent = match[2].translate(_SUPERSCRIPTS)
    name = _POWERS.get(match[2]) or f"{spell_number(exponent) if exponent.strip('-') else ''}次方"
    base = spell_number(match[1]) if match[1][0].isdigit() else match[1]
    return f"{base}的{name}"


def _dotted(match: re.Match[str]) -> str:
    parts = match[1].split(".")
    is_address = len(parts) == 4 and all(len(part) <= 3 and int(part) < 256 for part in parts)
    spell = spell_digits if is_address else spell_integer
    return "点".join(map(spell, parts))


def _unit(match: re.Match[str]) -> str:
    if match[2] in _DEGREES and match[1][0] in "-−":
        return f"零下{spell_number(match[1][1:])}{UNITS[match[2]]}"
    amount = (
        spell_amount(match[1]) if not match[2].isascii() or match[2].isalpha() else spell_number(match[1])
    )
    return f"{amount}{UNITS[match[2]]}"


def _joined_to_letters(match: re.Match[str]) -> str:
    """A380 is 三八零, iPhone15 十五: from three digits on one by one."""
    return spell_digits(match[0]) if len(match[0]) >= 3 else spell_integer(match[0])


_N = f"({NUMBER})"
RULES: Final[list[Rule]] = [
    *web_rules(SIGNS),
    rule(
        r"(?<![\d.])([12]\d{3})[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12]\d|3[01])(?![\d.])日?",
        _date,
        needs="-/.",
    ),
    rule(r"(?<![\d.-])([12]\d{3})-(0[1-9]|1[0-2])()(?![\d.-])", _date, needs="-"),
    # 手机, +86, 固定电话, 400.
    rule(r"(?<![\d.])(?:\+?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}(?!\d)", _telephone),
    rule(r"(?<![\d.])(?:\+86[ -]?)?\(?0\d{2,3}\)?[ -]\d{7,8}(?:-\d{1,5})?(?!\d)", _telephone),
    rule(r"(?<![\d.])[48]00[ -]\d{3,4}[ -]\d{3,4}(?!\d)", _telephone, needs="- "),
    rule(r"(?<![\d.])\+\d{1,3}(?:[ -]\d{2,5}){2,5}(?!\d)", _telephone, needs="+"),
    rule(
        r"(?<=电话|热线|拨打|号码|尾号|报警|客服)[:：为是 ]?\d{3,}(?!\d)", _telephone, needs="话线打码号警服"
    ),
    rule(r"(?<=[\d年月日号天点分时秒度元%])\s?[-–—~～]\s?(?=\d{1,2}[:：]\d)", lambda m: "到", needs=":："),
    rule(r"(?<=[年月日号天点分时秒度元])\s?[-–—~～]\s?(?=\d)", lambda m: "到"),
    rule(r"(?<!\d)([01]?\d|2[0-4])[:：]([0-5]\d)(?:[:：]([0-5]\d))?(?![\d:：])", _time, needs=":："),
    rule(
        r"(?<![\d.])(\d{1,4})[:：](\d{1,4})(?!\d)",
        lambda m: f"{spell_integer(m[1])}比{spell_integer(m[2])}",
        needs=":：",
    ),
    rule(
        r"(?<![\d.])(\d{4})(?:[-–—~～]|至|到)(\d{4})(?=年)",
        lambda m: f"{spell_digits(m[1])}到{spell_digits(m[2])}",
    ),
    rule(r"(?<![\d.])(\d{2}|\d{4})(?=年(?:(\d{1,2}月|代))?)", _year, needs="年"),
    rule(rf"(?<![\d.]){_N}[%％]?{_TO}{_N}([%％])", _range),
    rule(rf"([-−+]?(?:{NUMBER}))\s?([%％‰])", _percent, needs="%％‰"),
    rule(rf"({_CURRENCY})\s?{_N}([万亿千百]?)元?", _money),
    rule(rf"(?<![\d.]){_N}([万亿]?)\s?({_CURRENCY})", _money_after),
    # A price with two places; in a range the places stay.
    rule(r"(?<![\d.,\-–—~～至到])((?:\d{1,3}(?:,\d{3})+|\d+)\.\d{2})\s?元", lambda m: _yuan(m[1])),
    rule(r"(?<![\d.])[vV]?((?:\d{1,4}\.){2,}\d{1,4})(?![\d.])", _dotted),
    rule(rf"(?<![\d.]){_N}{_TO}{_N}()(?![\d.]|[-–]\d)", _range),
    rule(rf"(?:(?<=[^\w])|(?<=[\u4e00-\u9fff])|^)([-−](?:{NUMBER}))\s?({_UNIT})(?![A-Za-z])", _unit),
    rule(rf"(?<![\d.]){_N}\s?({_UNIT})(?![A-Za-z])", _unit),
    rule(r"(?<![\d/.])(\d{1,4})/(\d{1,4})(?![\d/.])", _fraction, needs="/"),
    rule(r"(\d+(?:\.\d+)?|[A-Za-z])([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", _power, needs="⁰¹²³⁴⁵⁶⁷⁸⁹⁻"),
    rule(r"(?<![\d.])(\d+(?:\.\d+)?|[A-Za-z])\^(-?\d{1,4})(?!\d)", _power, needs="^"),
    rule(rf"(?<![\d.])2(?=(?:{_MEASURES}))", lambda m: "两"),
    rule(r"(?:№|(?<![A-Za-z])No\.|#)\s?(\d{1,8})(?!\d)", lambda m: f"{spell_integer(m[1])}号", needs="№.#"),
    rule(r"(?<=[A-Za-z])\d+(?![\d.])", _joined_to_letters),
    rule(r"(?<=[A-Za-z])-(?=\d)", lambda m: " "),
    rule(
        rf"(?:(?<=[^\w)])|(?<=[\u4e00-\u9fff])|^)[-−+](?:{NUMBER})", lambda m: spell_number(m[0]), needs="-−+"
    ),
    rule(NUMBER, lambda m: spell_number(m[0])),
    rule(r"(?<=[\w)])\s?([+=×÷≈≠≤≥<>*±])\s?(?=[\w(+-])", lambda m: _OPERATORS[m[1]], needs="+=×÷≈≠≤≥<>*±"),
    rule(r"(?<=\d)\s?-\s?(?=\d)", lambda m: "减", needs="-"),
    rule(r"(?<=[\w])\s?&\s?(?=[\w])", lambda m: "和", needs="&"),
    rule(r"[≈≠≤≥±]", lambda m: _OPERATORS[m[0]], needs="≈≠≤≥±"),
]
