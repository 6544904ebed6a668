"""How far below zero a workspace may go that pays later."""

from __future__ import annotations

import uuid
from typing import Final

from django.db import transaction

from billing.errors import AmountNotPositive
from billing.models import CreditAccount
from billing.services import ledger

# Above every real amount, and far below what a column holds.
HIGHEST_MICROS: Final = 10**15


def set_credit_limit(*, workspace_id: uuid.UUID, limit_micros: int) -> int:
    """Set the limit and return the one before it, in micros. What is owed already stays owed. Locks the account.

    Raises AmountNotPositive: below zero, or no amount at all. Nothing was changed.
    """
    if not 0 <= limit_micros <= HIGHEST_MICROS:
        raise AmountNotPositive
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
        CreditAccount.objects.filter(pk=workspace_id).update(credit_limit_micros=limit_micros)
    return account.credit_limit_micros
