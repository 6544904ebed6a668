"""Writing down what was consumed."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from billing.models import UsageRecord


def record_usage(record: UsageRecord) -> bool:
    """Store the attempt's usage; False when it was stored before (one row per attempt). Call inside a transaction."""
    try:
        # The savepoint keeps the caller's transaction usable after a duplicate.
        with transaction.atomic():
            record.save(force_insert=True)
    except IntegrityError:
        return False
    return True
