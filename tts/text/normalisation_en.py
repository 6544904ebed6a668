"""What stands in an English text in digits and signs, as it is said. Dates in digits: month first, where it can be."""

from __future__ import annotations

import re
from typing import Final

from tts.text.normalisation_web import Signs, web_rules
from tts.text.numbers_words import cardinal, decimal, digit_words, ordinal, year
from tts.text.rewriting import Rule, rule
from tts.text.roman import roman_value

NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_TO: Final = r"\s?[-–—~]\s?"
SIGNS: Final = Signs(
    words={".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", ":": "colon", "?": "question mark",
           "=": "equals", "&": "and", "#": "hash", "+": "plus", "%": "percent", "~": "tilde"},
    digits=digit_words,
)  # fmt: skip
# One of them, and several.
UNITS: Final = {
    "km/h": ("kilometer per hour", "kilometers per hour"), "m/s": ("meter per second", "meters per second"),
    "mph": ("mile per hour", "miles per hour"), "kWh": ("kilowatt hour", "kilowatt hours"),
    "km²": ("square kilometer", "square kilometers"), "m²": ("square meter", "square meters"),
    "m³": ("cubic meter", "cubic meters"), "sq ft": ("square foot", "square feet"),
    "°C": ("degree Celsius", "degrees Celsius"), "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"), "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"), "km": ("kilometer", "kilometers"), "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"), "nm": ("nanometer", "nanometers"), "µm": ("micrometer", "micrometers"),
    "kg": ("kilogram", "kilograms"), "mg": ("milligram", "milligrams"), "lbs": ("pound", "pounds"), "lb": ("pound",
    "pounds"),
    "oz": ("ounce", "ounces"), "ft": ("foot", "feet"), "ml": ("milliliter", "milliliters"), "mL": ("milliliter",
    "milliliters"),
    "GB": ("gigabyte", "gigabytes"), "MB": ("megabyte", "megabytes"), "TB": ("terabyte", "terabytes"),
    "kB": ("kilobyte", "kilobytes"), "KB": ("kilobyte", "kilobytes"), "GHz": ("gigahertz", "gigahertz"),
    "MHz": ("megahertz", "megahertz"), "kHz": ("kilohertz", "kilohertz"), "Hz": ("hertz", "hertz"),
    "kW": ("kilowatt", "kilowatts"), "dB": ("decibel", "decibels"), "ms": ("millisecond", "milliseconds"),
    "mi": ("mile", "miles"), "g": ("gram", "grams"), "m": ("meter", "meters"), "L": ("liter", "liters"),
    "W": ("watt", "watts"), "V": ("volt", "volts"),
}  # fmt: skip
_UNIT: Final = "|".join(map(re.escape, sorted(UNITS, key=len, reverse=True)))
_CURRENCIES: Final = {
    "$": ("dollar", "dollars", "cent", "cents"), "US$": ("dollar", "dollars", "cent", "cents"),
    "USD": ("dollar", "dollars", "cent", "cents"), "€": ("euro", "euros", "cent", "cents"),
    "EUR": ("euro", "euros", "cent", "cents"), "£": ("pound", "pounds", "penny", "pence"),
    "GBP": ("pound", "pounds", "penny", "pence"), "¥": ("yuan", "yuan", "fen", "fen"), "￥": ("yuan", "yuan", "fen",
    "fen"),
    "CNY": ("yuan", "yuan", "fen", "fen"), "RMB": ("yuan", "yuan", "fen", "fen"), "₹": ("rupee", "rupees", "paisa",
    "paise"),
    "₩": ("won", "won", "jeon", "jeon"), "₽": ("ruble", "rubles", "kopeck", "kopecks"),
}  # fmt: skip
_CURRENCY: Final = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_FRACTIONS: Final = {"2": ("half", "halves"), "4": ("quarter", "quarters")}
_SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_OPERATORS: Final = {
    "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "≈": "is about", "≠": "is not equal to",
    "≤": "is at most", "≥": "is at least", "<": "is less than", ">": "is greater than", "*": "times",
    "±": "plus or minus",
}  # fmt: skip
_NUMBERED: Final = (
    r"Chapter|Part|Volume|Vol\.|Act|Scene|Section|Book|Phase|Type|Title|Article|Appendix|Figure|Table|War|Level|Class|"
    r"Stage"
)
_REGENTS: Final = (
    "Louis|Henry|Elizabeth|Charles|George|Edward|William|James|Philip|Napoleon|Paul|Benedict|Pius|Leo|Gregory|Richard|"
    "Catherine|Alexander|Nicholas|Frederick|Wilhelm|Innocent|Ramesses|Ptolemy|Mary|Peter|Ivan|Alfonso|Ferdinand"
)


def number(digits: str) -> str:
    """Return a number with thousands' commas, a sign or a point, in words."""
    sign = "minus " if digits[0] in "-−" else "plus " if digits[0] == "+" else ""
    whole, _, fraction = digits.lstrip("+-−").replace(",", "").partition(".")
    return sign + decimal(whole, fraction, "en", "point")


def _is_one(digits: str) -> bool:
    return digits.lstrip("+-−") == "1"


