"""The form of an API key. Pure: no database.

`vp_live_`, 30 random characters of base 62 (178 bits), and 6 more that hold the CRC-32 of those 30, also in
base 62. Whoever finds a key in a file or a log can tell offline that it is a real one of ours, and a
mistyped key is refused without asking the database.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib
from typing import Final

KEY_PREFIX: Final = "vp_live_"
RANDOM_LENGTH: Final = 30
# 62^6 is more than 2^32: six characters hold any CRC-32.
CHECKSUM_LENGTH: Final = 6
KEY_LENGTH: Final = len(KEY_PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
# What is kept in clear, so that a person recognises the key: 6 of the 30 leave 142 bits unknown.
SHOWN_LENGTH: Final = len(KEY_PREFIX) + 6
ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_key() -> str:
    random = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return KEY_PREFIX + random + checksum(random)


def checksum(random: str) -> str:
    """The CRC-32 of `random` in base 62, most significant character first."""
    rest = zlib.crc32(random.encode("ascii"))
    characters = []
    for _ in range(CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))


def is_well_formed(key: str) -> bool:
    """True for what `new_key` may have made. Says nothing about whether the key exists."""
    if len(key) != KEY_LENGTH or not key.isascii() or not key.startswith(KEY_PREFIX):
        return False
    random, given = key[len(KEY_PREFIX) : -CHECKSUM_LENGTH], key[-CHECKSUM_LENGTH:]
    return given == checksum(random)


def key_sha256(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode("ascii")).hexdigest()
