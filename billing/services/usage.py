"""Writing down what was consumed."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from billing.models import UsageRecord
from portal.lib.uniqueness import is_duplicate


def record_usage(record: UsageRecord) -> bool:
    """Store the attempt's usage; False when it was stored before: one row per attempt.

    Call inside a transaction.

    Raises:
        IntegrityError: a negative quantity, or one that is missing.
    """
    try:
        # The savepoint keeps the caller's transaction usable after a duplicate.
        with transaction.atomic():
            record.save(force_insert=True)
    except IntegrityError as error:
        if not is_duplicate(error):
            raise
        return False
    return True
