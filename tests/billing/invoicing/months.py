"""A customer and the months that are closed for it."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

from billing.models import GrantKind, Invoice
from billing.services import grants
from billing.services.invoices import close_month

YUAN = 1_000_000
OCTOBER = date(2025, 10, 1)
NOVEMBER = date(2025, 11, 1)
AFTER = datetime(2025, 12, 1, 12, tzinfo=UTC)
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)


def money(workspace_id: uuid.UUID, micros: int, kind: GrantKind) -> None:
    grants.grant(
        workspace_id=workspace_id, amount_micros=micros, kind=kind, idempotency_key=str(uuid.uuid4())
    )


def november(number: int, hour: int = 12) -> datetime:
    return datetime(2025, 11, number, hour, tzinfo=UTC)


def closed(workspace_id: uuid.UUID, month: date = NOVEMBER, at: datetime = AFTER) -> Invoice:
    invoice = close_month(workspace_id=workspace_id, month=month, at=at)
    assert invoice is not None
    return invoice
