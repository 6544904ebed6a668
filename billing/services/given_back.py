"""What was billed goes back in two ways, by refunds of jobs and by credit notes: never more than it was, both together.

A note says an amount and no job. So once an invoice has notes, they count as usage first: its jobs are refunded as far
as their usage is more than the notes, and what else is to go back is another note. A note is at most what the invoice
charged less earlier notes and what its jobs were given back since. Without tax where that came on top: what is given
back for a job takes its tax off the next invoice.

Everything here needs the lock of the credit account, which refunds and notes hold to their end.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

from django.db import connection
from django.db.models import F, Sum

from billing.models import Invoice, InvoiceKind

# A job is on what closed a month, an invoice or a note of all of it, and was the first to have its newest record.
_OF_JOB: Final = """
SELECT invoice.id FROM (
    SELECT id, day, workspace_id FROM billing_usagerecord WHERE job_id = %(job)s AND billable ORDER BY id DESC LIMIT 1
) AS used
JOIN billing_invoice invoice ON invoice.workspace_id = used.workspace_id AND invoice.corrects_id IS NULL
    AND invoice.state = 'final' AND invoice.last_usage_id >= used.id
    AND (invoice.period_end AT TIME ZONE invoice.time_zone)::date > used.day
ORDER BY invoice.period_end LIMIT 1
"""
# What was given back of jobs on the invoice, and is not on it.
_SINCE: Final = """
SELECT COALESCE(SUM(back.amount), 0)::bigint FROM billing_ledgertransaction moved
CROSS JOIN LATERAL (
    SELECT MAX(id) AS id, SUM(amount_micros) AS amount FROM billing_ledgerentry
    WHERE transaction_id = moved.id AND account = 'available'
) AS back
CROSS JOIN LATERAL (
    SELECT id, day FROM billing_usagerecord WHERE job_id = moved.job_id AND billable ORDER BY id DESC LIMIT 1
) AS used
WHERE moved.workspace_id = %(workspace)s AND moved.kind = 'refund' AND moved.job_id IS NOT NULL
    AND moved.created_at >= %(start)s AND (moved.created_at >= %(end)s OR back.id > %(last_entry)s)
    AND used.id <= %(last_usage)s AND used.day < (%(end)s AT TIME ZONE %(zone)s)::date
    AND NOT EXISTS (
        SELECT FROM billing_invoice earlier
        WHERE earlier.workspace_id = %(workspace)s AND earlier.corrects_id IS NULL AND earlier.state = 'final'
            AND earlier.period_end < %(end)s AND earlier.last_usage_id >= used.id
            AND (earlier.period_end AT TIME ZONE earlier.time_zone)::date > used.day
    )
"""


def left_for_job(job_id: uuid.UUID) -> int | None:
    """How much of its invoice's usage may still go back to a job, in micros; None where no note says anything of it."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_JOB, {"job": job_id})
        row = cursor.fetchone()
    if row is None:
        return None
    invoice = Invoice.objects.get(pk=row[0])
    noted = noted_micros(invoice)
    if noted == 0:
        return None
    return max(0, invoice.usage_micros - noted - refunded_since(invoice))


def left_for_notes(invoice: Invoice) -> int:
    """How much a note on the invoice may still give back, in micros, without a tax that came on top."""
    charged = invoice.fee_micros + invoice.usage_micros
    return max(0, charged - noted_micros(invoice) - refunded_since(invoice))


def noted_micros(invoice: Invoice) -> int:
    """What credit notes gave back of the invoice, without a tax that came on top."""
    notes = Invoice.objects.filter(corrects=invoice, kind=InvoiceKind.CREDIT_NOTE)
    amount = F("total_micros") if invoice.tax_inclusive else F("net_micros")
    total: int | None = notes.aggregate(total=Sum(amount))["total"]
    return total or 0


def refunded_since(invoice: Invoice) -> int:
    """What jobs on the invoice were given back, and the invoice does not say."""
    values: dict[str, Any] = {
        "workspace": invoice.workspace_id,
        "start": invoice.period_start,
        "end": invoice.period_end,
        "zone": invoice.time_zone,
        "last_usage": invoice.last_usage_id,
        "last_entry": invoice.last_entry_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SINCE, values)
        refunded: int = cursor.fetchone()[0]
    return refunded
