"""Monthly budgets: set by a workspace for itself, its members and its keys; kept when money is set aside."""

from __future__ import annotations

import uuid

from django.db import connection, transaction
from django.db.models import Q

from billing.errors import BudgetInvalid, BudgetNotFound, BudgetReached
from billing.models import Budget, BudgetScope, CreditAccount
from billing.periods import month_at
from billing.selectors.budgets import use_of
from billing.services import ledger
from portal.lib.clock import now
from portal.lib.display import money_exact

MOST_MICROS = 10**15  # a thousand million yuan: more is a slip of the hand


def set_budget(
    *,
    workspace_id: uuid.UUID,
    scope: BudgetScope,
    subject_id: uuid.UUID | None,
    monthly_micros: int,
    is_hard: bool = True,
    warn_percent: int = 80,
) -> Budget:
    """Set what may be spent in a calendar month, in place of what was set before.

    `subject_id` is the member's or the key's id; whether it is this workspace's the caller has to know.

    Raises BudgetInvalid. Nothing was changed then.
    """
    fits = 0 <= monthly_micros <= MOST_MICROS and 1 <= warn_percent <= 100
    if not fits or (subject_id is None) != (scope == BudgetScope.WORKSPACE):
        raise BudgetInvalid
    budget, _ = Budget.objects.update_or_create(
        workspace_id=workspace_id,
        scope=scope,
        subject_id=subject_id,
        defaults={"monthly_micros": monthly_micros, "is_hard": is_hard, "warn_percent": warn_percent},
    )
    return budget


def remove_budget(*, workspace_id: uuid.UUID, budget_id: uuid.UUID) -> None:
    """Raises BudgetNotFound."""
    deleted, _ = Budget.objects.filter(workspace_id=workspace_id, pk=budget_id).delete()
    if not deleted:
        raise BudgetNotFound


def check_budgets(
    *, workspace_id: uuid.UUID, user_id: uuid.UUID | None, api_key_id: uuid.UUID | None, amount_micros: int
) -> None:
    """Refuse what would overrun a hard budget, were all that is set aside spent.

    Call inside the transaction that sets the money aside. Locks the credit account where there is a budget, so that
    two requests at once cannot both take the last of it.

    Raises BudgetReached.
    """
    concerned = Q(scope=BudgetScope.WORKSPACE)
    if user_id is not None:
        concerned |= Q(scope=BudgetScope.MEMBER, subject_id=user_id)
    if api_key_id is not None:
        concerned |= Q(scope=BudgetScope.API_KEY, subject_id=api_key_id)
    budgets = list(Budget.objects.filter(concerned, workspace_id=workspace_id, is_hard=True))
    if not budgets:
        return
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("a budget is checked together with what it is for")
    ledger.ensure_account(workspace_id=workspace_id)
    account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
    month = month_at(now(), account.time_zone)
    for budget in budgets:
        left = use_of(budget, month).left_micros
        if amount_micros > left:
            raise BudgetReached(
                needed=money_exact(amount_micros, account.currency),
                left=money_exact(left, account.currency),
                whose=BudgetScope(budget.scope).label,
            )
