"""Reads about API keys."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from accounts.keys import key_sha256
from accounts.models import ApiKey, Membership, Workspace
from accounts.tenancy import owned_by


def api_keys_of(workspace: Workspace) -> QuerySet[ApiKey]:
    """The workspace's keys that were not revoked, expired ones included, newest first."""
    return (
        owned_by(ApiKey.objects.all(), workspace)
        .filter(revoked_at__isnull=True)
        .order_by("-created_at", "-pk")
    )


def api_key_by_secret(key: str) -> ApiKey | None:
    """The key with its workspace and its maker, or None; `maker_is_member` says whether the maker still belongs.

    One query. Judges nothing: `accounts.services.api_keys.authenticate` does.
    """
    membership = Membership.objects.filter(
        workspace_id=OuterRef("workspace_id"), user_id=OuterRef("created_by_id")
    )
    return (
        ApiKey.objects.filter(secret_sha256=key_sha256(key))
        .select_related("workspace", "created_by")
        .annotate(maker_is_member=Exists(membership))
        .first()
    )
