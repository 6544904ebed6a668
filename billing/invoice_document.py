"""Invoices and credit notes as PDF files, in English or Simplified Chinese.

WeasyPrint needs the system's Pango, and a font with Chinese glyphs for Chinese. Where there is none, the document is
written in English, with names in Chinese in Latin letters instead of empty boxes, and says so. Where Pango is missing,
it is refused.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from anyascii import anyascii
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation

from billing.errors import InvoicePdfUnavailable
from billing.invoicing.amounts import payable
from billing.invoicing.numbers import number_text
from billing.models import Invoice, InvoiceKind, InvoiceLine
from billing.periods import local_day
from billing.selectors.invoices import lines_of
from portal.lib.display import money_exact

CHINESE = "zh-hans"
# Ideographs, their punctuation, kana, Hangul, and the wide forms of Latin letters.
_CHINESE_WRITING = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+"
)


def invoice_pdf(invoice: Invoice, *, language: str) -> bytes:
    """The PDF file of an invoice, a credit note or a draft, in the reader's language (`en` or `zh-hans`).

    Takes about a second of processor time. Raises InvoicePdfUnavailable where Pango is not installed.
    """
    return render_pdf(invoice, lines_of(invoice), language=language)


def render_pdf(invoice: Invoice, lines: Sequence[InvoiceLine], *, language: str) -> bytes:
    """The same of lines that are at hand; reads nothing from the database but the number of a corrected invoice."""
    try:
        # A hundred milliseconds and 40 MB that only those spend who make a document; needs the system's Pango.
        from weasyprint import CSS, HTML
        from weasyprint.urls import URLFetcher
    except OSError as error:
        raise InvoicePdfUnavailable from error
    text = _text(invoice, lines, language=language)
    # Nothing is ever fetched: the document has no pictures, and a name could not bring any.
    fetcher = URLFetcher(allowed_protocols=[])
    style = CSS(string=_style(), url_fetcher=fetcher)
    document: bytes = HTML(string=text, url_fetcher=fetcher).write_pdf(stylesheets=[style])
    return document


def _text(invoice: Invoice, lines: Sequence[InvoiceLine], *, language: str) -> str:
    """The document as HTML, with nothing in it that this host has no glyphs for."""
    if has_chinese_font():
        with translation.override(language):
            return render_to_string("billing/invoice.html", _context(invoice, lines))
    with translation.override("en"):
        context = _context(invoice, lines) | {"font_missing": language == CHINESE}
        text = render_to_string("billing/invoice.html", context)
        if not _CHINESE_WRITING.search(text):
            return text
        text = render_to_string("billing/invoice.html", context | {"names_in_latin_letters": True})
    return in_latin_letters(text)


def in_latin_letters(text: str) -> str:
    """The text with what is in Chinese, Japanese or Korean letters as it is read: `Shang Hai Shi 1 Hao`."""

    def read(found: re.Match[str]) -> str:
        return " ".join(anyascii(letter) for letter in found[0])

    return _CHINESE_WRITING.sub(read, text)


@lru_cache(maxsize=1)
def _style() -> str:
    return (Path(settings.BASE_DIR) / "static" / "css" / "invoice.css").read_text(encoding="utf-8")


class _FontSet(ctypes.Structure):
    _fields_ = [
        ("nfont", ctypes.c_int),
        ("sfont", ctypes.c_int),
        ("fonts", ctypes.c_void_p),
    ]


@lru_cache(maxsize=1)
def has_chinese_font() -> bool:
    """Whether the system has any font for Simplified Chinese, as fontconfig knows it. Asked once."""
    name = ctypes.util.find_library("fontconfig")
    if name is None:
        return False
    library = ctypes.CDLL(name)
    library.FcNameParse.restype = library.FcObjectSetCreate.restype = ctypes.c_void_p
    library.FcFontList.restype = ctypes.POINTER(_FontSet)
    library.FcFontList.argtypes = [ctypes.c_void_p] * 3
    found = library.FcFontList(None, library.FcNameParse(b":lang=zh-cn"), library.FcObjectSetCreate())
    return bool(found) and found.contents.nfont > 0


def _context(invoice: Invoice, lines: Sequence[InvoiceLine]) -> dict[str, Any]:
    zone = invoice.time_zone
    corrected = invoice.corrects
    is_note = invoice.kind == InvoiceKind.CREDIT_NOTE
    # A credit note says what goes back: what stands on a month's with an invoice's signs is turned round.
    sign = -1 if is_note and corrected is None else 1
    return {
        "invoice": invoice,
        "is_note": is_note,
        "is_of_month": corrected is None,
        "number": number_text(invoice.series, invoice.number),
        "corrects": number_text(corrected.series, corrected.number) if corrected is not None else "",
        "seller": invoice.parties.get("seller", {}),
        "buyer": invoice.parties.get("buyer", {}),
        "first_day": local_day(invoice.period_start, zone),
        "last_day": local_day(invoice.period_end - timedelta(microseconds=1), zone),
        "issued": local_day(invoice.finalized_at, zone) if invoice.finalized_at else None,
        "due_on": local_day(invoice.due_at, zone) if invoice.due_at and invoice.due_micros else None,
        "rate": f"{invoice.tax_rate_basis_points / 100:g}",
        "lines": [_line(line, invoice.currency, sign) for line in lines],
        "amounts": {
            name: money_exact(sign_of * getattr(invoice, f"{name}_micros"), invoice.currency)
            for sign_of, names in ((sign, ("fee", "usage")), (1, ("net", "tax", "total", "due")))
            for name in names
        },
        "discount": money_exact(-sign * invoice.discount_micros, invoice.currency)
        if invoice.discount_micros
        else "",
        "prepaid": money_exact(-invoice.prepaid_micros, invoice.currency),
        "is_prepaid": invoice.prepaid_micros >= 0,
        "payable": money_exact(payable(invoice.due_micros), invoice.currency),
    }


def _line(line: InvoiceLine, currency: str, sign: int) -> dict[str, Any]:
    return {
        "kind": line.get_kind_display(),
        "what": line.description or line.device_class,
        "day": line.day,
        "seconds": f"{line.gpu_ms / 1000:,.3f}" if line.gpu_ms else "",
        "amount": money_exact(sign * line.amount_micros, currency),
    }
