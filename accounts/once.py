"""Forms that must not be taken twice, such as those whose answer shows a secret this once."""

from __future__ import annotations

from django.core.cache import cache
from django.http import HttpRequest

# Reloading the page that shows a new key must not make another.
FORM_REMEMBERED_SECONDS = 24 * 3600


def is_first_time(request: HttpRequest) -> bool:
    """Whether this very form is sent for the first time. Each rendering carries its own id in `form_id`."""
    form_id = request.POST.get("form_id", "")[:36]
    return cache.add(f"form-sent:{request.user.pk}:{form_id}", True, FORM_REMEMBERED_SECONDS)
