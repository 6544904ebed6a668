"""Who in a workspace is to be told of something."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from accounts.models import Membership, Role, User, Workspace

# Who pays, sets budgets, chooses the plan and sees invoices and ways to pay.
MONEY_ROLES = (Role.OWNER, Role.BILLING)
# Who arranges what is not money: webhooks.
RUNNING_ROLES = (Role.OWNER, Role.ADMIN)


def people_who_pay(workspace_id: uuid.UUID) -> list[User]:
    """Owners and those who look after the bills; people whose sign-in was taken away are left out."""
    members = User.objects.filter(
        is_active=True, memberships__workspace_id=workspace_id, memberships__role__in=MONEY_ROLES
    )
    return list(members.distinct().order_by("date_joined"))


def people_who_run(workspace_id: uuid.UUID) -> list[User]:
    """Owners and administrators; people whose sign-in was taken away are left out."""
    members = User.objects.filter(
        is_active=True, memberships__workspace_id=workspace_id, memberships__role__in=RUNNING_ROLES
    )
    return list(members.distinct().order_by("date_joined"))


def runs_workspace(user: User, workspace_id: uuid.UUID) -> bool:
    """Whether the user is an owner or an administrator of the workspace."""
    return Membership.objects.filter(
        user=user, workspace_id=workspace_id, role__in=RUNNING_ROLES, user__is_active=True
    ).exists()


def workspace_names(workspace_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The names of those of the workspaces that there still are. One query."""
    return dict(Workspace.objects.filter(pk__in=workspace_ids).values_list("pk", "name"))


def looks_after_money(user: User, workspace_id: uuid.UUID) -> bool:
    """Whether the user is an owner of the workspace, or looks after its bills."""
    return Membership.objects.filter(
        user=user, workspace_id=workspace_id, role__in=MONEY_ROLES, user__is_active=True
    ).exists()


def members_of(workspace_id: uuid.UUID) -> list[User]:
    """Everybody who belongs to the workspace, by address."""
    return list(User.objects.filter(memberships__workspace_id=workspace_id).order_by("email"))
