"""How much of each budget is used up."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db.models import F, Sum

from billing.models import Budget, BudgetScope, Hold, HoldState, UsageDay
from billing.periods import Period, month_at
from billing.selectors.balances import time_zone_of
from portal.lib.clock import now


@dataclass(frozen=True)
class BudgetUse:
    """A budget in the current calendar month. `held_micros` is set aside for jobs that have not ended."""

    budget: Budget
    month: Period
    spent_micros: int
    held_micros: int

    @property
    def left_micros(self) -> int:
        return max(0, self.budget.monthly_micros - self.spent_micros - self.held_micros)

    @property
    def percent(self) -> int:
        """How much is spent, rounded down; 100 for a budget of nothing."""
        if not self.budget.monthly_micros:
            return 100
        return self.spent_micros * 100 // self.budget.monthly_micros


def budgets_of(workspace_id: uuid.UUID) -> list[BudgetUse]:
    """Every budget of the workspace with what it is used, the workspace's own first."""
    budgets = Budget.objects.filter(workspace_id=workspace_id).order_by("-scope", "created_at")
    month = month_at(now(), time_zone_of(workspace_id))
    return [use_of(budget, month) for budget in budgets]


def budget_of(workspace_id: uuid.UUID, budget_id: uuid.UUID) -> Budget | None:
    """One budget of this workspace; None for a missing one or another's."""
    return Budget.objects.filter(workspace_id=workspace_id, pk=budget_id).first()


def use_of(budget: Budget, month: Period) -> BudgetUse:
    """What was spent of the budget in that month, and what is set aside now. Two queries."""
    by = {
        BudgetScope.WORKSPACE: {},
        BudgetScope.MEMBER: {"user_id": budget.subject_id},
        BudgetScope.API_KEY: {"api_key_id": budget.subject_id},
    }[BudgetScope(budget.scope)]
    days = UsageDay.objects.filter(
        workspace_id=budget.workspace_id, day__gte=month.first_day, day__lte=month.last_day, **by
    )
    spent = days.aggregate(total=Sum(F("charged_micros") - F("refunded_micros")))["total"] or 0
    holds = Hold.objects.filter(workspace_id=budget.workspace_id, state=HoldState.OPEN, **by)
    held = holds.aggregate(total=Sum(F("amount_micros") - F("captured_micros")))["total"] or 0
    return BudgetUse(budget=budget, month=month, spent_micros=spent, held_micros=held)
