"""Automatic top-up: the balance falls below a mark, and the saved method is charged.

One at a time (a unique constraint), not again within the cooldown, which a failure does not end, never more than the
cap in a calendar month of the workspace's, and off after three failures in a row.
"""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Now

from accounts.models import Workspace
from billing.amounts import check_payable
from billing.errors import AutomaticTopUpInvalid, NoPaymentMethod
from billing.models import (
    AlertKind,
    AutomaticTopUp,
    BillingAlert,
    CreditAccount,
    Payment,
    PaymentMethod,
    PaymentPurpose,
    PaymentState,
)
from billing.periods import month_at
from billing.services import payment_methods
from portal.lib.clock import database_now

logger = logging.getLogger(__name__)
FAILURES_BEFORE_OFF: Final = 3
# What one round charges at most: each waits for a provider.
AT_ONCE: Final = 20
COUNTED = (PaymentState.CREATED, PaymentState.UNKNOWN, PaymentState.SUCCEEDED)


def set_up(
    *,
    workspace_id: uuid.UUID,
    is_on: bool,
    below_micros: int,
    amount_micros: int,
    monthly_cap_micros: int,
) -> AutomaticTopUp:
    """Set when and how much is topped up. Turning it on forgets earlier failures, but not the cooldown.

    Raises:
        NoPaymentMethod: it is to be on, and nothing is saved to be charged.
        AutomaticTopUpInvalid: the cap is less than one top-up, or an amount negative.
        AmountInvalid, AmountNotPositive, AmountTooPrecise, AmountOutOfRange
    """
    currency = CreditAccount.objects.filter(pk=workspace_id).values_list("currency", flat=True).first()
    check_payable(amount_micros, currency or "CNY")
    if type(below_micros) is not int or type(monthly_cap_micros) is not int:
        raise AutomaticTopUpInvalid
    if not 0 <= below_micros < 2**62 or not amount_micros <= monthly_cap_micros < 2**62:
        raise AutomaticTopUpInvalid
    if is_on and payment_methods.default_method(workspace_id) is None:
        raise NoPaymentMethod
    rule, _made = AutomaticTopUp.objects.update_or_create(
        pk=workspace_id,
        defaults={
            "is_on": is_on,
            "below_micros": below_micros,
            "amount_micros": amount_micros,
            "monthly_cap_micros": monthly_cap_micros,
            "failures": 0,
        },
    )
    return rule


def due_workspaces() -> list[uuid.UUID]:
    """Workspaces whose balance is below their mark, and that nothing keeps from being topped up."""
    available = CreditAccount.objects.filter(pk=OuterRef("pk")).values("available_micros")
    alive = Workspace.objects.filter(suspended_at__isnull=True).values("pk")
    charged = PaymentMethod.objects.filter(is_default=True, removed_at__isnull=True).values("workspace_id")
    due = (
        AutomaticTopUp.objects.filter(is_on=True, pk__in=alive)
        .filter(Q(cooldown_until__isnull=True) | Q(cooldown_until__lte=Now()), pk__in=charged)
        .annotate(available=Subquery(available))
        .filter(available__lt=F("below_micros"))
    )
    return list(due.order_by("cooldown_until").values_list("pk", flat=True)[:AT_ONCE])


@transaction.atomic
def claim(*, workspace_id: uuid.UUID) -> Payment | None:
    """The payment of one top-up, stored and yet to be sent; None where there is to be none now.

    Whoever moves the cooldown has the top-up; it is kept whatever becomes of the payment.
    """
    moment = database_now()
    free = Q(cooldown_until__isnull=True) | Q(cooldown_until__lte=moment)
    cooldown = timedelta(seconds=settings.PAYMENTS["AUTOMATIC_TOP_UP_COOLDOWN_S"])
    if not AutomaticTopUp.objects.filter(free, pk=workspace_id, is_on=True).update(
        cooldown_until=moment + cooldown
    ):
        return None
    rule = AutomaticTopUp.objects.get(pk=workspace_id)
    account = CreditAccount.objects.get(pk=workspace_id)
    method = payment_methods.default_method(workspace_id)
    ours = Payment.objects.filter(workspace_id=workspace_id, purpose=PaymentPurpose.AUTOMATIC_TOP_UP)
    is_on_its_way = ours.filter(state__in=(PaymentState.CREATED, PaymentState.UNKNOWN)).exists()
    if method is None or is_on_its_way or account.available_micros >= rule.below_micros:
        return None
    month = month_at(moment, account.time_zone)
    spent = ours.filter(state__in=COUNTED, created_at__gte=month.start, created_at__lt=month.end).aggregate(
        total=Sum("amount_micros")
    )["total"]
    if (spent or 0) + rule.amount_micros > rule.monthly_cap_micros:
        _alert(
            workspace_id,
            AlertKind.AUTOMATIC_TOP_UP_CAP,
            f"top-up-cap:{workspace_id}:{month.first_day:%Y-%m}",
            rule,
            reason="cap",
        )
        return None
    payment_id = uuid.uuid4()
    return Payment.objects.create(
        pk=payment_id,
        workspace_id=workspace_id,
        provider=method.provider,
        purpose=PaymentPurpose.AUTOMATIC_TOP_UP,
        currency=account.currency,
        amount_micros=rule.amount_micros,
        idempotency_key=f"automatic:{payment_id}",
        method=method,
    )


def note_success(*, workspace_id: uuid.UUID) -> None:
    """A top-up was paid: the failures before it do not count any more. Call in the booking's transaction."""
    AutomaticTopUp.objects.filter(pk=workspace_id).update(failures=0)


def note_failure(*, payment: Payment) -> None:
    """A top-up was refused: the third in a row turns it off. Call in the transaction that ends the payment."""
    workspace_id = payment.workspace_id
    AutomaticTopUp.objects.filter(pk=workspace_id).update(failures=F("failures") + 1)
    if AutomaticTopUp.objects.filter(pk=workspace_id, is_on=True, failures__gte=FAILURES_BEFORE_OFF).update(
        is_on=False
    ):
        rule = AutomaticTopUp.objects.get(pk=workspace_id)
        _alert(
            workspace_id, AlertKind.AUTOMATIC_TOP_UP_OFF, f"top-up-off:{payment.pk}", rule, reason="failures"
        )
        logger.warning("automatic_top_up_off", extra={"workspace": workspace_id})


def turn_off_after_dispute(*, payment: Payment) -> None:
    """Whoever's bank took a payment back is not charged again without being asked."""
    workspace_id = payment.workspace_id
    if AutomaticTopUp.objects.filter(pk=workspace_id, is_on=True).update(is_on=False):
        rule = AutomaticTopUp.objects.get(pk=workspace_id)
        _alert(
            workspace_id, AlertKind.AUTOMATIC_TOP_UP_OFF, f"top-up-off:{payment.pk}", rule, reason="dispute"
        )


def _alert(workspace_id: uuid.UUID, kind: AlertKind, key: str, rule: AutomaticTopUp, *, reason: str) -> None:
    details = {
        "reason": reason,
        "amount_micros": rule.amount_micros,
        "monthly_cap_micros": rule.monthly_cap_micros,
    }
    BillingAlert.objects.bulk_create(
        [BillingAlert(workspace_id=workspace_id, kind=kind, key=key, details=details)], ignore_conflicts=True
    )
