"""Books (epub 2 and 3) as blocks: the pages in the order of the spine.

A chapter begins at a heading of a page, and where the table of contents leads to a place without one. Pages that are
the table of contents, or a list of links, are left out, and so are those that are not part of the reading order.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final
from urllib.parse import unquote

from lxml import etree

from tts.documents.archive import Archive, path_from
from tts.documents.blocks import Block, Document, document_of
from tts.documents.html_text import blocks_of, is_list_of_links
from tts.documents.refusal import Reason, Refused
from tts.documents.xml_parts import attribute, local_name, parse_xml

CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
# Scrambled fonts: the words can be read.
_OF_FONTS: Final = frozenset({"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"})
_PAGES: Final = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_CONTENTS: Final = "application/x-dtbncx+xml"
# Of the table of contents: parts and chapters. What is deeper are sections.
_DEEPEST: Final = 2
# Titles by page, and in it by the id where they begin; "" is the page's beginning.
Contents = dict[str, dict[str, str]]


def is_epub(archive: Archive) -> bool:
    """Whether the archive is a book, by its parts."""
    return CONTAINER in archive


def read_epub(archive: Archive) -> Document:
    """Raises Refused: UNREADABLE, ENCRYPTED, NO_TEXT, TOO_LONG, TOO_COMPLEX."""
    _refuse_protected(archive)
    package_path = _package_path(archive)
    package = parse_xml(archive.read(package_path), forgiving=True)
    items = {
        attribute(item, "id"): (path_from(package_path, unquote(attribute(item, "href"))), item)
        for item in package.iter("{*}item")
    }
    contents, nav_path = _contents(archive, package, items)
    blocks: list[Block] = []
    for path in _spine(package, items):
        if path == nav_path or path not in archive:
            continue
        page = parse_xml(archive.read(path), forgiving=True)
        anchors = contents.get(path, {})
        if not is_list_of_links(page):
            blocks += blocks_of(page, anchors=anchors)
    title = next(("".join(map(str, one.itertext())) for one in package.iter("{*}title")), "")
    return document_of(blocks, title=title)


def _refuse_protected(archive: Archive) -> None:
    if "META-INF/sinf.xml" in archive:
        raise Refused(Reason.ENCRYPTED)
    if _ENCRYPTION not in archive:
        return
    for method in parse_xml(archive.read(_ENCRYPTION), forgiving=True).iter("{*}EncryptedData"):
        algorithms = {attribute(one, "Algorithm") for one in method.iterfind("{*}EncryptionMethod")}
        if not algorithms or algorithms - _OF_FONTS:
            raise Refused(Reason.ENCRYPTED)


def _package_path(archive: Archive) -> str:
    for root_file in parse_xml(archive.read(CONTAINER), forgiving=True).iter("{*}rootfile"):
        path = path_from("", unquote(attribute(root_file, "full-path")))
        if path in archive:
            return path
    raise Refused(Reason.UNREADABLE)


def _spine(package: etree._Element, items: dict[str, tuple[str, etree._Element]]) -> list[str]:
    """The pages in their order, each once."""
    pages = []
    for reference in package.iter("{*}itemref"):
        path, item = items.get(attribute(reference, "idref"), ("", reference))
        if path and attribute(reference, "linear") != "no" and attribute(item, "media-type") in _PAGES:
            pages.append(path)
    return list(dict.fromkeys(pages))


def _contents(
    archive: Archive, package: etree._Element, items: dict[str, tuple[str, etree._Element]]
) -> tuple[Contents, str]:
    """The table of contents and the page that it is, "" where it is none."""
    contents: Contents = defaultdict(dict)
    nav_path = next(
        (path for path, item in items.values() if "nav" in attribute(item, "properties").split()), ""
    )
    if nav_path in archive and nav_path:
        _read_nav(parse_xml(archive.read(nav_path), forgiving=True), nav_path, contents)
        return contents, nav_path
    old = [path for path, item in items.values() if attribute(item, "media-type") == _CONTENTS]
    for path in old[:1]:
        if path in archive:
            _read_ncx(parse_xml(archive.read(path), forgiving=True), path, contents)
    return contents, ""


def _read_nav(root: etree._Element, path: str, contents: Contents) -> None:
    for nav in root.iter("{*}nav"):
        if "toc" not in attribute(nav, "type").split() and nav.get("role") != "doc-toc":
            continue
        for link in nav.iter("{*}a"):
            depth = sum(local_name(one) == "ol" for one in link.iterancestors())
            if depth <= _DEEPEST:
                _note(contents, path, link.get("href", ""), "".join(map(str, link.itertext())))


def _read_ncx(root: etree._Element, path: str, contents: Contents) -> None:
    for point in root.iter("{*}navPoint"):
        depth = 1 + sum(local_name(one) == "navpoint" for one in point.iterancestors())
        label = next(("".join(map(str, one.itertext())) for one in point.iterfind("{*}navLabel")), "")
        target = next((attribute(one, "src") for one in point.iterfind("{*}content")), "")
        if depth <= _DEEPEST:
            _note(contents, path, target, label)


def _note(contents: Contents, base: str, reference: str, title: str) -> None:
    reference = unquote(reference)
    words = " ".join(title.split())
    if words and reference:
        contents[path_from(base, reference)].setdefault(reference.partition("#")[2], words)
