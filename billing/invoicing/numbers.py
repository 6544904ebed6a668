"""How invoices are numbered. Pure."""

from __future__ import annotations

from billing.models.invoice import InvoiceKind

_PREFIX = {InvoiceKind.INVOICE: "INV", InvoiceKind.CREDIT_NOTE: "CN"}


def series_of(kind: InvoiceKind, year: int) -> str:
    """The series that a document of that kind is numbered in: one for each kind and calendar year."""
    return f"{_PREFIX[kind]}{year}"


def number_text(series: str, number: int | None) -> str:
    """`INV2026-000042`; empty for a draft, which has none."""
    return "" if number is None else f"{series}-{number:06d}"
