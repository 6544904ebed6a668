"""Money as records. Nothing of it is changed by hand: a correction is a new transaction of the ledger.

The one thing that can be added is a price; a version in force is never changed, jobs were quoted with it.
"""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from billing.models import CreditAccount, Hold, LedgerEntry, LedgerTransaction, PriceVersion, UsageRecord
from portal.lib.admin import RecordAdmin, RecordInline
from portal.lib.display import money_exact


@admin.register(CreditAccount)
class CreditAccountAdmin(RecordAdmin):
    list_display = ("workspace_id", "available", "held", "created_at")
    list_filter = ("currency", "created_at")
    search_fields = ("workspace_id",)
    ordering = ("-created_at",)

    @admin.display(description=_("Available"), ordering="available_micros")
    def available(self, account: CreditAccount) -> str:
        return money_exact(account.available_micros, account.currency)

    @admin.display(description=_("Held"), ordering="held_micros")
    def held(self, account: CreditAccount) -> str:
        return money_exact(account.held_micros, account.currency)


@admin.register(Hold)
class HoldAdmin(RecordAdmin):
    list_display = (
        "created_at",
        "job_id",
        "workspace_id",
        "state",
        "amount_micros",
        "captured_micros",
        "closed_at",
    )
    list_filter = ("state", "created_at")
    search_fields = ("job_id",)
    id_fields = ("pk", "job_id", "workspace_id")
    ordering = ("-created_at",)


class LedgerEntryInline(RecordInline):
    model = LedgerEntry
    fields = readonly_fields = ("account", "amount_micros")
    show_change_link = False


@admin.register(LedgerTransaction)
class LedgerTransactionAdmin(RecordAdmin):
    list_display = ("created_at", "kind", "workspace_id", "job_id", "idempotency_key")
    list_filter = ("kind", "created_at")
    search_fields = ("idempotency_key",)
    id_fields = ("pk", "workspace_id", "job_id")
    ordering = ("-created_at",)
    inlines = (LedgerEntryInline,)


@admin.register(UsageRecord)
class UsageRecordAdmin(RecordAdmin):
    list_display = (
        "finished_at",
        "workspace_id",
        "job_id",
        "device_name",
        "job_class",
        "billable",
        "gpu_ms",
        "audio_ms",
        "characters",
    )
    list_filter = ("billable", "job_class", "created_at")
    search_fields = ("device_name",)
    id_fields = ("attempt_id", "job_id", "workspace_id", "user_id", "api_key_id", "voice_id")
    ordering = ("-id",)


@admin.register(PriceVersion)
class PriceVersionAdmin(RecordAdmin):
    """A new version takes effect at its moment; the ones before it stay for the receipts that name them."""

    list_display = (
        "number",
        "currency",
        "interactive_gpu_second_micros",
        "standard_gpu_second_micros",
        "batch_gpu_second_micros",
        "effective_at",
    )
    ordering = ("-effective_at", "-number")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))
