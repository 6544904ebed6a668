"""All rows of the database, so that a test can say that none of somebody's changed."""

from __future__ import annotations

from django.apps import apps
from django.db.models import Model, Q

from accounts.models import User, Workspace

# Written by looking around: the visitor's own session, and what the framework remembers of it.
NOT_COMPARED = {"sessions.Session", "admin.LogEntry"}


def rows_but_for(user: User, workspace: Workspace) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table that does not belong to this user or this workspace."""
    found = {}
    for model in apps.get_models():
        if model._meta.label in NOT_COMPARED or model._meta.proxy or not model._meta.managed:
            continue
        found[model._meta.label] = list(
            model._default_manager.exclude(_belongs_to(model, user, workspace)).order_by("pk").values_list()
        )
    return found


def _belongs_to(model: type[Model], user: User, workspace: Workspace) -> Q:
    if model is User:
        return Q(pk=user.pk)
    if model is Workspace:
        return Q(pk=workspace.pk)
    names = {field.attname for field in model._meta.concrete_fields}
    mine = Q(pk__in=[])
    if "workspace_id" in names:
        mine |= Q(workspace_id=workspace.pk)
    if "user_id" in names:
        mine |= Q(user_id=user.pk)
    return mine
