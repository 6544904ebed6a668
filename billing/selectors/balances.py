"""What a workspace has."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from billing.models import CreditAccount
from billing.models.ledger import default_time_zone
from billing.pricing import affordable_gpu_ms
from billing.selectors.prices import current_price, rate_for


@dataclass(frozen=True)
class Balance:
    available_micros: int
    held_micros: int
    currency: str
    # What was spent beyond all credit, and down to which debt work is begun.
    owed_micros: int
    credit_limit_micros: int
    # What the available money buys in the interactive class at today's price; nothing where it is a debt.
    affordable_gpu_ms: int

    @property
    def spendable_micros(self) -> int:
        """What jobs can be set aside from: the available money, and what may be owed. Not negative."""
        return max(0, self.available_micros + self.credit_limit_micros)


def balance_of(workspace_id: uuid.UUID) -> Balance:
    """The workspace's balance; zero where it has no account yet."""
    account = CreditAccount.objects.filter(workspace_id=workspace_id).first() or CreditAccount(
        workspace_id=workspace_id
    )
    rate = rate_for(price=current_price(), job_class="interactive")
    return Balance(
        available_micros=account.available_micros,
        held_micros=account.held_micros,
        currency=account.currency,
        owed_micros=account.owed_micros,
        credit_limit_micros=account.credit_limit_micros,
        affordable_gpu_ms=affordable_gpu_ms(amount_micros=account.available_micros, rate=rate),
    )


def time_zone_of(workspace_id: uuid.UUID) -> str:
    """The zone in which the workspace's days and months begin."""
    zone = CreditAccount.objects.filter(pk=workspace_id).values_list("time_zone", flat=True).first()
    return zone or default_time_zone()


def currency_of(workspace_id: uuid.UUID) -> str:
    """What the workspace's money is counted in."""
    found = CreditAccount.objects.filter(pk=workspace_id).values_list("currency", flat=True).first()
    return found or CreditAccount().currency
