"""In which encoding a plain text is written: told by its marks, by its bytes, and last by what its words look like."""

from __future__ import annotations

import codecs
import re
from typing import Final

from charset_normalizer import from_bytes

from tts.documents.refusal import Reason, Refused

# Of text editors in the countries whose languages are spoken here, the likelier one first.
CANDIDATES: Final = ("gb18030", "big5", "shift_jis", "euc_jp", "cp949", "cp1252", "cp1251")
NAMES: Final = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "gb18030": "GB18030",
    "big5": "Big5",
    "shift_jis": "Shift_JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
    "cp1252": "Windows-1252",
    "cp1251": "Windows-1251",
}
# So much is enough to tell; all of it is decoded afterwards.
_LOOKED_AT_BYTES: Final = 64 * 1024
# The detector counts pairs of letters; shorter texts have too few.
_SHORT_BYTES: Final = 240
# The 3,755 most used characters and the signs, as GB 2312 has them.
_COMMON_CHINESE: Final = re.compile(rb"(?:[\x00-\x7f]|[\xa1-\xa3][\xa1-\xfe]|[\xb0-\xd7][\xa1-\xfe])*")
# A file with a few broken bytes is still the text that it is.
_MOST_BROKEN: Final = 0.001


def decode(content: bytes) -> tuple[str, str]:
    """Return the text and the encoding's name.

    Raises:
        Refused: ENCODING_UNKNOWN.
    """
    encoding, skipped = _marked(content)
    if not encoding:
        encoding = _unmarked(content)
    text = content[skipped:].decode(encoding, errors="replace")
    if text.count("\ufffd") > len(text) * _MOST_BROKEN:
        raise Refused(Reason.ENCODING_UNKNOWN)
    return text, NAMES[encoding]


def load_codecs() -> None:
    """Load what decoding needs: a process that is locked in cannot open files any more."""
    for name in NAMES:
        codecs.lookup(name)
    for name in CANDIDATES:
        from_bytes("这是一个例子，例子很短。".encode("gb18030"), cp_isolation=[name]).best()


def _marked(content: bytes) -> tuple[str, int]:
    if content.startswith(codecs.BOM_UTF8):
        return "utf-8", len(codecs.BOM_UTF8)
    if content.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", len(codecs.BOM_UTF16_LE)
    if content.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", len(codecs.BOM_UTF16_BE)
    return "", 0


def _unmarked(content: bytes) -> str:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        # A zero byte is valid UTF-8 and stands in no text: it is half a letter of UTF-16.
        return _utf_16(content) or "utf-8"
    if utf_16 := _utf_16(content):
        return utf_16
    head = content[:_LOOKED_AT_BYTES]
    if len(content) > len(head) and b"\n" in head:
        # No character is cut in two.
        head = head[: head.rindex(b"\n")]
    if len(head) <= _SHORT_BYTES and _COMMON_CHINESE.fullmatch(head):
        return "gb18030"
    best = from_bytes(head, cp_isolation=list(CANDIDATES)).best()
    return best.encoding if best is not None and best.encoding in NAMES else _first_that_fits(content)


def _utf_16(content: bytes) -> str:
    """UTF-16 without a mark: Latin letters and line ends leave every other byte empty."""
    head = content[: _LOOKED_AT_BYTES // 2 * 2]
    empty = [head[start::2].count(0) for start in (0, 1)]
    if len(content) % 2 or max(empty) * 50 < len(head):
        return ""
    encoding = "utf-16-be" if empty[0] > empty[1] else "utf-16-le"
    return encoding if min(empty) * 10 <= max(empty) else ""


def _first_that_fits(content: bytes) -> str:
    for encoding in CANDIDATES:
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    # A few broken bytes: what most of it is. `decode` looks how many.
    return "utf-8" if content.decode("utf-8", errors="replace").count("\ufffd") <= 5 else "gb18030"
