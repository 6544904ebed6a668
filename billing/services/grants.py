"""Credit that comes in, and what becomes of it in the end: spent, expired, or taken back."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from billing.errors import AmountNotPositive
from billing.models import GRANT_PRIORITY, CreditGrant, GrantKind, LedgerAccount, TransactionKind
from billing.pricing import MS_PER_SECOND, price_gpu_ms
from billing.selectors.prices import current_price, rate_for
from billing.services import ledger

# How many are read at once.
EXPIRE_AT_ONCE = 200

_LEDGER = {
    GrantKind.INCLUDED: (TransactionKind.GRANT, LedgerAccount.PROMOTION),
    GrantKind.PROMOTIONAL: (TransactionKind.GRANT, LedgerAccount.PROMOTION),
    GrantKind.VOUCHER: (TransactionKind.VOUCHER, LedgerAccount.PROMOTION),
    GrantKind.PAID: (TransactionKind.TOP_UP, LedgerAccount.PAYMENTS),
}


@transaction.atomic
def grant_welcome_credit(*, workspace_id: uuid.UUID, gpu_seconds: int) -> None:
    """Give a workspace what `gpu_seconds` of interactive speech cost today. Once: later calls change nothing."""
    rate = rate_for(price=current_price(), job_class="interactive")
    amount = price_gpu_ms(gpu_ms=gpu_seconds * MS_PER_SECOND, rate=rate)
    if amount:
        grant(workspace_id=workspace_id, amount_micros=amount, idempotency_key=f"welcome:{workspace_id}")


def grant(
    *,
    workspace_id: uuid.UUID,
    amount_micros: int,
    idempotency_key: str,
    kind: GrantKind = GrantKind.PROMOTIONAL,
    expires_at: datetime | None = None,
    ledger_kind: TransactionKind | None = None,
    reason: str = "",
) -> uuid.UUID | None:
    """Give a workspace credit and return the grant's id; None, and nothing changed, when the key was used before.

    What the workspace owes is paid by it first. `ledger_kind` where the movement has another name than its kind's.
    Locks the credit account.

    Raises AmountNotPositive.
    """
    if amount_micros <= 0:
        raise AmountNotPositive
    ledger_name, source = _LEDGER[kind]
    grant_id = uuid.uuid4()
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        outcome = ledger.call(
            "billing_add_grant(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                grant_id,
                workspace_id,
                kind.value,
                amount_micros,
                GRANT_PRIORITY[kind],
                expires_at,
                (ledger_kind or ledger_name).value,
                idempotency_key,
                source.value,
                reason,
            ],
        )
    return grant_id if outcome == "posted" else None


def take_back(
    *,
    grant_id: uuid.UUID,
    amount_micros: int,
    kind: TransactionKind,
    idempotency_key: str,
    may_owe: bool,
    reason: str = "",
) -> bool:
    """Take money that came by this grant out again; False, and nothing changed, when the key was used before.

    `may_owe`: also what was spent already, which the workspace owes then (a chargeback). Locks the credit account, then
    the grant.

    Raises:
        AmountNotPositive
        BalanceTooLow (billing.services.ledger): not so much of it is left. Nothing was changed.
    """
    if amount_micros <= 0:
        raise AmountNotPositive
    with transaction.atomic():
        outcome = ledger.call(
            "billing_take_back(%s, %s, %s, %s, %s, %s)",
            [grant_id, amount_micros, kind.value, idempotency_key, may_owe, reason],
        )
    if outcome == "balance_too_low":
        raise ledger.BalanceTooLow
    return outcome == "posted"


def expire_grants() -> int:
    """End grants whose time is over; returns how many micros expired. What is set aside for jobs may yet be spent.

    Each is a transaction of its own. Those of which nothing can expire now do not keep the others waiting.
    """
    expired = 0
    over = CreditGrant.objects.filter(is_spent=False, expires_at__lte=Now()).order_by("expires_at", "pk")
    last: tuple[datetime, uuid.UUID] | None = None
    while True:
        after = Q() if last is None else Q(expires_at__gt=last[0]) | Q(expires_at=last[0], pk__gt=last[1])
        batch = list(over.filter(after).values_list("expires_at", "pk")[:EXPIRE_AT_ONCE])
        for _, grant_id in batch:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT billing_expire_grant(%s)", [grant_id])
                expired += cursor.fetchone()[0]
        if len(batch) < EXPIRE_AT_ONCE:
            return expired
        expires_at, grant_id = batch[-1]
        assert expires_at is not None  # noqa: S101 - the query asks for those that have one
        last = (expires_at, grant_id)
