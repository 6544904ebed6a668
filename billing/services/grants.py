"""Credit that the platform gives."""

from __future__ import annotations

import contextlib
import uuid

from django.db import transaction

from billing.models import LedgerAccount, TransactionKind
from billing.pricing import MS_PER_SECOND, price_gpu_ms
from billing.selectors.prices import current_price, rate_for
from billing.services import ledger


@transaction.atomic
def grant_welcome_credit(*, workspace_id: uuid.UUID, gpu_seconds: int) -> None:
    """Give a workspace what `gpu_seconds` of interactive speech cost today. Once: later calls change nothing."""
    rate = rate_for(price=current_price(), job_class="interactive")
    amount = price_gpu_ms(gpu_ms=gpu_seconds * MS_PER_SECOND, rate=rate)
    grant(workspace_id=workspace_id, amount_micros=amount, idempotency_key=f"welcome:{workspace_id}")


@transaction.atomic
def grant(*, workspace_id: uuid.UUID, amount_micros: int, idempotency_key: str) -> None:
    """Give a workspace promotional credit. The same key again changes nothing."""
    ledger.ensure_account(workspace_id=workspace_id)
    with contextlib.suppress(ledger.AlreadyPosted):
        ledger.post(
            workspace_id=workspace_id,
            kind=TransactionKind.GRANT,
            idempotency_key=idempotency_key,
            entries={LedgerAccount.PROMOTION: -amount_micros, LedgerAccount.AVAILABLE: amount_micros},
        )
