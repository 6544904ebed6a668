"""Codes of vouchers: easy to read out and to type, and a typing error is told from a code that does not exist. Pure."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from typing import Final

from billing.errors import VoucherMistyped

# Nothing that is taken for something else: no 0 and O, no 1 and I. 32 signs, 5 bits each.
ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
# 75 random bits, and one sign that is computed from them.
RANDOM_SIGNS: Final = 15
GROUP: Final = 4
START_SIGNS: Final = 8
# x^5 + x^2 + 1, by which the field of 32 elements is reckoned; 2 generates it.
_POLYNOMIAL: Final = 0b100101


def new_code() -> str:
    """A code in groups, such as "7KQM-XW3P-…"."""
    signs = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_SIGNS))
    return grouped(signs + _check_sign(signs))


def grouped(signs: str) -> str:
    return "-".join(signs[start : start + GROUP] for start in range(0, len(signs), GROUP))


def _check_sign(signs: str) -> str:
    """Each sign times its own power of 2 in the field, summed: no single wrong sign and no two that changed places
    keep the sum."""
    total = 0
    for sign in signs:
        total = _doubled(total ^ ALPHABET.index(sign))
    return ALPHABET[total]


def _doubled(element: int) -> int:
    doubled = element << 1
    return doubled ^ _POLYNOMIAL if doubled & 0b100000 else doubled


def normal_code(typed: str) -> str:
    """The code's signs as they are hashed, whatever case, spaces, dashes and full-width letters they were typed with.

    Raises VoucherMistyped: too long or short, a sign that no code has, or a check sign that does not fit.
    """
    # A whole book is not normalized first.
    if len(typed) > 100:
        raise VoucherMistyped
    plain = unicodedata.normalize("NFKC", typed).upper()
    signs = "".join(sign for sign in plain if sign not in "-–—_ \t\r\n")
    if len(signs) != RANDOM_SIGNS + 1 or any(sign not in ALPHABET for sign in signs):
        raise VoucherMistyped
    if _check_sign(signs[:-1]) != signs[-1]:
        raise VoucherMistyped
    return signs


def code_hash(signs: str) -> str:
    """What is stored of a code. 75 random bits cannot be guessed back from it, so it needs no salt."""
    return hashlib.sha256(signs.encode()).hexdigest()
