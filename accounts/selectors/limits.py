"""How much a workspace may ask for at once: its own limits, else the platform's."""

from __future__ import annotations

from django.conf import settings

from accounts.models import Workspace


def queued_jobs_limit(workspace: Workspace) -> int:
    """How many jobs the workspace may have waiting and running at the same time."""
    own = workspace.queued_jobs_limit
    limit: int = settings.VOICEPOOL["QUEUED_JOBS_PER_WORKSPACE"] if own is None else own
    return limit
