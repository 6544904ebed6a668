"""Reading SSML tag by tag, with our own scanner: no parser, so that no entity is expanded and nothing is fetched.

The rule stands in `tts.text.markup`.
"""

from __future__ import annotations

import enum
import html
import re
from dataclasses import dataclass
from typing import Final

from tts.text.alignment import Edit
from tts.text.annotation_inventory import MAX_PAUSE_MS, MAX_SPAN_CHARACTERS
from tts.text.annotations import Kind, tokens
from tts.text.rewriting import Claims


class Fault(enum.Enum):
    """What is wrong with a document."""

    TAG = "tag"
    NOT_CLOSED = "not_closed"
    NOT_OPENED = "not_opened"
    CROSSED = "crossed"
    ENTITY = "entity"
    DOCUMENT_TYPE = "document_type"
    AFTER_END = "after_end"


class SsmlFault(Exception):
    """A document that is not well-formed: what, and which characters. `name` is a tag's, or ""."""

    def __init__(self, fault: Fault, start: int, end: int) -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.start = start
        self.end = end


@dataclass(frozen=True)
class _Tag:
    name: str
    attributes: dict[str, str]
    start: int
    end: int
    is_closing: bool
    is_empty: bool


# SSML's own names; in a plain text only these are tags.
_NAMES: Final = frozenset(
    {
        "speak", "break", "prosody", "emphasis", "say-as", "phoneme", "voice", "audio", "mark", "lang", "sub", "p", "s",
        "lexicon", "lookup", "metadata", "meta", "desc", "token", "w", "par", "seq", "media",
    }
)  # fmt: skip
# Single letters stand for other things in a plain text.
_NAMES_IN_PLAIN: Final = _NAMES - {"p", "s", "w", "meta", "media", "token"}
_OURS: Final = frozenset({"strong", "laughter"})
_LEFT_OUT_WHOLE: Final = frozenset({"audio", "metadata", "desc"})
# Every part is bounded, and no two can match the same characters: a hostile text costs no more than another one.
_MARKUP: Final = re.compile(
    r"<!--.{0,1000}?-->|<\?[^<>]{0,2000}\?>|<!\[CDATA\[(?P<data>.{0,1000}?)\]\]>|<!DOCTYPE\b|<!ENTITY\b"
    r"|<(?P<closing>/?)(?P<name>[A-Za-z][A-Za-z0-9._:-]{0,40})(?P<attributes>(?:\s[^<>]*|/)?)>"
    r"|&(?P<entity>[#A-Za-z0-9]{1,12});",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(r"""([A-Za-z_:][\w:.-]*)\s*=\s*("[^"<]*"|'[^'<]*')""")
_STRAY: Final = re.compile(r"<(?!/?(?:strong|laughter)>)")
# Apart, so that no tag comes out of what stands for a sign.
_BRACKET: Final = re.compile(r"[<>\[\]]")
_TIME: Final = re.compile(r"\+?(\d{1,6}(?:\.\d{1,3})?)\s*(ms|s)", re.IGNORECASE)
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_STRENGTHS_MS: Final = {"none": 0, "x-weak": 100, "weak": 200, "medium": 400, "strong": 700, "x-strong": 1200}
_PINYIN: Final = frozenset({"pinyin", "x-pinyin", "x-amazon-pinyin", "sapi", "x-microsoft-sapi", "py"})
_ARPABET: Final = frozenset({"arpabet", "x-arpabet", "cmu", "cmu-arpabet", "x-cmu"})


def ssml_edits(text: str, *, is_document: bool) -> list[Edit]:
    """Return what the tags of a text become.

    Raises:
        SsmlFault: in a document only.
    """
    return _Reader(text, is_document).run()


class _Reader:
    """One pass over the tags, with those that are open."""

    def __init__(self, text: str, is_document: bool) -> None:
        self._text = text
        self._is_document = is_document
        self._edits: list[Edit] = []
        self._opened: list[_Tag] = []
        self._skip_until = 0
        self._has_root = False
        self._ends = _ends_of_tags(text)
        # Where the tags begin that became stress.
        self._stressed: set[int] = set()
        # Where the closing tags of stress begin that is too long.
        self._too_long: set[int] = set()

    def run(self) -> list[Edit]:
        for match in _MARKUP.finditer(self._text):
            if match.start() < self._skip_until:
                self._check_inside_skipped(match)
                continue
            if match["name"] is not None:
                self._read_tag(_tag(match))
            elif self._is_document or match[0].startswith(("<!--", "<?xml")):
                self._read_other(match)
        if self._is_document:
            self._check_end()
        return [one for one in self._edits if one.start < one.end or one.replacement]

    def _read_other(self, match: re.Match[str]) -> None:
        if match[0].upper().startswith(("<!DOCTYPE", "<!ENTITY")):
            raise SsmlFault(Fault.DOCUMENT_TYPE, match.start(), match.end())
        self._replace(match.start(), match.end(), self._meaning(match))

    def _meaning(self, match: re.Match[str]) -> str:
        if match["data"] is not None:
            return _BRACKET.sub(r" \g<0> ", match["data"])
        name = match["entity"]
        if name is None:
            return ""
        if name in _ENTITIES:
            return _BRACKET.sub(r" \g<0> ", _ENTITIES[name])
        meaning = html.unescape(f"&{name};") if name.startswith("#") else ""
        if len(meaning) != 1:
            raise SsmlFault(Fault.ENTITY, match.start(), match.end())
        return _BRACKET.sub(r" \g<0> ", meaning)

    def _read_tag(self, tag: _Tag) -> None:
        if tag.name in _OURS:
            self._read_stress(tag)
            return
        if not self._is_document:
            if tag.name in _NAMES_IN_PLAIN:
                self._read_known(tag)
            return
        if not self._opened:
            if self._has_root or tag.name != "speak" or tag.is_closing:
                raise SsmlFault(Fault.AFTER_END if self._has_root else Fault.NOT_OPENED, tag.start, tag.end)
            self._has_root = True
        self._read_known(tag)

    def _read_stress(self, tag: _Tag) -> None:
        """A whole paragraph in bold is no stress: the tags are left out, as those of `<emphasis>` are."""
        end = None if tag.is_closing or tag.name != "strong" else self._ends.get(tag.start)
        if end is not None and end[0] - tag.end > MAX_SPAN_CHARACTERS:
            self._too_long.add(end[0])
            self._replace(tag.start, tag.end, "")
        elif tag.is_closing and tag.start in self._too_long:
            self._replace(tag.start, tag.end, "")

    def _read_known(self, tag: _Tag) -> None:
        if tag.is_closing:
            self._close(tag)
        elif tag.name == "break":
            self._replace(tag.start, tag.end, _pause(tag))
            if self._is_document and not tag.is_empty:
                self._opened.append(tag)
        elif tag.is_empty:
            self._replace(tag.start, tag.end, " " if tag.name in ("p", "s") else "")
        else:
            self._open(tag)

    def _open(self, tag: _Tag) -> None:
        end = self._ends.get(tag.start)
        if end is None:
            if self._is_document:
                raise SsmlFault(Fault.NOT_CLOSED, tag.start, tag.end)
            self._replace(tag.start, tag.end, "")
            return
        spoken = _instead(tag)
        if spoken is not None:
            self._replace(tag.start, end[1], spoken)
            self._skip_until = end[1]
            return
        self._opened.append(tag)
        stressed = tag.name == "emphasis" and tag.attributes.get("level") != "none"
        if stressed and self._is_short(tag.end, end[0]):
            self._stressed.add(tag.start)
            self._replace(tag.start, tag.end, "<strong>")
        else:
            self._replace(tag.start, tag.end, "")

    def _is_short(self, start: int, end: int) -> bool:
        """Whether the stretch has words, no tags, and no more of it than can be stressed."""
        if self._text.find("<", start, end) >= 0:
            return False
        return 0 < len(self._text[start:end].strip()) <= MAX_SPAN_CHARACTERS

    def _close(self, tag: _Tag) -> None:
        if self._opened and self._opened[-1].name == tag.name:
            opening = self._opened.pop()
            ends = {"p": "\n\n", "s": "\n"}
            self._replace(
                tag.start, tag.end, "</strong>" if opening.start in self._stressed else ends.get(tag.name, "")
            )
            return
        if self._is_document:
            is_open = any(opening.name == tag.name for opening in self._opened)
            raise SsmlFault(Fault.CROSSED if is_open else Fault.NOT_OPENED, tag.start, tag.end)
        self._replace(tag.start, tag.end, "")

    def _check_inside_skipped(self, match: re.Match[str]) -> None:
        if match[0].upper().startswith(("<!DOCTYPE", "<!ENTITY")) and self._is_document:
            raise SsmlFault(Fault.DOCUMENT_TYPE, match.start(), match.end())

    def _check_end(self) -> None:
        """What is open at the end, and `<` that begins no tag. A bare `&` is forgiven."""
        for tag in self._opened:
            raise SsmlFault(Fault.NOT_CLOSED, tag.start, tag.end)
        claims = Claims(self._text)
        for one in self._edits:
            claims.claim_exactly(one)
        for match in _STRAY.finditer(self._text):
            if claims.is_free(match.start(), match.start() + 1):
                raise SsmlFault(Fault.TAG, match.start(), match.start() + 1)

    def _replace(self, start: int, end: int, replacement: str) -> None:
        self._edits.append(Edit(start, end, replacement))


def _ends_of_tags(text: str) -> dict[int, tuple[int, int]]:
    """By where a tag begins: where its closing tag begins and ends."""
    ends: dict[int, tuple[int, int]] = {}
    opened: dict[str, list[int]] = {}
    for match in _MARKUP.finditer(text):
        if match["name"] is None or match["attributes"].endswith("/"):
            continue
        starts = opened.setdefault(match["name"].lower(), [])
        if not match["closing"]:
            starts.append(match.start())
        elif starts:
            ends[starts.pop()] = match.span()
    return ends


def _tag(match: re.Match[str]) -> _Tag:
    attributes = {
        name.lower(): html.unescape(value[1:-1]) for name, value in _ATTRIBUTE.findall(match["attributes"])
    }
    return _Tag(
        name=match["name"].lower(),
        attributes=attributes,
        start=match.start(),
        end=match.end(),
        is_closing=bool(match["closing"]),
        is_empty=match["attributes"].endswith("/"),
    )


def _pause(tag: _Tag) -> str:
    time = _TIME.fullmatch(tag.attributes.get("time", "").strip())
    if time:
        pause_ms = round(float(time[1]) * (1 if time[2].lower() == "ms" else 1000))
    else:
        pause_ms = _STRENGTHS_MS.get(
            tag.attributes.get("strength", "medium").lower(), _STRENGTHS_MS["medium"]
        )
    return f"[pause {min(pause_ms, MAX_PAUSE_MS)}ms]" if pause_ms else " "


def _instead(tag: _Tag) -> str | None:
    """What is spoken instead of a tag and what it holds; None: what it holds."""
    if tag.name in _LEFT_OUT_WHOLE:
        return " "
    if tag.name == "sub" and tag.attributes.get("alias", "").strip():
        # The alias is a text, and no annotation or tag of its own.
        return _BRACKET.sub(" ", tag.attributes["alias"])
    if tag.name == "phoneme":
        return _phonemes(tag.attributes.get("alphabet", "").lower(), tag.attributes.get("ph", ""))
    return None


def _phonemes(alphabet: str, written: str) -> str | None:
    """Annotations for an attribute's phonemes; None where there is one that is not known."""
    if alphabet in _PINYIN:
        # Other services write "hao 4" or "ni3-hao3".
        syllables = re.findall(r"[a-zü:\u0101-\u01dc]+ ?\d?", written.lower().replace("u:", "ü"))
        annotation = "".join(f"[{syllable.replace(' ', '')}]" for syllable in syllables)
    elif alphabet in _ARPABET:
        annotation = "".join(f"[{phoneme}]" for phoneme in written.upper().replace(".", " ").split())
    else:
        return None
    found = tokens(annotation)
    return annotation if found and all(token.kind in (Kind.PINYIN, Kind.ARPABET) for token in found) else None
