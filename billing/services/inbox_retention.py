"""How long the inbox keeps what it is done with."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models.functions import Now

from billing.models import ProviderEvent

# At most so many go at once: a long absence of the clock must not make one long lock.
DELETED_AT_ONCE: Final = 5_000


def delete_old_events() -> int:
    """Delete messages of providers that were worked on longer ago than PROVIDER_EVENTS_KEPT_DAYS, the oldest first,
    some at a time; returns how many went. One that was not worked on yet is kept however old it is.

    A message that came twice is told by its row: no provider repeats one for as long as the shortest sensible time.
    """
    kept = timedelta(days=settings.PAYMENTS["EVENTS_KEPT_DAYS"])
    old = ProviderEvent.objects.filter(processed_at__lt=Now() - kept).order_by("processed_at")
    # The condition once more: whoever is asked to work on one again takes it out of here.
    deleted, _ = ProviderEvent.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:DELETED_AT_ONCE]), processed_at__lt=Now() - kept
    ).delete()
    return deleted
