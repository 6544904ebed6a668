"""A page of a book (XHTML) as blocks.

Read: headings, paragraphs, items of lists, quotations; of a table each row as a line with commas. Left out: scripts
and styles, pictures and what stands under them, navigation, forms, page numbers, footnotes and endnotes with their
marks, the small reading above characters (`rt`), and what is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lxml import etree

from tts.documents.blocks import Block, tidy
from tts.documents.xml_parts import attribute, local_name

_SKIPPED: Final = frozenset(
    [
        "head",
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "math",
        "img",
        "image",
        "picture",
        "audio",
        "video",
        "canvas",
        "object",
        "embed",
        "iframe",
        "form",
        "input",
        "select",
        "button",
        "textarea",
        "nav",
        "figcaption",
        "rt",
        "rp",
        "rtc",
        "del",
    ]
)
_LINES: Final = frozenset(
    [
        "html",
        "body",
        "p",
        "div",
        "section",
        "article",
        "aside",
        "main",
        "header",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "blockquote",
        "pre",
        "table",
        "caption",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "figure",
        "hr",
        "address",
        "center",
        "details",
        "summary",
    ]
)
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
# epub:type and role (with "doc-" before it).
_TYPES_SKIPPED: Final = frozenset(
    [
        "footnote",
        "footnotes",
        "endnote",
        "endnotes",
        "rearnote",
        "rearnotes",
        "noteref",
        "pagebreak",
        "page-list",
        "toc",
        "landmarks",
        "backlink",
        "loi",
        "lot",
        "index",
    ]
)
_NOTE_MARK: Final = re.compile(r"[\[(（【〔]?\s*(?:注\s*)?(?:\d{1,4}|[*†‡§]{1,3}|[①-⑳]|[a-z])\s*[\])）】〕]?")
_BRACKETED: Final = re.compile(r"[\[(（【〔].*[\])）】〕]")
_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_NOTE_NAME: Final = re.compile(r"(?:foot|end|rear)?notes?(?:text)?\d*|fn\d*|ftn\d*", re.IGNORECASE)


def blocks_of(root: etree._Element, *, anchors: Mapping[str, str] | None = None) -> list[Block]:
    """The blocks of a page. `anchors`: titles by the ids where they begin, "" for the page's beginning; each becomes a
    heading unless the page itself has one there."""
    return _Page(anchors or {}).read(root)


def is_list_of_links(root: etree._Element) -> bool:
    """Whether a page is a list of contents: three links and more to other places, and hardly a word beside them."""
    links = [element for element in root.iter("{*}a") if element.get("href")]
    linked = sum(len("".join(_words(link))) for link in links)
    body = next(root.iter("{*}body"), root)
    return len(links) >= 3 and linked >= 0.8 * sum(map(len, _words(body)))


def _words(element: etree._Element) -> list[str]:
    return "".join(str(piece) for piece in element.itertext()).split()


class _Page:
    def __init__(self, anchors: Mapping[str, str]) -> None:
        self._anchors = dict(anchors)
        self._blocks: list[Block] = []
        self._pieces: list[str] = []
        self._level = 0
        self._rows = 0
        self._title = self._anchors.pop("", "")

    def read(self, root: etree._Element) -> list[Block]:
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if event == "start":
                if _is_skipped(element):
                    walker.skip_subtree()
                    # What follows it is still read: its end comes next.
                    element.set("left-out", "")
                else:
                    self._begin(element)
            else:
                if element.attrib.pop("left-out", None) is None:
                    self._end(local_name(element))
                if element is not root:
                    self._pieces.append((element.tail or "").replace("\n", " "))
        self._close()
        return self._blocks

    def _begin(self, element: etree._Element) -> None:
        name = local_name(element)
        title = self._anchors.pop(element.get("id", ""), "") if element.get("id") else ""
        if title and name not in ("html", "body"):
            self._close()
            self._title = title
        if name in _LINES:
            self._break()
            self._level = _HEADINGS.get(name, self._level)
        self._rows += name == "tr"
        if name in ("td", "th") and "".join(self._pieces).strip():
            self._pieces.append(", ")
        if name == "br":
            self._pieces.append("\n")
        text = element.text or ""
        if name == "sup" and text.isdecimal() and text.isascii():
            # 10² is no 102.
            text = text.translate(_RAISED)
        # Line ends in the file are spaces.
        self._pieces.append(text.replace("\n", " "))

    def _end(self, name: str) -> None:
        self._rows -= name == "tr"
        if name in _LINES:
            self._break()
        if name in _HEADINGS:
            self._level = 0

    def _break(self) -> None:
        if self._rows:
            # Inside a row a paragraph is no line of its own.
            self._pieces.append(" ")
        else:
            self._close()

    def _close(self) -> None:
        text = tidy("".join(self._pieces))
        self._pieces = []
        if not text:
            return
        if self._title:
            named, self._title = self._title, ""
            same = _key(named) == _key(text)
            if not same and not 0 < self._level <= 2:
                self._blocks.append(Block(named, 1))
            elif same:
                self._blocks.append(Block(text, self._level or 1))
                return
        self._blocks.append(Block(text, self._level))


def _key(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _is_skipped(element: etree._Element) -> bool:
    name = local_name(element)
    if name in _SKIPPED or element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    kinds = {
        kind.removeprefix("doc-")
        for kind in f"{attribute(element, 'type')} {element.get('role', '')}".split()
    }
    if kinds & _TYPES_SKIPPED and name not in ("html", "body"):
        return True
    if name in ("a", "sup"):
        return _is_note_mark(element)
    return name in ("aside", "div", "p", "li", "section", "ol", "dl") and any(
        _NOTE_NAME.fullmatch(word) for word in element.get("class", "").split()
    )


def _is_note_mark(element: etree._Element) -> bool:
    """A number or a sign that leads to a note: a raised link, or a link with brackets or the name of a note."""
    text = "".join(str(piece) for piece in element.itertext()).strip()
    if not text or not _NOTE_MARK.fullmatch(text):
        return False
    if local_name(element) == "sup":
        return any("#" in link.get("href", "") for link in element.iter("{*}a"))
    target = element.get("href", "").partition("#")[2]
    raised = any(local_name(one) == "sup" for one in (*element, *element.iterancestors()))
    return bool(target) and (raised or bool(_BRACKETED.fullmatch(text)) or "note" in target.lower())
