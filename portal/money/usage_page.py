"""All that the Usage page shows, read at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Workspace
from billing.models import BudgetScope
from billing.selectors.balances import currency_of
from billing.selectors.budgets import BudgetUse, budgets_of
from billing.selectors.usage import Dimension, Key, Sums, total_of
from billing.selectors.usage_days import Usage, usage_of
from portal.charts import Chart
from portal.money.days import Days
from portal.money.measures import Measure
from portal.money.names import names_of
from portal.money.usage_chart import usage_chart
from portal.money.usage_files import BY_DAY_AND_DEVICE_CLASS, ordered

# More lines than that are read in the file.
LINES_SHOWN: Final = 20
TITLES: Final[dict[Dimension, str | Promise]] = {
    Dimension.VOICE: gettext_lazy("By voice"),
    Dimension.MEMBER: gettext_lazy("By member"),
    Dimension.KEY: gettext_lazy("By API key"),
    Dimension.DEVICE_CLASS: gettext_lazy("By class of device"),
    Dimension.JOB_CLASS: gettext_lazy("By urgency"),
}
HEADS: Final[dict[Dimension, str | Promise]] = {
    Dimension.VOICE: gettext_lazy("Voice"),
    Dimension.MEMBER: gettext_lazy("Member"),
    Dimension.KEY: gettext_lazy("API key"),
    Dimension.DEVICE_CLASS: gettext_lazy("Class of device"),
    Dimension.JOB_CLASS: gettext_lazy("Urgency"),
}


@dataclass(frozen=True)
class Line:
    name: str
    sums: Sums


@dataclass(frozen=True)
class Part:
    """A table: a time's usage by one dimension. Its lines add up to the total, that of all others included."""

    id: str
    title: str | Promise
    head: str | Promise
    lines: list[Line]
    csv_address: str


@dataclass(frozen=True)
class BudgetRow:
    """A budget, whose it is in words, and how it stands."""

    use: BudgetUse
    name: str
    tone: str
    dialog_id: str
    change_address: str

    @property
    def shown_percent(self) -> int:
        return min(100, self.use.percent)


@dataclass(frozen=True)
class UsagePage:
    days: Days
    total: Sums
    currency: str
    chart: Chart
    parts: list[Part]
    budgets: list[BudgetRow]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was used, and nothing given back, in these days."""
        return not any(part.lines for part in self.parts)


def read_usage_page(workspace: Workspace, days: Days, measure: Measure) -> UsagePage:
    """The number of queries does not depend on how much there is, but for two for each budget."""
    currency = currency_of(workspace.pk)
    usage = usage_of(workspace.pk, days.first, days.last)
    return UsagePage(
        days=days,
        total=usage.total,
        currency=currency,
        chart=usage_chart(
            usage,
            days=days.shown,
            measure=measure,
            currency=currency,
            csv_address=csv_address(days, BY_DAY_AND_DEVICE_CLASS),
        ),
        parts=[_part(workspace, usage, dimension, days) for dimension in TITLES],
        budgets=budget_rows(workspace),
    )


def csv_address(days: Days, by: str) -> str:
    """Where those days' usage is as a file."""
    query = {"period": "days", "first": days.first.isoformat(), "last": days.last.isoformat()}
    return f"{reverse('usage')}?{urlencode({**query, 'by': by, 'format': 'csv'})}"


def _part(workspace: Workspace, usage: Usage, dimension: Dimension, days: Days) -> Part:
    every = ordered(dimension, usage.parts[dimension])
    shown, rest = every[:LINES_SHOWN], every[LINES_SHOWN:]
    names = names_of(workspace, dimension, [key for key, _sums in shown])
    lines = [Line(names[key], sums) for key, sums in shown]
    if rest:
        others = _("%(count)d others") % {"count": len(rest)}
        lines.append(Line(others, total_of(sums for _key, sums in rest)))
    return Part(
        id=f"by-{dimension.value.replace('_', '-')}",
        title=TITLES[dimension],
        head=HEADS[dimension],
        lines=lines,
        csv_address=csv_address(days, dimension.value),
    )


def budget_rows(workspace: Workspace) -> list[BudgetRow]:
    """The workspace's budgets in this month, each with its owner's name."""
    uses = budgets_of(workspace.pk)
    names = {
        dimension: names_of(
            workspace, dimension, [use.budget.subject_id for use in uses if use.budget.scope == scope]
        )
        for scope, dimension in ((BudgetScope.MEMBER, Dimension.MEMBER), (BudgetScope.API_KEY, Dimension.KEY))
    }
    return [
        BudgetRow(
            use=use,
            name=_whose(use, names),
            tone="bad" if use.percent >= 100 else "warn" if use.percent >= use.budget.warn_percent else "ok",
            dialog_id=f"remove-{use.budget.pk}",
            change_address=f"{reverse('usage')}?budget={use.budget.pk}#budget",
        )
        for use in uses
    ]


def _whose(use: BudgetUse, names: dict[Dimension, dict[Key, str]]) -> str:
    if use.budget.scope == BudgetScope.WORKSPACE:
        return _("The whole workspace")
    dimension = Dimension.MEMBER if use.budget.scope == BudgetScope.MEMBER else Dimension.KEY
    return names[dimension][use.budget.subject_id]
