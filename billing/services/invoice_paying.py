"""What was paid of invoices. A trigger keeps it: what is owed no more has paid the oldest, or the one named here."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

from django.db import connection

_REOPEN = """
UPDATE billing_invoice invoice SET paid_micros = invoice.paid_micros - LEAST(
    invoice.paid_micros, %(amount)s, GREATEST(0, account.owed_micros - (
        SELECT COALESCE(SUM(other.due_micros - other.paid_micros), 0) FROM billing_invoice other
        WHERE other.workspace_id = invoice.workspace_id AND other.state = 'final'
    ))
)
FROM billing_creditaccount account
WHERE invoice.id = %(invoice)s AND account.workspace_id = invoice.workspace_id AND invoice.paid_micros > 0
"""


@contextlib.contextmanager
def paying(invoice_id: uuid.UUID | None) -> Iterator[None]:
    """Credit that comes in within it pays what is due on this invoice before older ones (None: the oldest first).

    Needs a transaction.
    """
    _pay_first(invoice_id)
    yield
    _pay_first(None)


def reopen(*, invoice_id: uuid.UUID | None, amount_micros: int) -> None:
    """Have so much of an invoice be due again, as its payment went back: as far as the wallet owes it now.

    Call under the account's lock, after the money was taken back. Nothing for None or for money that came.
    """
    if invoice_id is not None and amount_micros > 0:
        with connection.cursor() as cursor:
            cursor.execute(_REOPEN, {"invoice": invoice_id, "amount": amount_micros})


def _pay_first(invoice_id: uuid.UUID | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('billing.pay_first', %s, true)", [str(invoice_id or "")])
