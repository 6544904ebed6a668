"""How much audio a workspace keeps, and may keep. Its plan says so."""

from __future__ import annotations

import uuid

from django.db.models import Sum

from accounts.models import Workspace
from portal.lib.display import bytes_text
from tts.errors import StorageFull
from tts.models import SynthesisJob, VoiceVersion

# 24 kHz, mono, 16 bits: what a millisecond of speech or of a clip takes.
BYTES_PER_MS = 48


def stored_bytes(workspace_id: uuid.UUID) -> int:
    """How much speech and how many clips the workspace keeps, in bytes of uncompressed audio."""
    kept = SynthesisJob.objects.filter(workspace_id=workspace_id, deleted_at__isnull=True).exclude(
        audio_key=""
    )
    spoken_ms = kept.aggregate(total=Sum("audio_ms"))["total"] or 0
    # Of every version: those of a deleted voice are gone.
    clips = VoiceVersion.objects.filter(voice__workspace_id=workspace_id)
    clips_ms = clips.aggregate(total=Sum("clip_ms"))["total"] or 0
    return int(spoken_ms + clips_ms) * BYTES_PER_MS


def check_storage(workspace: Workspace, *, adds_ms: int) -> None:
    """Raises StorageFull when so much more audio would not fit. Nothing is asked where the plan sets no limit."""
    limit = workspace.storage_bytes_limit
    if limit is not None and stored_bytes(workspace.pk) + adds_ms * BYTES_PER_MS > limit:
        raise StorageFull(limit=bytes_text(limit))
