"""SynthesisJob: what a customer asked for. The unit of holds, receipts and the API."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import ApiKey, Workspace
from billing.models import PriceVersion
from tts.models.voice import Voice
from tts.states import JobClass, JobState
from tts.text.instructions import MAX_FREE_CHARACTERS


class SynthesisJob(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="jobs")
    voice = models.ForeignKey(Voice, on_delete=models.PROTECT, related_name="jobs")
    # The version of that voice that the job was quoted with; each segment says its own.
    voice_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True
    )
    api_key = models.ForeignKey(ApiKey, on_delete=models.SET_NULL, related_name="+", null=True)
    state = models.CharField(max_length=10, choices=JobState.choices, default=JobState.QUEUED)
    job_class = models.CharField(max_length=12, choices=JobClass.choices, default=JobClass.INTERACTIVE)
    mode = models.CharField(max_length=20, default="plain")
    # A key of tts.text.instructions: how it is read. Empty: as the voice speaks.
    instruction = models.CharField(max_length=60, blank=True, default="", db_default="")
    # The same in the customer's own words (tts.text.instructions.clean_free_instruction), for engines that take any. A
    # customer's text: it is in no log, and gone when the job is deleted.
    instruction_text = models.CharField(max_length=MAX_FREE_CHARACTERS, blank=True, default="", db_default="")
    # The model on trial that this job's number drew (tts.services.model_shares), "" for the pool's own. One job speaks
    # with one model.
    engine = models.CharField(max_length=30, default="", db_default="", blank=True)
    text = models.TextField()
    # A script's speakers, each with the voice that speaks it; whoever is not named speaks with the job's.
    cast = models.JSONField(default=dict, db_default={})
    # What the text is divided into: [{"title", "first_index"}]; the title is the segment `first_index`, "" where the
    # text begins without one. Empty where there are no chapters. Names and titles go with the text.
    chapters = models.JSONField(default=list, db_default=[])
    language = models.CharField(max_length=10, blank=True)
    # The number of the workspace's pronunciations that it is spoken by; NULL: none. However often it is tried, it is
    # spoken by these.
    pronunciation_version = models.PositiveIntegerField(null=True)
    seed = models.BigIntegerField()
    speed = models.FloatField(default=1.0)
    # How the audio is delivered unless another form is asked for. NULL: the format's own rate; as the engine left it.
    response_format = models.CharField(max_length=10, default="wav", db_default="wav")
    sample_rate_hz = models.PositiveIntegerField(null=True)
    loudness_lufs = models.FloatField(null=True)
    characters = models.PositiveIntegerField()
    segment_count = models.PositiveIntegerField()
    segments_done = models.PositiveIntegerField(default=0)
    # Of them, those whose audio was there already (Segment.reused), and their characters: they cost nothing.
    reused_count = models.PositiveIntegerField(default=0, db_default=0)
    reused_characters = models.PositiveIntegerField(default=0, db_default=0)
    # The job that this one says again with some segments changed.
    revision_of = models.ForeignKey(
        "self", on_delete=models.SET_NULL, related_name="revisions", null=True, db_index=False
    )

    idempotency_key = models.CharField(max_length=200, null=True)
    # Of the request that the key was first used with: another body under the same key is refused.
    request_sha256 = models.CharField(max_length=64)
    client_address = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=40, blank=True)

    price_version = models.ForeignKey(PriceVersion, on_delete=models.PROTECT, related_name="+")
    estimate_gpu_ms = models.PositiveIntegerField()
    held_gpu_ms = models.PositiveIntegerField()
    held_micros = models.BigIntegerField()
    # Sums over the attempts that were charged; the audio with that of reused segments.
    gpu_ms = models.PositiveIntegerField(default=0)
    audio_ms = models.PositiveIntegerField(default=0)
    charged_micros = models.BigIntegerField(default=0)

    audio_key = models.CharField(max_length=200, blank=True)
    peaks = models.JSONField(default=list)
    error_code = models.CharField(max_length=60, blank=True)

    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    first_audio_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    # Hidden from the customer at once; the text and the files are gone, the row stays for the receipt.
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                name="job_idempotency_key_once",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-created_at"], name="job_by_workspace"),
            models.Index(
                fields=["workspace", "state"], condition=Q(state__in=["queued", "running"]), name="job_live"
            ),
            models.Index(fields=["-created_at"], name="job_newest_first"),
            models.Index(
                fields=["revision_of"], condition=Q(revision_of__isnull=False), name="job_revisions"
            ),
            # What ended lately: for the counters of the metrics.
            models.Index(fields=["finished_at"], condition=Q(finished_at__isnull=False), name="job_ended"),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="job_deleted"),
            # For operators who search by what a customer told them.
            models.Index(fields=["request_id"], condition=~Q(request_id=""), name="job_by_request"),
            models.Index(
                fields=["client_address", "-created_at"],
                condition=Q(client_address__isnull=False),
                name="job_by_address",
            ),
            models.Index(
                fields=["error_code", "-created_at"], condition=~Q(error_code=""), name="job_by_error"
            ),
        ]
