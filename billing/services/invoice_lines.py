"""The lines of drafts, for many workspaces in one statement each.

A draft says what was charged by day and class of device (UsageDay) and what no invoice said before. So usage that was
settled after its month had been invoiced is on the next invoice, under its own day, and nothing is ever on two.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db import connection

from billing.errors import InvoiceCurrencyDiffers
from billing.invoicing.proration import Segment, Span, fee_parts, segments_of
from billing.models import InvoiceLine, LineKind, Subscription
from billing.periods import Period, local_day

# How far back usage that came late is looked for: so many whole months before the period.
LATE_MONTHS = 2

# Everything is looked up by index for one draft after the other, whatever the planner thinks of the tables' sizes: the
# OFFSET keeps each inner query a whole. Positions go on after the fees'.
_DRAFTS = "unnest(%(invoices)s::uuid[], %(workspaces)s::uuid[]) AS draft (invoice_id, workspace_id)"
_SAID_BEFORE = """
CROSS JOIN LATERAL (
    SELECT line.kind, line.day, line.device_class, line.gpu_ms, line.audio_ms, line.amount_micros
    FROM billing_invoice before JOIN billing_invoiceline line ON line.invoice_id = before.id
    WHERE before.workspace_id = draft.workspace_id AND before.corrects_id IS NULL AND before.state = 'final'
        AND before.period_end >= %(late_from)s AND line.day BETWEEN %(late_from)s AND %(last_day)s
    OFFSET 0
) AS said
"""
_USAGE_AND_REFUNDS = f"""
INSERT INTO billing_invoiceline (
    invoice_id, position, kind, day, device_class, description, gpu_ms, audio_ms, amount_micros
)
SELECT invoice_id, 1000 + row_number() OVER (PARTITION BY invoice_id ORDER BY kind DESC, day, device_class),
    kind, day, device_class, '', SUM(gpu_ms), SUM(audio_ms), SUM(amount)
FROM (
    SELECT draft.invoice_id, each.kind, used.day, used.device_class,
        CASE each.kind WHEN 'usage' THEN used.gpu_ms ELSE 0 END AS gpu_ms,
        CASE each.kind WHEN 'usage' THEN used.audio_ms ELSE 0 END AS audio_ms,
        CASE each.kind WHEN 'usage' THEN used.charged ELSE -used.refunded END AS amount
    FROM {_DRAFTS}
    CROSS JOIN LATERAL (
        SELECT day, device_class, SUM(gpu_ms) AS gpu_ms, SUM(audio_ms) AS audio_ms, SUM(charged_micros) AS charged,
            SUM(refunded_micros) AS refunded
        FROM billing_usageday
        WHERE workspace_id = draft.workspace_id AND day BETWEEN %(late_from)s AND %(last_day)s AND billable
        GROUP BY day, device_class
    ) AS used
    CROSS JOIN (VALUES ('usage'), ('refund')) AS each (kind)
    UNION ALL
    SELECT draft.invoice_id, said.kind, said.day, said.device_class, -said.gpu_ms, -said.audio_ms, -said.amount_micros
    FROM {_DRAFTS} {_SAID_BEFORE} WHERE said.kind IN ('usage', 'refund')
) AS moved
GROUP BY invoice_id, kind, day, device_class
HAVING SUM(amount) <> 0
"""  # noqa: S608 - put together of constants

# What given credit covered of that, by day: from the grants, as most speech is paid. A charge is one transaction, named
# by its attempt (`capture:<attempt>`); a refund is dated by itself. A grant that ended long before is spent no more.
_DISCOUNTS = f"""
INSERT INTO billing_invoiceline (
    invoice_id, position, kind, day, device_class, description, gpu_ms, audio_ms, amount_micros
)
SELECT invoice_id, 100000 + row_number() OVER (PARTITION BY invoice_id ORDER BY day),
    'discount', day, '', '', 0, 0, -SUM(given)
