"""One try of one segment on one device: the lease."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from accounts.models import Workspace
from tts.models.device import Device
from tts.models.job import SynthesisJob
from tts.models.segment import Segment
from tts.states import AttemptState


class Attempt(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Each of these has an index that begins with it below.
    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    job = models.ForeignKey(SynthesisJob, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    # Its own index is the one below: a workspace's log is read newest first.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    attempt_number = models.PositiveIntegerField()
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    slot_number = models.PositiveSmallIntegerField()
    epoch = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=AttemptState.choices, default=AttemptState.BOUND)
    leased_until = models.DateTimeField()
    bound_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    first_chunk_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The engine's own measure, until now or in all.
    gpu_ms = models.PositiveIntegerField(default=0)
    first_chunk_gpu_ms = models.PositiveIntegerField(null=True)
    audio_ms = models.PositiveIntegerField(default=0)
    # The seed that it was spoken with: another than the job's where a part had to be spoken again. What was made then
    # and not delivered is on nobody's bill.
    seed = models.BigIntegerField(null=True)
    discarded_gpu_ms = models.PositiveIntegerField(default=0, db_default=0)
    charged_micros = models.BigIntegerField(default=0)
    audio_key = models.CharField(max_length=200, blank=True)
    # The model that spoke, and its version; empty before it has.
    engine = models.CharField(max_length=30, default="", db_default="", blank=True)
    engine_version = models.CharField(max_length=60, default="", db_default="", blank=True)
    # tts.audio.speech_check.SpeechCheck.as_dict() of what was spoken.
    speech_check = models.JSONField(null=True)
    # What the choice of this segment added to its queue's tag, by which weight, and whether it was trued up with
    # what it really took.
    share_charged = models.BigIntegerField(default=0)
    share_weight = models.PositiveSmallIntegerField(default=1)
    share_settled = models.BooleanField(default=False)
    error_code = models.CharField(max_length=60, blank=True)
    # For operators: a kind and a place, never a customer's text.
    error_detail = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["segment", "attempt_number"], name="attempt_number_once"),
        ]
        indexes = [
            models.Index(
                fields=["leased_until"], condition=Q(state__in=["bound", "running"]), name="attempt_lease"
            ),
            models.Index(fields=["device", "-bound_at"], name="attempt_by_device"),
            models.Index(fields=["job"], name="attempt_by_job"),
            models.Index(fields=["workspace", "-bound_at"], name="attempt_by_workspace"),
            models.Index(
                fields=["id"],
                condition=Q(share_settled=False, finished_at__isnull=False),
                name="attempt_share_open",
            ),
            models.Index(fields=["-bound_at"], name="attempt_newest"),
            # What ended lately: for the counters of the metrics.
            models.Index(
                fields=["finished_at"], condition=Q(finished_at__isnull=False), name="attempt_ended"
            ),
            # For operators who search by a code.
            models.Index(
                fields=["error_code", "-bound_at"], condition=~Q(error_code=""), name="attempt_by_error"
            ),
        ]
