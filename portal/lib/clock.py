"""The one source of now. Leases are compared by the database's clock, everything shown uses this."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone


def now() -> datetime:
    return timezone.now()


def database_now() -> datetime:
    """The database's clock, aware. All processes on all hosts agree on it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
