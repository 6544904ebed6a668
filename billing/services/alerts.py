"""Telling people and their programs that a budget or the balance runs out: written down once, mailed, and sent to the
workspace's webhooks."""

from __future__ import annotations

import logging
import smtplib
import uuid
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.utils import translation

from accounts.models import User
from accounts.selectors.people import people_who_pay
from accounts.services.webhook_events import note_fact
from accounts.webhooks.catalogue import BALANCE_LOW, BUDGET_HARD_REACHED, BUDGET_SOFT_REACHED
from billing.models import (
    AlertKind,
    BillingAlert,
    BillingProfile,
    Budget,
    BudgetScope,
    CreditAccount,
    CreditGrant,
)
from billing.periods import month_at
from billing.selectors.balances import time_zone_of
from billing.selectors.budgets import use_of
from portal.lib.clock import now
from portal.lib.display import money_text
from portal.lib.mail_refusals import is_about_this_mail

logger = logging.getLogger(__name__)
MAILS_AT_ONCE = 100
# What programs are told of.
EVENTS = {
    AlertKind.BUDGET_WARNING: BUDGET_SOFT_REACHED,
    AlertKind.BUDGET_REACHED: BUDGET_HARD_REACHED,
    AlertKind.LOW_BALANCE: BALANCE_LOW,
}


def raise_alerts() -> int:
    """Write down what people are to be told now; returns how much of it is new. For the clock, once a minute."""
    return _budget_alerts() + _low_balance_alerts()


def mail_alerts() -> int:
    """Mail what has not been mailed; returns how many. When the mail server is away, a minute later again."""
    sent = 0
    for alert in BillingAlert.objects.filter(mailed_at__isnull=True).order_by("created_at")[:MAILS_AT_ONCE]:
        try:
            for user in people_who_pay(alert.workspace_id):
                _mail_unless_refused(alert, user)
        except (OSError, smtplib.SMTPException) as error:
            # Not this one alone: whoever cannot be reached for one mail is not tried for a hundred.
            logger.warning("alerts_not_mailed", extra={"error": type(error).__name__})
            break
        sent += BillingAlert.objects.filter(pk=alert.pk, mailed_at__isnull=True).update(mailed_at=Now())
    return sent


def _mail_unless_refused(alert: BillingAlert, user: User) -> None:
    """A mail that the server will never take keeps nobody else from being told, and is not tried again."""
    try:
        _mail(alert, user)
    except smtplib.SMTPException as error:
        if not is_about_this_mail(error):
            raise
        logger.warning("alert_address_refused", extra={"alert_id": alert.pk, "user_id": user.pk})


def watch() -> None:
    """Both, one after the other: a task of the clock."""
    raise_alerts()
    mail_alerts()


def _budget_alerts() -> int:
    raised = 0
    for budget in Budget.objects.order_by("workspace_id"):
        month = month_at(now(), time_zone_of(budget.workspace_id))
        use = use_of(budget, month)
        if use.percent >= 100:
            kind, threshold = AlertKind.BUDGET_REACHED, 100
        elif use.percent >= budget.warn_percent:
            kind, threshold = AlertKind.BUDGET_WARNING, budget.warn_percent
        else:
            continue
        raised += _raise(
            budget.workspace_id,
            kind,
            # A budget that is set anew is another one.
            key=f"{budget.pk}:{budget.monthly_micros}:{month.first_day:%Y-%m}:{threshold}",
            details={
                "scope": budget.scope,
                "subject_id": str(budget.subject_id or ""),
                "budget_micros": budget.monthly_micros,
                "spent_micros": use.spent_micros,
                "is_hard": budget.is_hard,
                "budget_id": str(budget.pk),
                "month": f"{month.first_day:%Y-%m}",
                "threshold_percent": threshold,
            },
        )
    return raised


def _low_balance_alerts() -> int:
    raised = 0
    for profile in BillingProfile.objects.filter(low_balance_micros__isnull=False):
        account = CreditAccount.objects.filter(pk=profile.workspace_id).first()
        threshold = profile.low_balance_micros or 0
        if account is None or account.available_micros + account.held_micros >= threshold:
            continue
        newest = CreditGrant.objects.filter(workspace_id=profile.workspace_id).order_by("-created_at").first()
        # Once until credit comes in again.
        raised += _raise(
            profile.workspace_id,
            AlertKind.LOW_BALANCE,
            key=f"low:{profile.workspace_id}:{threshold}:{newest.pk if newest else ''}",
            details={"available_micros": account.available_micros, "threshold_micros": threshold},
        )
    return raised


def _raise(workspace_id: uuid.UUID, kind: AlertKind, *, key: str, details: dict[str, Any]) -> int:
    with transaction.atomic():
        alert, made = BillingAlert.objects.get_or_create(
            key=key, defaults={"workspace_id": workspace_id, "kind": kind, "details": details}
        )
        if made:
            note_fact(workspace_id=workspace_id, event_type=EVENTS[kind], subject=alert.pk, data=details)
    return int(made)


def _mail(alert: BillingAlert, user: User) -> None:
    account = CreditAccount.objects.filter(pk=alert.workspace_id).first()
    currency = account.currency if account else CreditAccount().currency
    with translation.override(user.locale or settings.LANGUAGE_CODE):
        amounts = {
            name.removesuffix("_micros"): money_text(value, currency)
            for name, value in alert.details.items()
            if name.endswith("_micros")
        }
        scope = alert.details.get("scope", "")
        context = {
            "alert": alert,
            "amounts": amounts,
            "whose": BudgetScope(scope).label if scope else "",
            "is_hard": alert.details.get("is_hard", False),
            "base_url": settings.BASE_URL,
        }
        subject = render_to_string(f"billing/mail/{alert.kind}_subject.txt", context)
        body = render_to_string(f"billing/mail/{alert.kind}_message.txt", context)
        send_mail(" ".join(subject.split()), body, None, [user.email])
