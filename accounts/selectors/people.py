"""Who in a workspace is to be told of something."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from accounts.models import Role, User, Workspace


def people_who_pay(workspace_id: uuid.UUID) -> list[User]:
    """Owners and those who look after the bills; people whose sign-in was taken away are left out."""
    roles = [Role.OWNER, Role.BILLING]
    members = User.objects.filter(
        is_active=True, memberships__workspace_id=workspace_id, memberships__role__in=roles
    )
    return list(members.distinct().order_by("date_joined"))


def workspace_names(workspace_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
    """The names of those of the workspaces that there still are. One query."""
    return dict(Workspace.objects.filter(pk__in=workspace_ids).values_list("pk", "name"))
