"""Voices, jobs, attempts and devices as records.

What customers said and wrote is not shown: texts, transcripts and the places of their files stay out of lists and
forms. What operators do to devices belongs to the console, where each act is guarded by the device's epoch.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.lib.admin import RecordAdmin, RecordInline
from tts.models import Attempt, Device, DeviceSlot, SynthesisJob, Voice


@admin.register(Voice)
class VoiceAdmin(RecordAdmin):
    list_display = (
        "id",
        "kind",
        "workspace",
        "created_by",
        "language",
        "clip_ms",
        "verdict",
        "shared",
        "state",
        "created_at",
    )
    list_filter = ("kind", "state", "language", "created_at")
    list_select_related = ("workspace", "created_by")
    search_fields = ("created_by__email", "workspace__name", "preset_key", "clip_sha256")
    id_fields = ("pk", "workspace_id", "consent_id")
    ordering = ("-created_at",)
    exclude = ("transcript", "clip_key", "peaks")
    raw_id_fields = ("workspace", "created_by", "consent")

    @admin.display(description="verdict")
    def verdict(self, voice: Voice) -> str:
        return str((voice.quality or {}).get("verdict", ""))


class AttemptInline(RecordInline):
    model = Attempt
    fields = readonly_fields = (
        "segment_number",
        "attempt_number",
        "device",
        "state",
        "bound_at",
        "started_at",
        "first_chunk_at",
        "finished_at",
        "gpu_ms",
        "audio_ms",
        "charged_micros",
        "error_code",
        "error_detail",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        attempts = super().get_queryset(request).select_related("device", "segment").defer("segment__text")
        return attempts.order_by("segment__index", "attempt_number")

    @admin.display(description="segment")
    def segment_number(self, attempt: Attempt) -> int:
        return attempt.segment.index + 1


@admin.register(SynthesisJob)
class SynthesisJobAdmin(RecordAdmin):
    list_display = (
        "id",
        "created_at",
        "created_by",
        "workspace",
        "client_address",
        "characters",
        "job_class",
        "state",
        "error_code",
        "gpu_ms",
        "charged_micros",
    )
    list_filter = ("state", "job_class", "mode", "created_at", "error_code")
    list_select_related = ("workspace", "created_by")
    search_fields = ("created_by__email", "workspace__name", "request_id", "=client_address")
    id_fields = ("pk", "workspace_id", "voice_id", "api_key_id")
    ordering = ("-created_at",)
    exclude = ("text", "peaks", "audio_key", "request_sha256")
    raw_id_fields = ("workspace", "voice", "created_by", "api_key", "price_version")
    inlines = (AttemptInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Not shown, so not read either: a text can be long.
        return super().get_queryset(request).defer("text", "peaks")


@admin.register(Attempt)
class AttemptAdmin(RecordAdmin):
    list_display = (
        "id",
        "bound_at",
        "job_id",
        "attempt_number",
        "device",
        "epoch",
        "state",
        "gpu_ms",
        "audio_ms",
        "charged_micros",
        "error_code",
    )
    list_filter = ("state", "bound_at", "error_code")
    list_select_related = ("device",)
    search_fields = ("device__name", "error_code")
    id_fields = ("pk", "job_id", "workspace_id")
    ordering = ("-bound_at",)
    exclude = ("audio_key", "segment")
    raw_id_fields = ("job", "workspace", "device")


class DeviceSlotInline(RecordInline):
    model = DeviceSlot
    fields = readonly_fields = (
        "number",
        "ready",
        "worker_name",
        "worker_pid",
        "engine_pid",
        "heartbeat_at",
        "attempt_id",
    )
    show_change_link = False


@admin.register(Device)
class DeviceAdmin(RecordAdmin):
    list_display = (
        "name",
        "node_name",
        "kind",
        "model_name",
        "engine",
        "state",
        "state_reason",
        "slots",
        "epoch",
        "restarts",
        "heartbeat_at",
    )
    list_filter = ("state", "kind", "engine", "node_name")
    search_fields = ("name", "node_name", "model_name")
    ordering = ("node_name", "name")
    inlines = (DeviceSlotInline,)
