"""How long lines are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from portal.lib.clock import now
from portal.logs.models import RequestLog

KEPT: Final = timedelta(days=30)
# At most so many go at once: a long absence of the clock must not make one long lock.
DELETED_AT_ONCE: Final = 20_000


def delete_old_lines() -> int:
    """Delete lines that are older than thirty days, some at a time; returns how many went. Called by the clock."""
    old = RequestLog.objects.filter(created_at__lt=now() - KEPT).order_by("created_at")
    deleted, _ = RequestLog.objects.filter(pk__in=old.values_list("pk")[:DELETED_AT_ONCE]).delete()
    return deleted
