"""Roman numerals."""

from __future__ import annotations

import re
from typing import Final

_WELL_FORMED: Final = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_VALUES: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def roman_value(numeral: str) -> int:
    """Return what a well-formed Roman numeral (capitals) is worth; 0 for anything else."""
    if not numeral or not _WELL_FORMED.fullmatch(numeral):
        return 0
    values = [_VALUES[letter] for letter in numeral]
    return sum(
        -value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True)
    )
