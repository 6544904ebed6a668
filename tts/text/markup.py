"""Markdown and SSML in a customer's text: what is honoured, what is left out, and what is refused.

The rule. A text that begins with `<speak` is an SSML document; every other text is plain, and may be Markdown.

SSML (W3C 1.1), as a document or tag by tag in a plain text:
- `<break time="500ms"/>`, `<break strength="strong"/>` become a pause of at most 10 s; `<p>` and `<s>` end a paragraph
  or a sentence; `<emphasis>` becomes `<strong>` where what it holds is short enough. Of a `<strong>` over more than 60
  characters, here as everywhere, the tags are left out: that much is no stress.
- `<sub alias="…">` is spoken as its alias. `<phoneme ph="…">` with alphabet `pinyin` or `arpabet` (also under the names
  that other services use) is spoken so; with another alphabet what it holds is read.
- Every other tag, known or not, is left out, and what it holds is read. `<audio>`, `<metadata>` and `<desc>` are left
  out whole. Comments and instructions are left out. The five entities of XML and character references are what
  they stand for in a document; no other entity exists: there is no way to define one, since a document type is refused.
- A document has to be well-formed; the place of the first fault is told. In a plain text only SSML's own tags are tags,
  alone or in pairs, and one that is not closed stands for itself.

Markdown in a plain text, where it cannot be anything else:
- the marks of headings, quotations, bullets, tables, rules and code fences are left out, what they mark is read;
- emphasis and code inside a line, `**bold**`, `*so*`, `__bold__`, `~~gone~~` and `code`: the marks are left out;
- of a link or a picture its text is read, its address is not.

Nothing of an annotation (`tts.text.annotations`) is touched.
"""

from __future__ import annotations

import re
from typing import Final

from tts.text.alignment import Edit, Edited, edit
from tts.text.annotations import whole_spans
from tts.text.rewriting import Claims
from tts.text.ssml import ssml_edits

_DOCUMENT: Final = re.compile(r"\s*(?:<\?xml[^<>]*\?>\s*)?<(?:speak\b|!DOCTYPE\b|!ENTITY\b)")
_FENCE: Final = re.compile(r"^[ \t]{0,3}(?:```|~~~)[^\n`]*$", re.MULTILINE)
_RULE: Final = r"^[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$"
_TABLE_HEAD: Final = r"^\|?(?:[ \t]{0,20}:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?$"
# Headings, quotations, bullets, things to do, one in the other.
_MARKS: Final = r"#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?=\S)(?:\[[ xX]\][ \t]+)?"
_LINES: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (_RULE, _TABLE_HEAD, rf"^[ \t]{{0,12}}(?:{_MARKS})(?:{_MARKS})*", r"[ \t]{1,8}#{1,6}$")
)
_TABLE_ROW: Final = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
_LINK: Final = re.compile(
    r"(!?\[)([^\[\]\n]{0,300})(\]\([^()\s]{0,2000}(?:\([^()\s]*\)[^()\s]*)?(?: \"[^\"\n]*\")?\))"
)
_AUTOLINK: Final = re.compile(r"(<)((?:https?://|mailto:)[^<>\s]{1,2000})(>)")
_EMPHASIS: Final = (
    re.compile(r"(?<![\\*])(\*\*\*?)(?=\S)([^*\n]{1,500}?)(?<=\S)(\1)(?!\*)"),
    re.compile(r"(?<![\w\\_])(__)(?=\S)([^_\n]{1,500}?)(?<=\S)(__)(?![\w_])"),
    re.compile(r"(?<!\\)(~~)(?=\S)([^~\n]{1,500}?)(?<=\S)(~~)"),
    re.compile(r"(?<![\w\\*)])(\*)(?=[^\s*])([^*\n]{1,500}?)(?<=[^\s*])(\*)(?![\w*])"),
    re.compile(r"(?<![\w\\_])(_)(?=[^\s_])([^_\n]{1,500}?)(?<=[^\s_])(_)(?![\w_])"),
    re.compile(r"(?<![\\`])(`{1,2})(?!`)([^`\n]{1,500}?)(\1)(?!`)"),
)


def is_ssml_document(text: str) -> bool:
    """Whether the text is to be read as SSML, well-formed or not."""
    return _DOCUMENT.match(text) is not None


def is_fence(line: str) -> bool:
    """Whether a line opens or closes a block of code: what looks like a heading in one is none."""
    return _FENCE.fullmatch(line) is not None


def without_markup(text: str) -> Edited:
    """Return the text with its markup turned into annotations and pauses, or left out.

    Raises:
        SsmlFault: a document is not well-formed, or has a document type.
    """
    if is_ssml_document(text):
        return edit(text, ssml_edits(text, is_document=True))
    edits = ssml_edits(text, is_document=False) if "<" in text else []
    return edit(text, _markdown_edits(text, edits) if _may_be_markdown(text) else edits)


def _may_be_markdown(text: str) -> bool:
    return any(mark in text for mark in "*_`~#>|[<-+=")


def _markdown_edits(text: str, edits: list[Edit]) -> list[Edit]:
    claims = Claims(text)
    for one in edits:
        claims.claim_exactly(one)
    for start, end in whole_spans(text):
        if claims.is_free(start, end):
            claims.claim_exactly(Edit(start, end, text[start:end]))
    for pattern in (_FENCE, *_LINES):
        for match in pattern.finditer(text):
            _leave_out(claims, match.start(), match.end())
    for row in _TABLE_ROW.finditer(text):
        _open_row(claims, text, row)
    for pattern in (_LINK, _AUTOLINK, *_EMPHASIS):
        for match in pattern.finditer(text):
            if all(claims.is_free(*match.span(group)) for group in (1, 3)):
                _leave_out(claims, *match.span(1))
                _leave_out(claims, *match.span(3))
    return [one for one in claims.edits if text[one.start : one.end] != one.replacement]


def _leave_out(claims: Claims, start: int, end: int) -> None:
    if end > start and claims.is_free(start, end):
        claims.claim_exactly(Edit(start, end, ""))


def _open_row(claims: Claims, text: str, row: re.Match[str]) -> None:
    """The cells of a row, with a pause between them."""
    for at in range(row.start(), row.end()):
        if text[at] == "|" and text[at - 1 : at] != "\\" and claims.is_free(at, at + 1):
            is_inner = row.start(1) <= at < row.end(1)
            claims.claim_exactly(Edit(at, at + 1, ", " if is_inner else ""))