def _date(match: re.Match[str]) -> str:
    return f"{_MONTHS[int(match[2]) - 1]} {ordinal(str(int(match[3])))}, {year(match[1])}"


def _slashed_date(match: re.Match[str]) -> str | None:
    first, second = int(match[1]), int(match[2])
    month, day = (first, second) if first <= 12 else (second, first)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{_MONTHS[month - 1]} {ordinal(str(day))}, {year(match[3])}"


def _month_day(match: re.Match[str]) -> str:
    spoken = f"{_month(match[1])} {ordinal(str(int(match[2])))}"
    return f"{spoken}, {year(match[3])}" if match[3] else spoken


def _day_month(match: re.Match[str]) -> str:
    spoken = f"the {ordinal(str(int(match[1])))} of {_month(match[2])}"
    return f"{spoken}, {year(match[3])}" if match[3] else spoken


def _month(name: str) -> str:
    return next(month for month in _MONTHS if month.lower().startswith(name.rstrip(".").lower()[:3]))


def _time(match: re.Match[str]) -> str:
    hour, minutes = cardinal(str(int(match[1]))), match[2]
    half = " ".join(re.findall("[apm]", (match[4] or "").lower())).upper()
    if int(minutes) == 0 and not match[3]:
        spoken = (
            f"{hour} {half}"
            if half
            else f"{hour} o'clock"
            if 0 < int(match[1]) <= 12
            else f"{hour} hundred hours"
        )
        return spoken.strip()
    minute = (
        f"oh {cardinal(minutes[1])}" if minutes[0] == "0" and minutes != "00" else cardinal(str(int(minutes)))
    )
    seconds = f" and {cardinal(str(int(match[3])))} seconds" if match[3] else ""
    return f"{hour} {minute}{seconds} {half}".strip()


def _money(match: re.Match[str]) -> str:
    one, several, small_one, small_several = _CURRENCIES[match[1]]
    amount, magnitude = match[2].replace(",", ""), match[3]
    if magnitude:
        return f"{number(amount)} {_MAGNITUDES.get(magnitude.strip(), magnitude.strip())} {several}"
    whole, _, fraction = amount.partition(".")
    spoken = f"{cardinal(whole)} {one if _is_one(whole) else several}"
    if len(fraction) != 2:
        return f"{number(amount)} {several}" if fraction else spoken
    if int(fraction) == 0:
        return spoken
    cents = f"{cardinal(str(int(fraction)))} {small_one if int(fraction) == 1 else small_several}"
    return cents if int(whole) == 0 else f"{spoken} and {cents}"


_MAGNITUDES: Final = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "bn": "billion",
    "B": "billion",
}


def _unit(match: re.Match[str]) -> str:
    one, several = UNITS[match[2]]
    return f"{number(match[1])} {one if _is_one(match[1]) else several}"


def _fraction(match: re.Match[str]) -> str | None:
    over, under = match[1], match[2]
    if int(under) < 2:
        return None
    if under in _FRACTIONS:
        one, several = _FRACTIONS[under]
    else:
        one = ordinal(under)
        several = one + "s"
    return f"{cardinal(over)} {one if _is_one(over) else several}" if int(under) <= 100 else None


def _power(match: re.Match[str]) -> str:
    base = number(match[1]) if match[1][0].isdigit() else match[1]
    exponent = match[2].translate(_SUPERSCRIPTS)
    if exponent in ("2", "3"):
        return f"{base} {'squared' if exponent == '2' else 'cubed'}"
    return f"{base} to the power of {number(exponent)}" if exponent.strip("-") else base


def _telephone(match: re.Match[str]) -> str:
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(digit_words(group) for group in re.findall(r"\d+", match[0]))


def _range(match: re.Match[str]) -> str:
    return f"{_bare(match[1])} to {_bare(match[2])}{' percent' if match[3] else ''}"


def _bare(digits: str) -> str:
    """A number that stands alone: four digits are read as a year is."""
    is_year = len(digits) == 4 and digits.isdecimal() and 1100 <= int(digits) <= 2099 and digits[1:] != "000"
    return year(digits) if is_year else number(digits)


def _dotted(match: re.Match[str]) -> str:
    parts = match[2].split(".")
    is_address = len(parts) == 4 and all(len(part) <= 3 and int(part) < 256 for part in parts)
    spell = digit_words if is_address else cardinal
    return ("version " if match[1] else "") + " point ".join(map(spell, parts))


def _decade(match: re.Match[str]) -> str:
    spoken = year(match[1]) if len(match[1]) == 4 else cardinal(match[1])
    return spoken[:-1] + "ies" if spoken.endswith("y") else spoken + "s"


def _roman(match: re.Match[str]) -> str | None:
    value = roman_value(match[2])
    return f"{match[1]} {cardinal(str(value))}" if value else None


def _regent(match: re.Match[str]) -> str | None:
    value = roman_value(match[2])
    return f"{match[1]} the {ordinal(str(value))}" if value else None


