"""What an engine is given for a text with annotations. Called in the engine process, last of all.

    parts = for_engine(request.text, EngineForm.COSYVOICE3)

Cut first, then translate: a text that is too long for one call of the model is cut with `annotations.whole_spans` (or
`segmentation.segment`, which keeps to them), and each piece is translated by itself.

- COSYVOICE3: `[h][ào]`, `[R][IH1]…`, sounds and spans as its tokenizer has them.
- COSYVOICE2: sounds and spans. A syllable in pinyin becomes a character that is read so; ARPAbet is dropped.
- PLAIN, for models that know no annotations: a syllable as for COSYVOICE2, the rest is dropped.

Whatever a customer typed, no part holds a marker (`<|…|>`), nor a bracket or tag that was not meant as an annotation:
the tokenizers would take `[B]` for a phoneme. Clean for Python 3.10, no Django.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tts.text.annotation_inventory import NEUTRAL_TONE, split_syllable, with_tone
from tts.text.annotations import Kind, Token, tokens
from tts.text.homophones import homophone


class EngineForm(enum.Enum):
    """Which annotations an engine understands, and how they are written for it."""

    COSYVOICE3 = "cosyvoice3"
    COSYVOICE2 = "cosyvoice2"
    PLAIN = "plain"


@dataclass(frozen=True)
class Part:
    """What the model speaks in one go ("" where there is only silence), and the silence to add after it.

    The silence is that of normal speed; an engine divides it by the speed.
    """

    text: str
    pause_after_ms: int = 0


# Finals that CosyVoice3's tokenizer lacks, by what sounds most alike. Others of the neutral tone take the fourth.
_V3_FINALS: Final = {
    **{("ve", tone): "vè" for tone in range(1, 6)},
    ("v", 1): "ǘ", ("v", 5): "ǜ", ("er", 1): "ér",
}  # fmt: skip
_V3_NO_NEUTRAL: Final = frozenset({"er", "ia", "iang", "iao", "ie", "iong", "ua", "uai", "uan", "ui"})

_MARKER: Final = re.compile(r"<\|[^<>|]*\|>|<\||\|>")
_ORDINARY_BRACKETS: Final = re.compile(r"\\?[\[\]<>]")
_SPACES: Final = re.compile(r"[ \t]{2,}")


def for_engine(text: str, form: EngineForm) -> list[Part]:
    """Return what the engine speaks one after the other. Never raises; [] where there is nothing at all.

    Spans that are open at a pause are closed before it and opened again after it.
    """
    parts: list[Part] = []
    written: list[str] = []
    opened: list[str] = []
    for token in tokens(text):
        if token.kind is Kind.PAUSE:
            _end_part(parts, written, opened, form, pause_ms=int(token.value))
            written += [f"<{name}>" for name in opened if form is not EngineForm.PLAIN]
            continue
        if token.kind is Kind.OPEN:
            opened.append(token.value)
        elif token.kind is Kind.CLOSE and opened:
            opened.pop()
        written.append(_written(token, form))
    _end_part(parts, written, opened, form, pause_ms=0)
    return parts


def _end_part(
    parts: list[Part], written: list[str], opened: Iterable[str], form: EngineForm, *, pause_ms: int
) -> None:
    closings = [f"</{name}>" for name in reversed(list(opened)) if form is not EngineForm.PLAIN]
    text = _neutralised("".join([*written, *closings])).strip()
    written.clear()
    if text or pause_ms:
        parts.append(Part(text, pause_ms))


def _neutralised(text: str) -> str:
    """Without markers: taking one out may put the halves of another together."""
    while (cleaned := _MARKER.sub(" ", text)) != text:
        text = cleaned
    return _SPACES.sub(" ", text)


def _written(token: Token, form: EngineForm) -> str:
    if token.kind is Kind.TEXT:
        return _ORDINARY_BRACKETS.sub(" ", _neutralised(token.value))
    if token.kind is Kind.PINYIN:
        return v3_pinyin(token.value) if form is EngineForm.COSYVOICE3 else homophone(token.value)
    if token.kind is Kind.ARPABET:
        return v3_arpabet(token.value) if form is EngineForm.COSYVOICE3 else ""
    if form is EngineForm.PLAIN:
        return ""
    if token.kind is Kind.SOUND:
        return f"[{token.value}]"
    return f"<{token.value}>" if token.kind is Kind.OPEN else f"</{token.value}>"


def v3_pinyin(syllable: str) -> str:
    """Return a syllable ("hao4") in CosyVoice3's tokens: [h][ào]."""
    letters, tone = syllable[:-1], int(syllable[-1])
    initial, final = split_syllable(letters)
    written = _V3_FINALS.get((final, tone))
    if written is None:
        is_missing = tone == NEUTRAL_TONE and final in _V3_NO_NEUTRAL
        written = with_tone(final, 4 if is_missing else tone)
    return (f"[{initial}]" if initial else "") + f"[{written}]"


def v3_arpabet(phonemes: str) -> str:
    """Return the phonemes ("K AE1 T") in CosyVoice3's tokens."""
    return "".join(f"[{phoneme}]" for phoneme in phonemes.split())
