"""Making drafts final: the fee and the tax are taken, what is due is known, and each gets its number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import connection

from accounts.selectors.people import workspace_names
from accounts.services.webhook_events import Fact, note_facts
from accounts.webhooks.catalogue import INVOICE_FINALIZED
from billing.invoicing.numbers import series_of
from billing.models import GRANT_PRIORITY, BillingProfile, GrantKind, Invoice, InvoiceKind, InvoiceSeries
from billing.services.invoice_lines import DraftOf

_THESE = "WHERE invoice.id = ANY(%(invoices)s::uuid[])"
_TAKE_FEES = f"""
SELECT billing_charge_invoice(
    invoice.workspace_id, invoice.fee_micros, 'fee', 'invoice-fee:' || invoice.id, 'revenue'
) FROM billing_invoice invoice {_THESE} AND invoice.fee_micros > 0
"""  # noqa: S608 - put together of constants
# A tax that is contained in the prices was taken with them; that of a credit note goes back.
_TAKE_TAXES = f"""
SELECT CASE invoice.kind WHEN 'invoice' THEN billing_charge_invoice(
    invoice.workspace_id, invoice.tax_micros, 'tax', 'invoice-tax:' || invoice.id, 'tax'
) ELSE billing_add_grant(
    gen_random_uuid(), invoice.workspace_id, 'paid', invoice.tax_micros, %(paid_priority)s, NULL, 'tax',
    'invoice-tax:' || invoice.id, 'tax', ''
) END FROM billing_invoice invoice {_THESE} AND invoice.tax_micros <> 0 AND NOT invoice.tax_inclusive
"""  # noqa: S608 - put together of constants
# What is owed for speech after the period is looked up only where anything is owed.
_SETTLE = """
UPDATE billing_invoice invoice SET
    due_micros = CASE invoice.kind WHEN 'invoice' THEN GREATEST(debt.owed - debt.newer, 0) ELSE 0 END,
    prepaid_micros = invoice.total_micros
        - CASE invoice.kind WHEN 'invoice' THEN GREATEST(debt.owed - debt.newer, 0) ELSE 0 END
FROM (
    SELECT mine.id, older.owed, CASE WHEN older.owed <= 0 THEN 0 ELSE (
        SELECT COALESCE(SUM(record.charged_micros - covered.amount), 0)
        FROM billing_usagerecord record
        CROSS JOIN LATERAL (
            SELECT COALESCE(SUM(use.amount_micros), 0) AS amount
            FROM billing_ledgertransaction moved JOIN billing_grantuse use ON use.transaction_id = moved.id
            WHERE moved.idempotency_key = 'capture:' || record.attempt_id
        ) AS covered
        WHERE record.workspace_id = mine.workspace_id AND record.day > %(last_day)s AND record.charged_micros > 0
    ) END AS newer
    FROM billing_invoice mine
    CROSS JOIN LATERAL (
        SELECT account.owed_micros - COALESCE((
            SELECT SUM(other.due_micros - other.paid_micros) FROM billing_invoice other
            WHERE other.workspace_id = mine.workspace_id AND other.state = 'final'
                AND other.due_micros > other.paid_micros
        ), 0) AS owed
        FROM billing_creditaccount account WHERE account.workspace_id = mine.workspace_id
    ) AS older
    WHERE mine.id = ANY(%(invoices)s::uuid[])
) AS debt
WHERE invoice.id = debt.id
"""
_NUMBER = """
UPDATE billing_invoice invoice SET state = 'final', series = %(series)s, number = given.number, parties = given.parties,
    due_at = given.due_at, finalized_at = %(moment)s,
    last_usage_id = COALESCE((SELECT MAX(id) FROM billing_usagerecord), 0),
    last_entry_id = COALESCE((SELECT MAX(id) FROM billing_ledgerentry), 0)
FROM unnest(%(invoices)s::uuid[], %(numbers)s::bigint[], %(parties)s::jsonb[], %(due)s::timestamptz[])
    AS given (id, number, parties, due_at)
