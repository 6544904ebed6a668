"""Making workspaces."""

from __future__ import annotations

from django.db import transaction

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