def _joined_to_letters(match: re.Match[str]) -> str:
    """A380 digit by digit, MP3 and iPhone15 as numbers: from three digits on one by one."""
    return digit_words(match[0]) if len(match[0]) >= 3 else cardinal(match[0])


_N = f"({NUMBER})"
RULES: Final[list[Rule]] = [
    *web_rules(SIGNS),
    rule(
        r"(?<![\d.-])([12]\d{3})[-/](0?[1-9]|1[0-2])[-/](0?[1-9]|[12]\d|3[01])(?![\d-])",
        _date,
        needs="-/",
    ),
    rule(r"(?<![\d./])(\d{1,2})[/](\d{1,2})[/]([12]\d{3})(?![\d/])", _slashed_date, needs="/"),
    rule(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? ([12]\d{{3}})\b)?(?![.:]?\d)", _month_day),
    rule(
        rf"(?<![\d.])(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?![a-z])(?:,? ([12]\d{{3}})\b)?",
        _day_month,
    ),
    rule(r"(?<![\d.])\+\d{1,3}[ -]?\(?\d{1,5}\)?(?:[ -]\d{2,5}){1,5}(?!\d)", _telephone, needs="+"),
    rule(r"(?<![\d.])\+\d{7,15}(?!\d)", _telephone, needs="+"),
    rule(r"(?<![\d.])(?:\(\d{3}\) ?|\d{3}[ -])\d{3}-\d{4}(?!\d)", _telephone, needs="-"),
    rule(r"(?<![\d.-])\d{3}-\d{4}(?![\d-])", _telephone, needs="-"),
    rule(r"(?<=[\dm])\s?[-–—]\s?(?=\d{1,2}:\d)", lambda m: " to ", needs=":"),
    rule(
        r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?: ?([ap]\.?m\b\.?))?",
        _time,
        ignore_case=True,
        needs=":",
    ),
    rule(
        r"(?<![\d.:])(\d{1,2})()() ?([ap]\.?m\b\.?)",
        lambda m: f"{cardinal(m[1])} {m[4][0].upper()} M",
        ignore_case=True,
    ),
    rule(rf"({_CURRENCY})\s?{_N}((?: (?:thousand|million|billion|trillion)|k|K|M|m|B|bn)\b)?", _money),
    rule(rf"(?<![\d.]){_N}%?{_TO}{_N}(\s?%)", _range, needs="%"),
    rule(rf"([-−+]?(?:{NUMBER}))\s?%", lambda m: f"{number(m[1])} percent", needs="%"),
    rule(r"(?<![\d.])(v|V|version )?((?:\d{1,4}\.){2,}\d{1,4})(?![\d.]*\d)", _dotted),
    rule(r"(?<!\w)[vV](\d{1,3}(?:\.\d+)?)(?![\w.]*\d)", lambda m: f"version {number(m[1])}"),
    rule(r"(?<!\d)['’]?(\d{2}0|[1-9]0|[12]\d{2}0)s\b", _decade),
    rule(r"(?<![\d.,])(\d{1,9})(?:st|nd|rd|th)\b", lambda m: ordinal(m[1])),
    rule(rf"(?<![\d.]){_N}{_TO}{_N}()(?![\d.]*\d|[-–]\d|/)", _range),
    rule(rf"(?<![\d.\w])([-−]?(?:{NUMBER}))\s?({_UNIT})(?![A-Za-z])", _unit),
    rule(r"(?<![\d/.])(\d{1,4})/(\d{1,4})(?![\d/.])", _fraction, needs="/"),
    rule(r"(\d+(?:\.\d+)?|[A-Za-z])([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", _power, needs="⁰¹²³⁴⁵⁶⁷⁸⁹⁻"),
    rule(r"(?<![\d.])(\d+(?:\.\d+)?|[A-Za-z])\^(-?\d{1,4})(?!\d)", _power, needs="^"),
    rule(r"(?:№|\bNo\.|\bNr\.|#)\s?(\d{1,9})(?!\d)", lambda m: f"number {cardinal(m[1])}", needs="№.#"),
    rule(rf"\b({_NUMBERED}) ([IVXLC]{{1,7}})\b", _roman, needs="IVXLC"),
    rule(rf"\b({_REGENTS}) ([IVX]{{1,6}})\b(?!\.)", _regent, needs="IVX"),
    rule(r"(?<=[A-Za-z])\d+(?![\d.]*\d)", _joined_to_letters),
    rule(r"(?<=[A-Za-z])-(?=\d)", lambda m: " "),
    rule(rf"(?<![\w)])[-−+](?:{NUMBER})", lambda m: number(m[0]), needs="-−+"),
    rule(NUMBER, lambda m: _bare(m[0])),
    rule(
        r"(?<=[\w)])\s?([+=×÷≈≠≤≥<>*±])\s?(?=[\w(+-])",
        lambda m: f" {_OPERATORS[m[1]]} ",
        needs="+=×÷≈≠≤≥<>*±",
    ),
    rule(r"(?<=\w)\s?&\s?(?=\w)", lambda m: " and ", needs="&"),
    rule(r"[≈≠≤≥±]", lambda m: f" {_OPERATORS[m[0]]} ", needs="≈≠≤≥±"),
]
