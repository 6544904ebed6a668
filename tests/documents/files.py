"""Documents made by the tests themselves: Word documents, books, archives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PAGE = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
STYLES = """
<w:style w:type="paragraph" w:styleId="1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="2"><w:name w:val="标题 2"/></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="My chapters"/><w:basedOn w:val="1"/></w:style>
<w:style w:type="paragraph" w:styleId="Outlined"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="y"/><w:basedOn w:val="Loop"/></w:style>
<w:style w:type="paragraph" w:styleId="Contents"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/></w:style>
"""


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return made.getvalue()


def paragraph(text: str, style: str = "", *, run: str = "") -> str:
    """One of Word's; `run` instead of a run with the text."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{run or f'<w:r><w:t>{text}</w:t></w:r>'}</w:p>"


def docx(body: str, *, styles: str = STYLES, more: Mapping[str, str] | None = None) -> bytes:
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<?xml version="1.0"?><w:document {WORD}><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f"<w:styles {WORD}>{styles}</w:styles>",
            **(more or {}),
        }
    )


def page(body: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" '
        f'"http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">\n<html {PAGE}><head><title/></head><body>{body}</body></html>'
    )


def epub(
    pages: Sequence[str],
    *,
    nav: str = "",
    ncx: str = "",
    title: str = "A book",
    more: Mapping[str, str] | None = None,
) -> bytes:
    """A book with these bodies of pages; `nav` the items of its table of contents, `ncx` the points of an old one."""
    items = [
        f'<item id="i{number}" href="page%20{number}.xhtml" media-type="application/xhtml+xml"/>'
        for number in range(len(pages))
    ]
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    }
    if nav:
        items.append('<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>')
        parts["OEBPS/nav.xhtml"] = page(f'<nav epub:type="toc"><ol>{nav}</ol></nav>')
    if ncx:
        items.append('<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>')
        parts["OEBPS/toc.ncx"] = (
            f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{ncx}</navMap></ncx>'
        )
    references = "".join(f'<itemref idref="i{number}"/>' for number in range(len(pages)))
    parts["OEBPS/book.opf"] = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></metadata><manifest>{''.join(items)}</manifest>"
        f"<spine>{references}</spine></package>"
    )
    parts |= {f"OEBPS/page {number}.xhtml": page(body) for number, body in enumerate(pages)}
    return archive({**parts, **(more or {})})
