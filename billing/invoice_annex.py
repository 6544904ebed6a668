"""The annex of an invoice: what every attempt was charged, and what was given back, as a CSV file.

Its amounts add up to the invoice's `usage_micros`, to the micro, however long after it is asked for: an invoice knows
the newest record and ledger entry that it had. Voices have their names of now beside their ids, which stay.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse

from billing.invoicing.numbers import number_text
from billing.models import Invoice, InvoiceState
from billing.periods import day_start, local_day
from billing.services.invoice_lines import late_from
from portal.lib.csv_export import ROWS_AT_ONCE, csv_stream
from portal.lib.money import micros_as_decimal

HEADER = (
    "kind",
    "day",
    "job_id",
    "attempt_id",
    "started_at",
    "finished_at",
    "device",
    "device_class",
    "job_class",
    "voice_id",
    "voice",
    "member_id",
    "api_key_id",
    "characters",
    "audio_ms",
    "gpu_ms",
    "price_version_id",
    "price_per_gpu_second",
    "rated",
    "charged",
    "currency",
)
# How voices are called, by their ids: they are no concern of billing's.
VoiceNames = Callable[[Iterable[uuid.UUID]], Mapping[uuid.UUID, str]]
# What ended in the period and was there when the invoice was made; and what ended before it, but came after the invoice
# before it was made.
_RECORDS = """
SELECT day, id, job_id, attempt_id, started_at, finished_at, device_name, device_class, job_class, voice_id, user_id,
    api_key_id, characters, audio_ms, gpu_ms, price_version_id, gpu_second_micros, rated_micros, charged_micros
FROM billing_usagerecord
WHERE workspace_id = %(workspace)s AND day BETWEEN %(late_from)s AND %(last_day)s
    AND (day, id) > (%(after_day)s::date, %(after)s) AND billable AND id <= %(newest)s
    AND (day >= %(first_day)s OR id > %(newest_before)s)
ORDER BY day, id LIMIT %(rows)s
"""
# The place of the voice's id in these rows.
_VOICE = 9
_REFUNDS = """
SELECT moved.created_at, moved.job_id, -back.amount FROM billing_ledgertransaction moved
CROSS JOIN LATERAL (
    SELECT MAX(id) AS id, SUM(amount_micros) AS amount FROM billing_ledgerentry
    WHERE transaction_id = moved.id AND account = 'available'
) AS back
WHERE moved.workspace_id = %(workspace)s AND moved.kind = 'refund' AND moved.job_id IS NOT NULL
    AND moved.created_at >= %(late_start)s AND moved.created_at < %(end)s AND back.id <= %(newest_entry)s
    AND (moved.created_at >= %(start)s OR back.id > %(newest_entry_before)s)
ORDER BY moved.created_at, moved.id
"""


def annex_response(
    request: HttpRequest, invoice: Invoice, *, voice_names: VoiceNames
) -> StreamingHttpResponse:
    """The annex as a file to save, `INV2026-000042.csv`: sent while it is read, one of the workspace's open streams.

    Raises TooManyStreams (portal.lib.sse).
    """
    return csv_stream(
        request,
        number_text(invoice.series, invoice.number) or "draft",
        header=HEADER,
        pages=annex_pages(invoice, voice_names=voice_names),
        holder_id=invoice.workspace_id,
    )


def annex_pages(invoice: Invoice, *, voice_names: VoiceNames) -> Iterator[list[list[Any]]]:
    """The rows in pages, by day: a query for each, between which nothing is held. The note that corrects an invoice has
    none.

    Times are the workspace's own; amounts are in units of the currency, those of refunds negative.
    """
    if invoice.corrects_id is not None:
        return
    values = _bounds(invoice)
    zone = ZoneInfo(invoice.time_zone)
    names: dict[uuid.UUID, str] = {}
    while rows := _read(_RECORDS, values):
        values["after_day"], values["after"] = rows[-1][0], rows[-1][1]
        names.update(voice_names({row[_VOICE] for row in rows} - names.keys()))
        yield [_record_row(row, zone, invoice.currency, names) for row in rows]
    refunds = _read(_REFUNDS, values)
    if refunds:
        yield [_refund_row(row, zone, invoice.currency) for row in refunds]


def _read(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _bounds(invoice: Invoice) -> dict[str, Any]:
    zone = invoice.time_zone
    after = local_day(invoice.period_end, zone)
    last_day = after.fromordinal(after.toordinal() - 1)
    first_day = last_day.replace(day=1)
    late = late_from(first_day)
    before = (
        Invoice.objects.filter(
            workspace_id=invoice.workspace_id,
            corrects=None,
            state=InvoiceState.FINAL,
            period_end__lte=invoice.period_start,
        )
        .order_by("-period_end")
        .first()
    )
    is_final = invoice.state == InvoiceState.FINAL
    newest = 2**63 - 1
    return {
        "workspace": invoice.workspace_id,
        "late_from": late,
        "first_day": first_day,
        "last_day": last_day,
        "late_start": day_start(late, zone),
        "start": invoice.period_start,
        "end": invoice.period_end,
        "newest": invoice.last_usage_id if is_final else newest,
        "newest_entry": invoice.last_entry_id if is_final else newest,
        "newest_before": before.last_usage_id if before is not None else 0,
        "newest_entry_before": before.last_entry_id if before is not None else 0,
        "after_day": late,
        "after": 0,
        "rows": ROWS_AT_ONCE,
    }


def _record_row(
    row: tuple[Any, ...], zone: ZoneInfo, currency: str, names: Mapping[uuid.UUID, str]
) -> list[Any]:
    day, _id, job_id, attempt_id, started_at, finished_at, *what = row
    device, device_class, job_class, voice_id, *measured, rate, rated, charged = what
    return [
        "speech",
        day.isoformat(),
        job_id,
        attempt_id,
        started_at.astimezone(zone),
        finished_at.astimezone(zone),
        device,
        device_class,
        job_class,
        voice_id,
        names.get(voice_id),
        *measured,
        *(micros_as_decimal(amount) for amount in (rate, rated, charged)),
        currency,
    ]


def _refund_row(row: tuple[Any, ...], zone: ZoneInfo, currency: str) -> list[Any]:
    created_at, job_id, amount = row
    moment: datetime = created_at.astimezone(zone)
    nothing = [None] * (len(HEADER) - 8)
    return [
        "refund",
        moment.date().isoformat(),
        job_id,
        None,
        None,
        moment,
        *nothing,
        micros_as_decimal(int(amount)),
        currency,
    ]
