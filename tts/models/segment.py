"""A piece of a job that one device speaks in one go: the unit of scheduling and retry."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from accounts.models import Workspace
from tts.models.job import SynthesisJob
from tts.models.voice import Voice
from tts.states import JobClass, SegmentState


class Segment(models.Model):
    job = models.ForeignKey(SynthesisJob, on_delete=models.CASCADE, related_name="segments", db_index=False)
    # Copied from the job, so that the choice of the next segment reads one index.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    job_class = models.CharField(max_length=12, choices=JobClass.choices)
    index = models.PositiveIntegerField()
    # 0, unless the segment was stopped between two sentences to let urgent work pass: the rest is the next part.
    part = models.PositiveSmallIntegerField(default=0)
    # What a device must offer to speak it (tts.engine.capabilities.needs_of): a voice's kind, languages.
    needs = ArrayField(models.CharField(max_length=40), default=list, db_default=[])
    # Copied from the job: the model on trial that its job was given to, "" for the pool's own.
    engine = models.CharField(max_length=30, default="", db_default="", blank=True)
    text = models.TextField()
    # Who speaks it where that is another voice than the job's, and the name that the text gives this speaker ("" for
    # the narrator). The name is the customer's text and goes with it.
    voice = models.ForeignKey(Voice, on_delete=models.PROTECT, related_name="+", null=True, db_index=False)
    # With which of the voice's recordings (VoiceVersion.number): the one that it was quoted with, whatever is current
    # when it is spoken. 1 for a preset.
    voice_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    speaker = models.CharField(max_length=60, default="", db_default="", blank=True)
    # Which of the job's chapters it belongs to, from 0; 0 where there are none.
    chapter = models.PositiveIntegerField(default=0, db_default=0)
    characters = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=SegmentState.choices, default=SegmentState.QUEUED)
    # The newest attempt's number: the fencing token. A settle with an older number changes nothing.
    attempt_number = models.PositiveIntegerField(default=0)
    estimate_gpu_ms = models.PositiveIntegerField()
    held_gpu_ms = models.PositiveIntegerField()
    gpu_ms = models.PositiveIntegerField(default=0)
    audio_ms = models.PositiveIntegerField(default=0)
    audio_key = models.CharField(max_length=200, blank=True)
    # Its own seed where it was asked for one; NULL: the job's.
    seed = models.BigIntegerField(null=True)
    # What decides how it sounds, as a keyed digest (tts.services.phrases); "" for what is never used again.
    phrase = models.CharField(max_length=64, default="", db_default="", blank=True)
    # The engine and version that spoke its audio, where that may be used again: nothing was found in it, and it has
    # the seed that was asked for. Else "".
    spoken_by = models.CharField(max_length=100, default="", db_default="", blank=True)
    # Its audio was there already when the job was submitted: no attempt, no charge.
    reused = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "index", "part"], name="segment_part_once")]
        indexes = [
            models.Index(
                fields=["workspace", "job_class", "id"], condition=Q(state="queued"), name="segment_next"
            ),
            models.Index(fields=["job"], condition=Q(state__in=["bound", "running"]), name="segment_in_hand"),
            # What waits for a model on trial: a few among many.
            models.Index(
                fields=["engine", "workspace", "job_class", "id"],
                condition=Q(state="queued") & ~Q(engine=""),
                name="segment_on_trial",
            ),
            # Which jobs a voice speaks in beside others; most segments name no voice.
            models.Index(fields=["voice"], condition=Q(voice__isnull=False), name="segment_by_voice"),
            # The longest waiting of a class.
            models.Index(fields=["job_class", "id"], condition=Q(state="queued"), name="segment_oldest"),
            # What a workspace has had spoken and may use again.
            models.Index(
                fields=["workspace", "phrase"],
                condition=Q(state="succeeded") & ~Q(spoken_by=""),
                name="segment_phrase",
            ),
        ]
