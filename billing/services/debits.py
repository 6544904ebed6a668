"""Money that goes out other than for speech: fees, taxes, an operator's adjustments."""

from __future__ import annotations

import uuid

from django.db import transaction

from billing.errors import AmountNotPositive
from billing.models import LedgerAccount, TransactionKind
from billing.services import ledger

_ACCOUNT = {
    TransactionKind.FEE: LedgerAccount.REVENUE,
    TransactionKind.TAX: LedgerAccount.TAX,
    TransactionKind.ADJUSTMENT: LedgerAccount.ADJUSTMENT,
}


def debit(
    *,
    workspace_id: uuid.UUID,
    amount_micros: int,
    kind: TransactionKind,
    idempotency_key: str,
    may_owe: bool,
    reason: str = "",
) -> bool:
    """Take money from a workspace, from its grants in their order; False, and nothing changed, when the key was used
    before. `may_owe`: also more than there is, which it owes then. Locks the credit account.

    Raises:
        AmountNotPositive
        BalanceTooLow (billing.services.ledger): less than that is available. Nothing was changed.
    """
    if amount_micros <= 0:
        raise AmountNotPositive
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        outcome = ledger.call(
            "billing_debit(%s, %s, %s, %s, %s, %s, %s)",
            [
                workspace_id,
                amount_micros,
                kind.value,
                idempotency_key,
                _ACCOUNT[kind].value,
                may_owe,
                reason,
            ],
        )
    if outcome == "balance_too_low":
        raise ledger.BalanceTooLow
    return outcome == "posted"
