"""A segment's text as people read it: without what only says how it is spoken."""

from __future__ import annotations

import re
from typing import Final

from tts.text.annotations import Kind, tokens

_BRACKETS: Final = str.maketrans("", "", "[]")
_SPACE_BEFORE_SIGN: Final = re.compile(r" (?=[.,!?;:…。，、！？；：])")
_ESCAPED: Final = re.compile(r"\\(?=[\[<])")


def shown_text(text: str) -> str:
    """Return the text without sounds, pauses and tags; a syllable in pinyin and a word in ARPAbet stay, without their
    brackets, where nothing else stands for them."""
    shown: list[str] = []
    for token in tokens(text):
        if token.kind is Kind.TEXT:
            shown.append(_ESCAPED.sub("", token.value))
        elif token.kind is Kind.PINYIN:
            shown.append(text[token.start : token.end].translate(_BRACKETS))
        elif token.kind is Kind.ARPABET:
            shown.append(
                "".join(sign for sign in token.value.lower() if not sign.isdigit()).replace(" ", "-")
            )
    return _SPACE_BEFORE_SIGN.sub("", " ".join("".join(shown).split()))
