"""Making workspaces."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models.functions import Now

from accounts.models import Membership, Role, User, Workspace, WorkspaceKind


@transaction.atomic
def create_personal_workspace(*, user: User) -> Workspace:
    """The user's personal workspace, made when there is none. Locks the user's row, so two calls make one."""
    User.objects.select_for_update().get(pk=user.pk)
    existing = Workspace.objects.filter(
        kind=WorkspaceKind.PERSONAL, memberships__user=user, memberships__role=Role.OWNER
    ).first()
    if existing is not None:
        return existing
    # The part of the address before the @ is what the person will recognise; they can rename it.
    workspace = Workspace.objects.create(name=user.email.partition("@")[0][:100], kind=WorkspaceKind.PERSONAL)
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    return workspace


@transaction.atomic
def platform_workspace() -> Workspace:
    """The platform's own workspace, which nobody is a member of; made when there is none."""
    existing = Workspace.objects.filter(kind=WorkspaceKind.PLATFORM).order_by("created_at").first()
    return existing or Workspace.objects.create(name="VoicePool", kind=WorkspaceKind.PLATFORM)


def put_limits_in_force(
    *,
    workspace_id: uuid.UUID,
    weight: int,
    queued_jobs: int | None,
    running_segments: int | None,
    requests_per_minute: int | None,
    characters_per_day: int | None,
    voices: int | None,
    storage_bytes: int | None,
    longest_job_characters: int | None,
    retention_days: int | None,
) -> None:
    """Write the limits that hold for a workspace from now on; None is the platform's own. A workspace that is gone is
    left alone."""
    Workspace.objects.filter(pk=workspace_id).update(
        weight=weight,
        queued_jobs_limit=queued_jobs,
        running_segments_limit=running_segments,
        requests_per_minute_limit=requests_per_minute,
        characters_per_day_limit=characters_per_day,
        voices_limit=voices,
        storage_bytes_limit=storage_bytes,
        longest_job_characters_limit=longest_job_characters,
        retention_days=retention_days,
    )


def suspend_workspace(*, workspace_id: uuid.UUID) -> bool:
    """From now on its people and keys are refused; False, and nothing changed, when it is suspended or gone.

    What it has queued is still spoken, and nothing is deleted.
    """
    return bool(
        Workspace.objects.filter(pk=workspace_id, suspended_at__isnull=True).update(suspended_at=Now())
    )


def unsuspend_workspace(*, workspace_id: uuid.UUID) -> bool:
    """Let it work again; False, and nothing changed, when it is not suspended or gone."""
    return bool(
        Workspace.objects.filter(pk=workspace_id, suspended_at__isnull=False).update(suspended_at=None)
    )