WHERE invoice.id = given.id AND invoice.state = 'draft'
"""


def finalize(drafts: Sequence[DraftOf], moment: datetime) -> None:
    """Make the drafts of one month final. Needs the lock of their accounts, and takes that of the series at last.

    Raises RuntimeError, and the transaction has to be given up, when something of them was posted before.
    """
    if not drafts:
        return
    values: dict[str, Any] = {
        "invoices": [draft.invoice_id for draft in drafts],
        "last_day": drafts[0].period.last_day,
        "paid_priority": GRANT_PRIORITY[GrantKind.PAID],
    }
    with connection.cursor() as cursor:
        for statement in (_TAKE_FEES, _TAKE_TAXES):
            cursor.execute(statement, values)
            if any(outcome != "posted" for (outcome,) in cursor.fetchall()):
                raise RuntimeError("a draft's fee or tax was posted before")
        cursor.execute(_SETTLE, values)
    kinds = dict(Invoice.objects.filter(pk__in=values["invoices"]).values_list("pk", "kind"))
    for kind in (InvoiceKind.INVOICE, InvoiceKind.CREDIT_NOTE):
        of_kind = [draft for draft in drafts if kinds[draft.invoice_id] == kind]
        if of_kind:
            _number(of_kind, kind, moment)
    final = Invoice.objects.filter(pk__in=values["invoices"])
    note_facts(
        Fact(invoice.workspace_id, INVOICE_FINALIZED, invoice.pk, _as_told(invoice)) for invoice in final
    )


def _as_told(invoice: Invoice) -> dict[str, Any]:
    """What programs are told of an invoice: its numbers, not who is billed."""
    return {
        "invoice_id": str(invoice.pk),
        "kind": invoice.kind,
        "series": invoice.series,
        "number": invoice.number,
        "currency": invoice.currency,
        "period_start": invoice.period_start.isoformat(),
        "period_end": invoice.period_end.isoformat(),
        "total_micros": invoice.total_micros,
        "prepaid_micros": invoice.prepaid_micros,
        "due_micros": invoice.due_micros,
        "due_at": invoice.due_at.isoformat() if invoice.due_at else None,
    }


def _number(drafts: Sequence[DraftOf], kind: InvoiceKind, moment: datetime) -> None:
    workspace_ids = [draft.workspace_id for draft in drafts]
    profiles = BillingProfile.objects.in_bulk(workspace_ids)
    names = workspace_names(workspace_ids)
    parties = []
    due = []
    for workspace_id in workspace_ids:
        profile = profiles.get(workspace_id) or BillingProfile(workspace_id=workspace_id)
        parties.append(json.dumps(parties_of(profile, names.get(workspace_id, ""))))
        due.append(moment + timedelta(days=profile.payment_days) if kind == InvoiceKind.INVOICE else None)
    series, last = next_numbers(kind, moment, count=len(drafts))
    with connection.cursor() as cursor:
        cursor.execute(
            _NUMBER,
            {
                "series": series,
                "moment": moment,
                "invoices": [draft.invoice_id for draft in drafts],
                "numbers": list(range(last - len(drafts) + 1, last + 1)),
                "parties": parties,
                "due": due,
            },
        )
        if cursor.rowcount != len(drafts):
            raise RuntimeError("a draft was made final by somebody else")


def next_numbers(kind: InvoiceKind, moment: datetime, *, count: int) -> tuple[str, int]:
    """The series and the last of its next `count` numbers.

    Its row stays locked to the end of the transaction: a number that is given up with it is given again, so there are
    no gaps.
    """
    series = series_of(kind, moment.astimezone(ZoneInfo(settings.TIME_ZONE)).year)
    InvoiceSeries.objects.bulk_create([InvoiceSeries(series=series)], ignore_conflicts=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE billing_invoiceseries SET last_number = last_number + %s WHERE series = %s RETURNING last_number",
            [count, series],
        )
        return series, cursor.fetchone()[0]


def parties_of(profile: BillingProfile, workspace_name: str) -> dict[str, dict[str, str]]:
    """Who bills whom, as it stands now."""
    return {
        "seller": dict(settings.INVOICE_SELLER),
        "buyer": {
            "name": profile.name or workspace_name or str(profile.workspace_id),
            "address": profile.address,
            "tax_number": profile.tax_number,
            "email": profile.email,
        },
    }
