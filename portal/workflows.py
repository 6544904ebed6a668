"""The few flows that cross the apps upward: accounts must not know billing, so their meeting is here."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from accounts.models import User, Workspace
from accounts.services.workspaces import create_personal_workspace
from billing.services.grants import grant_welcome_credit
from billing.services.plans import subscribe_to_default


def open_account(*, user: User) -> Workspace:
    """The new user's personal workspace, on the plan that workspaces begin with.

    Holds no credit yet: an address must be verified first.
    """
    with transaction.atomic():
        workspace = create_personal_workspace(user=user)
        subscribe_to_default(workspace_id=workspace.pk)
    return workspace


@transaction.atomic
def welcome(*, user: User) -> None:
    """Give the user's personal workspace its welcome credit. Once, however often an address is verified."""
    workspace = create_personal_workspace(user=user)
    grant_welcome_credit(workspace_id=workspace.id, gpu_seconds=settings.VOICEPOOL["WELCOME_GPU_SECONDS"])
