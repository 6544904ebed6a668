"""How much is left, and what do I owe?

Every member sees the balance, the credit that it is made of, the ledger and the plan: they spend it. Payments, ways to
pay, invoices and who is billed are for owners and the billing role, who alone change anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.tenancy import may_manage_money, require_workspace
from billing.models import CreditGrant
from billing.selectors.balances import balance_of
from billing.selectors.grants import grants_left
from billing.selectors.ledger import transactions_of
from billing.selectors.plans import current_subscription, waiting_change
from portal.lib.clock import now
from portal.money.ledger_words import ledger_lines
from portal.money.plan_page import plan_facts

NEWEST_MOVEMENTS = 8
GRANTS_SHOWN = 100


@dataclass(frozen=True)
class GrantRow:
    """Credit that is not spent. `ends_soon`: within a week."""

    grant: CreditGrant
    ends_soon: bool


@login_required
@never_cache
@require_safe
def billing(request: HttpRequest) -> HttpResponse:
    workspace = require_workspace(request)
    moment = now()
    subscription = current_subscription(workspace.pk)
    plan = subscription.plan_version if subscription is not None else None
    context = {
        "balance": balance_of(workspace.pk),
        "grants": [
            GrantRow(grant, _ends_soon(grant, moment)) for grant in grants_left(workspace.pk)[:GRANTS_SHOWN]
        ],
        "lines": ledger_lines(workspace, transactions_of(workspace.pk)[:NEWEST_MOVEMENTS]),
        "plan": plan,
        "waiting": waiting_change(workspace.pk),
        "facts": plan_facts(plan)[:3] if plan is not None else [],
        "may_manage": may_manage_money(request),
    }
    return render(request, "billing/billing.html", context)


def _ends_soon(grant: CreditGrant, moment: datetime) -> bool:
    return grant.expires_at is not None and (grant.expires_at - moment).days < 7
