"""People, workspaces, keys and consents as records. Passwords and keys are neither shown nor set here."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.models import ApiKey, ConsentRecord, Membership, User, Workspace
from accounts.services.api_keys import revoke_api_key
from portal.lib.admin import EditableRecordAdmin, RecordAdmin, RecordInline


class UserMembershipInline(RecordInline):
    model = Membership
    fields = readonly_fields = ("workspace", "role", "created_at")
    show_change_link = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("workspace")


class WorkspaceMembershipInline(RecordInline):
    model = Membership
    fields = readonly_fields = ("user", "role", "created_at")
    show_change_link = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("user")


@admin.register(User)
class UserAdmin(EditableRecordAdmin):
    """Accounts are opened by signing up and closed by making them inactive: consents and receipts point at them."""

    list_display = ("email", "display_name", "is_active", "is_staff", "date_joined", "last_login")
    list_filter = ("is_active", "is_staff", "date_joined")
    search_fields = ("email", "display_name")
    ordering = ("-date_joined",)
    fields = (
        "id",
        "email",
        "display_name",
        "locale",
        "is_active",
        "is_staff",
        "is_superuser",
        "date_joined",
        "last_login",
    )
    # The address changes only by its owner's confirmation; see the sign-in's own pages.
    readonly_fields = ("id", "email", "date_joined", "last_login")
    inlines = (UserMembershipInline,)


@admin.register(Workspace)
class WorkspaceAdmin(EditableRecordAdmin):
    list_display = ("name", "kind", "weight", "created_at", "suspended_at")
    list_filter = ("kind", ("suspended_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("name", "memberships__user__email")
    ordering = ("-created_at",)
    fields = (
        "id",
        "name",
        "kind",
        "weight",
        "queued_jobs_limit",
        "running_segments_limit",
        "explicit_label",
        "label_position",
        "loudness_lufs",
        "suspended_at",
        "created_at",
    )
    readonly_fields = ("id", "kind", "created_at")
    inlines = (WorkspaceMembershipInline,)


@admin.register(ApiKey)
class ApiKeyAdmin(RecordAdmin):
    list_display = (
        "prefix",
        "name",
        "workspace",
        "created_by",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "created_at", "last_used_at")
    list_select_related = ("workspace", "created_by")
    search_fields = ("prefix", "name", "workspace__name", "created_by__email")
    id_fields = ("pk", "workspace_id")
    ordering = ("-created_at",)
    # The hash of a key is of use to nobody who reads it.
    exclude = ("secret_sha256",)
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    @admin.action(description=_("Revoke the chosen keys"), permissions=("revoke",))
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        count = 0
        for key in queryset.select_related("workspace"):
            revoke_api_key(workspace=key.workspace, key_id=key.pk)
            count += 1
        done = ngettext("%(count)d key is revoked.", "%(count)d keys are revoked.", count) % {"count": count}
        self.message_user(request, done, messages.SUCCESS)


@admin.register(ConsentRecord)
class ConsentRecordAdmin(RecordAdmin):
    list_display = (
        "created_at",
        "user",
        "workspace",
        "voice_id",
        "statement_version",
        "statement_locale",
        "address",
    )
    list_filter = ("statement_version", "statement_locale", "created_at")
    list_select_related = ("user", "workspace")
    search_fields = ("user__email", "workspace__name", "clip_sha256")
    id_fields = ("pk", "voice_id", "workspace_id", "user_id")
    ordering = ("-created_at",)