FROM (
    WITH touched AS MATERIALIZED (
        SELECT draft.invoice_id, draft.workspace_id, line.day
        FROM {_DRAFTS}
        CROSS JOIN LATERAL (
            SELECT DISTINCT day FROM billing_invoiceline WHERE invoice_id = draft.invoice_id AND day IS NOT NULL
        ) AS line
    )
    SELECT touched.invoice_id, touched.day, spent.amount_micros AS given
    FROM (SELECT DISTINCT invoice_id, workspace_id FROM touched) AS draft
    CROSS JOIN LATERAL (
        SELECT record.day, use.amount_micros
        FROM billing_creditgrant credit
        JOIN billing_grantuse use ON use.grant_id = credit.id
        JOIN billing_ledgertransaction moved ON moved.id = use.transaction_id AND moved.kind = 'capture'
            AND moved.created_at >= %(late_from)s::date - 2
        JOIN billing_usagerecord record ON record.attempt_id = substr(moved.idempotency_key, 9)::uuid
        WHERE credit.workspace_id = draft.workspace_id AND credit.kind <> 'paid'
            AND (credit.expires_at IS NULL OR credit.expires_at >= %(late_from)s::date - 31)
        OFFSET 0
    ) AS spent
    JOIN touched ON touched.invoice_id = draft.invoice_id AND touched.day = spent.day
    UNION ALL
    SELECT touched.invoice_id, touched.day, back.amount_micros
    FROM touched
    CROSS JOIN LATERAL (
        SELECT use.amount_micros
        FROM billing_ledgertransaction moved
        JOIN billing_grantuse use ON use.transaction_id = moved.id
        JOIN billing_creditgrant credit ON credit.id = use.grant_id AND credit.kind <> 'paid'
        WHERE moved.workspace_id = touched.workspace_id AND moved.kind = 'refund'
            AND moved.created_at >= touched.day - 2 AND moved.created_at < touched.day + 3
            AND billing_day(moved.workspace_id, moved.created_at) = touched.day
        OFFSET 0
    ) AS back
    UNION ALL
    SELECT draft.invoice_id, said.day, said.amount_micros
    FROM {_DRAFTS} {_SAID_BEFORE}
    WHERE said.kind = 'discount' AND (draft.invoice_id, said.day) IN (SELECT invoice_id, day FROM touched)
) AS moved
GROUP BY invoice_id, day
HAVING SUM(given) <> 0
"""  # noqa: S608 - put together of constants


@dataclass(frozen=True)
class DraftOf:
    """A draft's id, whose it is, and what it is about. `currency`: the wallet's."""

    invoice_id: uuid.UUID
    workspace_id: uuid.UUID
    period: Period
    currency: str


def late_from(first_day: date) -> date:
    """The first day whose usage may still be put on the invoice of the month that begins on `first_day`."""
    for _ in range(LATE_MONTHS):
        first_day = (first_day - timedelta(days=1)).replace(day=1)
    return first_day


def write_lines(drafts: Sequence[DraftOf]) -> None:
    """Write the lines of drafts of one month that have none. Needs the lock of their accounts to be final.

    Raises InvoiceCurrencyDiffers: a plan's fee is in another currency than the wallet.
    """
    if not drafts:
        return
    InvoiceLine.objects.bulk_create(list(_fee_lines(drafts)))
    period = drafts[0].period
    values: dict[str, Any] = {
        "invoices": [draft.invoice_id for draft in drafts],
        "workspaces": [draft.workspace_id for draft in drafts],
        "late_from": late_from(period.first_day),
        "last_day": period.last_day,
    }
    with connection.cursor() as cursor:
        cursor.execute(_USAGE_AND_REFUNDS, values)
        cursor.execute(_DISCOUNTS, values)


def _fee_lines(drafts: Sequence[DraftOf]) -> Iterable[InvoiceLine]:
    subscriptions: dict[uuid.UUID, list[Subscription]] = {draft.workspace_id: [] for draft in drafts}
    # No zone is more than a day away from another.
    begun_before = max(draft.period.end for draft in drafts)
    for subscription in (
        Subscription.objects.select_related("plan_version__plan")
        .filter(workspace_id__in=list(subscriptions), starts_at__lt=begun_before)
        .exclude(ends_at__lte=min(draft.period.start for draft in drafts))
        .order_by("starts_at", "created_at")
    ):
        subscriptions[subscription.workspace_id].append(subscription)
    for draft in drafts:
        yield from _fees_of(draft, subscriptions[draft.workspace_id])


def _fees_of(draft: DraftOf, subscriptions: Sequence[Subscription]) -> Iterable[InvoiceLine]:
    period = draft.period
    segments = segments_of(
        [span_of(subscription, period.time_zone) for subscription in subscriptions],
        first_day=period.first_day,
        last_day=period.last_day,
    )
    versions = [segment.subject.plan_version for segment in segments]
    if any(version.monthly_fee_micros and version.currency != draft.currency for version in versions):
        raise InvoiceCurrencyDiffers(workspace=draft.workspace_id)
    fees = [version.monthly_fee_micros for version in versions]
    priced = [
        Segment(fee, segment.first_day, segment.last_day) for segment, fee in zip(segments, fees, strict=True)
    ]
    parts = fee_parts(priced, period_days=period.days)
    for position, (segment, part) in enumerate(zip(segments, parts, strict=True), start=1):
        if part:
            yield InvoiceLine(
                invoice_id=draft.invoice_id,
                position=position,
                kind=LineKind.FEE,
                day=None,
                description=f"{segment.subject.plan_version.plan.name} "
                f"({segment.first_day.isoformat()} – {segment.last_day.isoformat()})",
                amount_micros=part,
            )


def span_of(subscription: Subscription, time_zone: str) -> Span[Subscription]:
    """The local days of a subscription."""
    ends = subscription.ends_at
    return Span(
        subscription,
        local_day(subscription.starts_at, time_zone),
        None if ends is None else local_day(ends, time_zone),
    )
