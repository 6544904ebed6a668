"""Word documents (docx) as blocks.

Headings are paragraphs whose style, or one that it is based on, is a heading or has an outline level, and those with an
outline level of their own. Of a table each row is a line with commas. Insertions are read; deletions, hidden text,
tables of contents, the small reading above characters, pictures, comments, footnotes, endnotes, headers and footers
(and with them page numbers) are left out. Text boxes are read where they are anchored.
"""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from tts.documents.archive import Archive, path_from
from tts.documents.blocks import Block, Document, document_of, tidy
from tts.documents.refusal import Reason, Refused
from tts.documents.xml_parts import attribute, local_name, parse_xml

CONTENT_TYPES: Final = "[Content_Types].xml"
_DOCUMENT: Final = "word/document.xml"
_SKIPPED: Final = frozenset(
    [
        "del",
        "movefrom",
        "instrtext",
        "deltext",
        "rt",
        "rubypr",
        "fallback",
        "sectpr",
        "tblpr",
        "trpr",
        "tcpr",
        "ppr",
        "rpr",
        "sdtpr",
    ]
)
_HEADING_NAME: Final = re.compile(r"(?:heading|标题|標題|überschrift|titre)\s*([1-6])", re.IGNORECASE)
_TITLE_NAMES: Final = frozenset({"title", "标题", "標題", "titel", "titre"})
_CONTENTS_NAME: Final = re.compile(r"(?:toc(?: heading|\s*\d)|目录\s*\d?|目錄\s*\d?)", re.IGNORECASE)
# A style's level: 0 an ordinary paragraph, 1 to 6 a heading.
_TITLE, _CONTENTS = -1, -2
_LONGEST_CHAIN: Final = 20


def is_docx(archive: Archive) -> bool:
    """Whether the archive is a Word document, by its parts."""
    return CONTENT_TYPES in archive and any(name.startswith("word/document") for name in archive.names)


def read_docx(archive: Archive) -> Document:
    """Raises Refused: UNREADABLE, ENCRYPTED, NO_TEXT, TOO_LONG, TOO_COMPLEX."""
    path = _main_part(archive)
    root = parse_xml(archive.read(path))
    reader = _Body(_style_levels(archive, path))
    blocks = reader.read(root)
    return document_of(blocks, title=reader.title)


def _main_part(archive: Archive) -> str:
    if "_rels/.rels" in archive:
        for relation in parse_xml(archive.read("_rels/.rels")):
            if attribute(relation, "Type").endswith("/officeDocument"):
                path = path_from("", attribute(relation, "Target").lstrip("/"))
                if path in archive:
                    return path
    if _DOCUMENT not in archive:
        raise Refused(Reason.UNREADABLE)
    return _DOCUMENT


def _style_levels(archive: Archive, document_path: str) -> dict[str, int]:
    """The level of every paragraph style by its id."""
    path = path_from(document_path, "styles.xml")
    if path not in archive:
        return {}
    own: dict[str, int | None] = {}
    based_on: dict[str, str] = {}
    for style in parse_xml(archive.read(path)).iter("{*}style"):
        key = attribute(style, "styleId")
        own[key] = _own_level(style)
        for parent in style.iterfind("{*}basedOn"):
            based_on[key] = attribute(parent, "val")
    return {key: _inherited(key, own, based_on) for key in own}


def _own_level(style: etree._Element) -> int | None:
    name = next((attribute(one, "val") for one in style.iterfind("{*}name")), "").strip().lower()
    if heading := _HEADING_NAME.fullmatch(name):
        return int(heading[1])
    if name in _TITLE_NAMES:
        return _TITLE
    if _CONTENTS_NAME.fullmatch(name):
        return _CONTENTS
    return _outline_level(style)


def _inherited(key: str, own: dict[str, int | None], based_on: dict[str, str]) -> int:
    for _step in range(_LONGEST_CHAIN):
        level = own.get(key)
        if level is not None:
            return level
        key = based_on.get(key, "")
    return 0


def _outline_level(element: etree._Element) -> int | None:
    """Its paragraph properties' outline level as a heading's, 0 for body text; None where they say nothing."""
    for level in element.iterfind("{*}pPr/{*}outlineLvl"):
        value = attribute(level, "val")
        return int(value) + 1 if value.isdecimal() and int(value) < 6 else 0
    return None


class _Body:
    """Reads a document's body. `title` is the text of paragraphs in the style of titles."""

    def __init__(self, style_levels: dict[str, int]) -> None:
        self.title = ""
        self._levels = style_levels
        self._blocks: list[Block] = []
        # Paragraphs that are open: one in another where a text box is anchored.
        self._paragraphs: list[list[str]] = []
        # Rows that are open, each with its cells.
        self._rows: list[list[list[str]]] = []

    def read(self, root: etree._Element) -> list[Block]:
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            name = local_name(element)
            if event == "end":
                if not self._is_skipped(element, name):
                    self._end(element, name)
            elif self._is_skipped(element, name):
                walker.skip_subtree()
            else:
                self._begin(element, name)
        return self._blocks

    def _is_skipped(self, element: etree._Element, name: str) -> bool:
        if name in _SKIPPED:
            return True
        if name == "r":
            return any(
                attribute(hidden, "val") not in ("0", "false")
                for hidden in element.iterfind("{*}rPr/{*}vanish")
            )
        if name == "sdt":
            galleries = element.iterfind("{*}sdtPr/{*}docPartObj/{*}docPartGallery")
            return any(attribute(gallery, "val") == "Table of Contents" for gallery in galleries)
        return name == "p" and self._level(element) == _CONTENTS

    def _begin(self, element: etree._Element, name: str) -> None:
        if name == "p":
            self._paragraphs.append([])
        elif name == "tr":
            self._rows.append([])
        elif name == "tc" and self._rows:
            self._rows[-1].append([])
        elif self._paragraphs:
            piece = {"tab": " ", "br": "\n", "cr": "\n", "nobreakhyphen": "-"}.get(name, "")
            self._paragraphs[-1].append((element.text or "") if name == "t" else piece)

    def _end(self, element: etree._Element, name: str) -> None:
        if name == "p" and self._paragraphs:
            self._close("".join(self._paragraphs.pop()), self._level(element))
        elif name == "tr" and self._rows:
            cells = [" ".join(cell) for cell in self._rows.pop()]
            self._close(", ".join(cell for cell in cells if cell), 0)

    def _close(self, text: str, level: int) -> None:
        text = tidy(text)
        if not text:
            return
        if self._rows and self._rows[-1]:
            self._rows[-1][-1].append(text.replace("\n", " "))
        elif level == _TITLE:
            self._blocks.append(Block(text, 1))
            self.title = self.title or text
        else:
            self._blocks.append(Block(text, level))

    def _level(self, paragraph: etree._Element) -> int:
        own = _outline_level(paragraph)
        if own is not None:
            return own
        for style in paragraph.iterfind("{*}pPr/{*}pStyle"):
            return self._levels.get(attribute(style, "val"), 0)
        return 0
