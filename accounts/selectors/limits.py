"""How much a workspace may ask for: what its plan says, else the platform's own limits."""

from __future__ import annotations

from django.conf import settings

from accounts.models import Workspace


def queued_jobs_limit(workspace: Workspace) -> int:
    """How many jobs the workspace may have waiting and running at the same time."""
    return _own_or(workspace.queued_jobs_limit, "QUEUED_JOBS_PER_WORKSPACE")


def requests_per_minute_limit(workspace: Workspace) -> int:
    """How many requests to the API the workspace may make in a minute."""
    return _own_or(workspace.requests_per_minute_limit, "REQUESTS_PER_MINUTE")


def voices_limit(workspace: Workspace) -> int:
    """How many cloned voices the workspace may keep."""
    return _own_or(workspace.voices_limit, "VOICES_PER_WORKSPACE")


def _own_or(own: int | None, setting: str) -> int:
    limit: int = settings.VOICEPOOL[setting] if own is None else own
    return limit
