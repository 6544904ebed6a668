"""Which voices a workspace may see and use. Every read of a voice by a customer begins here."""

from __future__ import annotations

import uuid

from django.db.models import Count, Q, QuerySet

from accounts.models import Workspace
from accounts.tenancy import owned_by, owned_by_or_shared
from tts.errors import VoiceNotFound
from tts.models import Voice, VoiceKind
from tts.states import VoiceState


def usable_voices(workspace: Workspace) -> QuerySet[Voice]:
    """The workspace's own voices, newest first, then the preset ones; deleted ones are gone."""
    # Only presets belong to no workspace: a constraint of the table says so.
    ready = Voice.objects.filter(state=VoiceState.READY)
    return owned_by_or_shared(ready, workspace).order_by("kind", "-created_at")


def voices_of(workspace: Workspace) -> QuerySet[Voice]:
    """The workspace's own voices, newest first, with `job_count`: how many of its jobs used each."""
    return (
        owned_by(Voice.objects.filter(state=VoiceState.READY), workspace)
        .annotate(job_count=Count("jobs", filter=Q(jobs__deleted_at__isnull=True)))
        .order_by("-created_at")
    )


def preset_voices() -> QuerySet[Voice]:
    return Voice.objects.filter(kind=VoiceKind.PRESET, state=VoiceState.READY).order_by("created_at")


def voice_of(workspace: Workspace, voice_id: uuid.UUID) -> Voice:
    """The voice, the workspace's own or a preset. Raises VoiceNotFound for any other id."""
    voice = usable_voices(workspace).filter(pk=voice_id).select_related("consent").first()
    if voice is None:
        raise VoiceNotFound
    return voice
