"""XML of strangers: no document type, no entity of their own, nothing fetched, no more depth than real books have."""

from __future__ import annotations

import codecs
import html
import re
from typing import Final

from lxml import etree

from tts.documents.refusal import Reason, Refused

_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>")
_ENCODING: Final = re.compile(rb"""^\s*<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# One without definitions of its own is left out; one with such is refused.
_DOCUMENT_TYPE: Final = re.compile(r"<!DOCTYPE[^<>\[]*>", re.IGNORECASE)
_DEFINITIONS: Final = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_NAMED: Final = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_OF_XML: Final = frozenset({"amp", "lt", "gt", "quot", "apos"})
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def parse_xml(content: bytes, *, forgiving: bool = False) -> etree._Element:
    """Return the root element, without comments and instructions.

    `forgiving`: as readers of books are; what is not well-formed is mended as far as can be.

    Raises:
        Refused: UNREADABLE, or TOO_COMPLEX for elements that are nested too deep or too long.
    """
    text = _DECLARATION.sub("", _decoded(content), count=1)
    text = _DOCUMENT_TYPE.sub("", text, count=1)
    # Elsewhere these signs cannot stand but in comments and CDATA, where nobody needs them.
    if _DEFINITIONS.search(text):
        raise Refused(Reason.UNREADABLE)
    text = _NAMED.sub(_resolved, text)
    # Bounded: without `huge_tree`, libxml2 stops at a depth of 256 and at texts of ten million bytes.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        recover=forgiving,
        huge_tree=False,
    )
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise Refused(Reason.TOO_COMPLEX if _is_too_much(parser) else Reason.UNREADABLE) from error
    if root is None:
        raise Refused(Reason.UNREADABLE)
    if _is_too_much(parser):
        raise Refused(Reason.TOO_COMPLEX)
    return root


def local_name(element: etree._Element) -> str:
    """The element's name without its namespace, in small letters."""
    return str(element.tag).rpartition("}")[2].lower()


def attribute(element: etree._Element, name: str) -> str:
    """An attribute by its name without its namespace; "" where there is none."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return ""


def _decoded(content: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace")
    declared = _ENCODING.match(content[:300])
    try:
        return content.decode(declared[1].decode() if declared else "utf-8", errors="replace")
    except LookupError:
        return content.decode(errors="replace")


def _resolved(match: re.Match[str]) -> str:
    """`&nbsp;` and its like, which books use without defining them, as their characters."""
    if match[1] in _OF_XML:
        return match[0]
    resolved = html.unescape(match[0])
    return "" if resolved == match[0] else html.escape(resolved)


def _is_too_much(parser: etree.XMLParser) -> bool:
    limits = ("Excessive depth", "xmlSAX2Characters: huge text node", "Resource limit", "Huge")
    return any(any(limit.lower() in entry.message.lower() for limit in limits) for entry in parser.error_log)
