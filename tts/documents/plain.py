"""Plain text and Markdown as blocks.

Headings are those of Markdown (`# Title`, or a line underlined with = or -, outside of code). A text without any has
its chapters where a line is nothing but their name (`tts.documents.chapters`), if there are two of them.

Left out: YAML at the beginning, HTML comments, Markdown's footnotes. Every line is a paragraph; lines that were broken
at a fixed width are joined again. What else Markdown marks is left as it is: `tts.text.markup` reads it.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from tts.documents.blocks import Block, Document, document_of
from tts.documents.chapters import title_line
from tts.documents.encodings import decode
from tts.documents.refusal import Reason, Refused

_FRONT_MATTER: Final = re.compile(r"\A---\n(?:[^\n]*\n){1,100}?---\n")
_TITLE_IN_IT: Final = re.compile(r"^title:[ \t]*[\"']?([^\n\"']{1,200})", re.MULTILINE)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_FOOTNOTE: Final = re.compile(r"^\[\^[^\]\n]{1,60}\]:[^\n]*(?:\n(?:[ \t]{2,}[^\n]*))*", re.MULTILINE)
_FOOTNOTE_MARK: Final = re.compile(r"\[\^[^\]\n]{1,60}\]")
_FENCE: Final = re.compile(r"^[ ]{0,3}(```|~~~)")
_ATX: Final = re.compile(r"^[ ]{0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_UNDERLINE: Final = re.compile(r"^[ ]{0,3}(?:(={3,})|(-{3,}))[ \t]*$")

# What is above chapters, among the lines that tts.documents.chapters takes for titles.
_PART: Final = re.compile(r"第[^章回]{1,9}[卷部篇集幕].*|part\b.*", re.IGNORECASE)
_FEWEST_CHAPTERS: Final = 2
# Widths at which text files were broken; a paragraph's last line is shorter.
_BROKEN_AT: Final = (50, 90)


def read_plain(content: bytes) -> Document:
    """Raises Refused: ENCODING_UNKNOWN, FORMAT_NOT_SUPPORTED, UNREADABLE, NO_TEXT, TOO_LONG, TOO_COMPLEX."""
    text, encoding = decode(content)
    _refuse_binary(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    title = ""
    if front := _FRONT_MATTER.match(text):
        if named := _TITLE_IN_IT.search(front[0]):
            title = named[1].strip()
        text = text[front.end() :]
    text = _FOOTNOTE_MARK.sub("", _FOOTNOTE.sub("", _COMMENT.sub("", text)))
    lines = text.split("\n")
    blocks = _markdown(lines)
    if not any(block.level for block in blocks):
        blocks = _by_chapter_lines(_unbroken(lines))
    return document_of(blocks, title=title, encoding=encoding)


def _refuse_binary(text: str) -> None:
    controls = sum(sign < " " and sign not in "\n\r\t\f\x1a\x1b" for sign in text[:100_000])
    if controls > len(text[:100_000]) // 1000:
        raise Refused(Reason.UNREADABLE)
    head = text[:1000].lstrip().lower()
    if head.startswith(("{\\rtf", "<!doctype html", "<html", "%pdf", "%!ps")):
        raise Refused(Reason.FORMAT_NOT_SUPPORTED)


def _markdown(lines: list[str]) -> list[Block]:
    blocks: list[Block] = []
    fence = ""
    for line in lines:
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        heading = None if fence else _ATX.match(line)
        underline = None if fence else _UNDERLINE.match(line)
        if heading:
            blocks.append(Block(heading[2], len(heading[1])))
        elif underline and blocks and blocks[-1].text.strip() and not blocks[-1].level:
            blocks[-1] = Block(blocks[-1].text, 1 if underline[1] else 2)
        else:
            blocks.append(Block(line))
    # Only - underlines nothing for certain: a text with no other heading has rules, not chapters.
    if not any(block.level == 1 for block in blocks) and not any(map(_ATX.match, lines)):
        blocks = [Block(block.text) for block in blocks]
    return blocks


def _by_chapter_lines(lines: list[str]) -> list[Block]:
    blocks = []
    for line in lines:
        name = line.strip(" \t\u3000")
        level = 0 if title_line(name) is None else 1 if _PART.fullmatch(name) else 2
        blocks.append(Block(name, level))
    if sum(block.level == 2 for block in blocks) < _FEWEST_CHAPTERS:
        return [Block(block.text) for block in blocks]
    return blocks


def _unbroken(lines: list[str]) -> list[str]:
    """The lines, those joined that were broken at a fixed width: most lines that another one follows are near it."""
    followed = [line for line, after in itertools.pairwise(lines) if line.strip() and after.strip()]
    near = [line for line in followed if _BROKEN_AT[0] <= len(line.rstrip()) <= _BROKEN_AT[1]]
    if len(followed) < 5 or len(near) < 0.7 * len(followed):
        return lines
    joined: list[str] = []
    is_open = False
    for line in lines:
        if is_open and line.strip():
            joined[-1] = f"{joined[-1].rstrip()} {line.strip()}"
        else:
            joined.append(line)
        is_open = bool(line.strip()) and len(line.rstrip()) >= _BROKEN_AT[0]
    return joined
