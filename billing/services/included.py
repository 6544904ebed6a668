"""What plans include: credit for speech at the beginning of each period, gone at its end."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Sum

from billing.invoicing.proration import Segment, included_micros, segments_of
from billing.models import GRANT_PRIORITY, CreditAccount, CreditGrant, GrantKind
from billing.periods import Period, month_at
from billing.pricing import MS_PER_SECOND, Rate, price_gpu_ms
from billing.selectors.plans import subscriptions_within
from billing.selectors.prices import current_price, rate_for
from billing.services import ledger
from billing.services.invoice_lines import span_of
from billing.services.plan_changes import carry_out_due
from portal.lib.clock import database_now
from portal.lib.errors import DomainError

logger = logging.getLogger(__name__)

# Whoever is on a plan that includes something, and was not given it for the month that it is there.
_TO_GIVE = """
SELECT subscription.workspace_id FROM billing_subscription subscription
JOIN billing_planversion version ON version.id = subscription.plan_version_id AND version.included_gpu_seconds > 0
JOIN billing_creditaccount account ON account.workspace_id = subscription.workspace_id
WHERE subscription.ends_at IS NULL AND subscription.starts_at <= %(moment)s AND NOT EXISTS (
    SELECT 1 FROM billing_ledgertransaction given WHERE given.idempotency_key = 'included:' || subscription.id || ':'
        || to_char(date_trunc('month', %(moment)s AT TIME ZONE account.time_zone), 'YYYY-MM-DD')
)
ORDER BY subscription.workspace_id
"""


def grant_included(*, workspace_id: uuid.UUID, at: datetime | None = None) -> int:
    """Give what the workspace's plan includes in the month of `at` (None: now) and return those micros.

    Once for each subscription and month. A plan that was changed to within the month adds what all plans of the month
    include by their days (billing.invoicing.proration), if it is on to the month's end, less what was given before;
    nothing is taken back. At the price of interactive speech that is in force. Locks the credit account.
    """
    moment = at or database_now()
    with transaction.atomic():
        ledger.ensure_account(workspace_id=workspace_id)
        account = CreditAccount.objects.select_for_update(no_key=True).get(pk=workspace_id)
        carry_out_due(accounts=[account], at=moment)
        period = month_at(moment, account.time_zone)
        subscriptions = subscriptions_within(workspace_id, period.start, period.end)
        if not subscriptions or subscriptions[-1].ends_at is not None:
            return 0
        segments = segments_of(
            [span_of(subscription, period.time_zone) for subscription in subscriptions],
            first_day=period.first_day,
            last_day=period.last_day,
        )
        rate = rate_for(price=current_price(), job_class="interactive")
        priced = [
            Segment(
                _worth(segment.subject.plan_version.included_gpu_seconds, rate),
                segment.first_day,
                segment.last_day,
            )
            for segment in segments
        ]
        amount = included_micros(priced, period_days=period.days) - _given(workspace_id, period)
        key = f"included:{subscriptions[-1].pk}:{period.first_day.isoformat()}"
        return amount if amount > 0 and _give(workspace_id, amount, period, key) else 0


def grant_all_included(*, at: datetime) -> int:
    """Give every workspace what its plan includes in its month; returns to how many something was given.

    A refusal, such as for want of a price, is logged and keeps nobody else waiting.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TO_GIVE, {"moment": at})
        workspace_ids = [workspace_id for (workspace_id,) in cursor.fetchall()]
    return sum(_grant_if_possible(workspace_id, at) for workspace_id in workspace_ids)


def _grant_if_possible(workspace_id: uuid.UUID, at: datetime) -> bool:
    try:
        return grant_included(workspace_id=workspace_id, at=at) > 0
    except DomainError as error:
        # Nobody else waits for it: it is tried again in a minute.
        logger.error(
            "included_credit_refused", extra={"workspace_id": str(workspace_id), "error_code": error.code}
        )
        return False


def _worth(gpu_seconds: int, rate: Rate) -> int:
    return price_gpu_ms(gpu_ms=gpu_seconds * MS_PER_SECOND, rate=rate)


def _given(workspace_id: uuid.UUID, period: Period) -> int:
    """What was given for the period before, also where the zone was another then."""
    given = CreditGrant.objects.filter(
        workspace_id=workspace_id,
        kind=GrantKind.INCLUDED,
        transaction__idempotency_key__startswith="included:",
        transaction__idempotency_key__endswith=f":{period.first_day.isoformat()}",
    )
    return given.aggregate(total=Sum("amount_micros"))["total"] or 0


def _give(workspace_id: uuid.UUID, amount: int, period: Period, key: str) -> bool:
    outcome = ledger.call(
        "billing_grant_included(%s, %s, %s, %s, %s, %s)",
        [uuid.uuid4(), workspace_id, amount, GRANT_PRIORITY[GrantKind.INCLUDED], period.end, key],
    )
    return outcome == "posted"
