"""What the API answers: voices, jobs, receipts and quotes, as schemas and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from billing.api.serializers import MoneySerializer, money
from tts.api.subtitles import ChapterSerializer
from tts.audio.formats import FORMAT_CHOICES, FORMATS
from tts.audio.speech_check import CLIPPED, LONG_SILENCE, OTHER_SPEAKER, SILENT, TOO_LONG, TOO_SHORT
from tts.failures import failure_text
from tts.models import Attempt, Segment, SynthesisJob, VoiceKind
from tts.selectors.jobs import Receipt
from tts.selectors.timeline import chapters_of, has_subtitles
from tts.services.fair_share import Place
from tts.states import AttemptState, JobClass, JobState, SegmentState
from tts.views.cards import voice_name


class JobVoiceSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=VoiceKind.choices)
    name = serializers.CharField()
    version = serializers.IntegerField(
        help_text="Of its recording, as it was when the job was submitted; 1 for a preset."
    )


class JobErrorSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class JobSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=JobState.choices)
    voice = JobVoiceSerializer()
    text = serializers.CharField()
    language = serializers.CharField()
    pronunciation_version = serializers.IntegerField(allow_null=True, help_text="By which; null: none.")
    job_class = serializers.ChoiceField(choices=JobClass.choices)
    mode = serializers.CharField()
    instruction = serializers.CharField(help_text="How it is read; empty: as the voice speaks.")
    instruction_text = serializers.CharField(help_text="The same in your own words.")
    seed = serializers.IntegerField()
    speed = serializers.FloatField()
    response_format = serializers.ChoiceField(choices=FORMAT_CHOICES)
    sample_rate_hz = serializers.IntegerField(help_text="Of the file at `audio_url`.")
    loudness_lufs = serializers.FloatField(allow_null=True, help_text="Null: as the engine left it.")
    characters = serializers.IntegerField()
    segment_count = serializers.IntegerField()
    segments_done = serializers.IntegerField()
    reused_segments = serializers.IntegerField(
        help_text="Of them, spoken before and used again: free of charge."
    )
    revision_of = serializers.UUIDField(allow_null=True, help_text="The job that it says again, changed.")
    estimate_gpu_ms = serializers.IntegerField(help_text="What it was expected to take.")
    gpu_ms = serializers.IntegerField(help_text="What was used and charged.")
    audio_ms = serializers.IntegerField()
    held = MoneySerializer(help_text="Set aside at most; what is not used comes back when the job ends.")
    charged = MoneySerializer()
    error = JobErrorSerializer(allow_null=True)
    audio_url = serializers.CharField(allow_null=True, help_text="The whole audio, once there is any.")
    stream_url = serializers.CharField(help_text="The audio while it is made.")
    events_url = serializers.CharField(help_text="Server-sent events.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    first_audio_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    cancel_requested_at = serializers.DateTimeField(allow_null=True)


class PlaceSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(help_text="1 is next.")
    segments_ahead = serializers.IntegerField()
    starts_in_ms = serializers.IntegerField(
        allow_null=True, help_text="An estimate; null while no device takes work."
    )


class SpeechCheckSerializer(serializers.Serializer[Any]):
    """What was found in the speech of a try without hearing it. Bad speech is spoken again, at our cost."""

    score = serializers.IntegerField(help_text="0 to 100; 100 is as good as can be told.")
    findings = serializers.ListField(
        child=serializers.ChoiceField(
            choices=[SILENT, TOO_SHORT, TOO_LONG, CLIPPED, OTHER_SPEAKER, LONG_SILENCE]
        ),
        help_text="All but long_silence make it bad.",
    )
    duration_ratio = serializers.FloatField(
        allow_null=True, help_text="Its length over what the text was expected to take."
    )
    longest_silence_ms = serializers.IntegerField(help_text="Between two sounds.")
    clipped_share = serializers.FloatField(help_text="Share of samples at full scale, 0 to 1.")
    similarity = serializers.FloatField(
        allow_null=True,
        default=None,
        help_text="Of the speaker to the reference, -1 to 1; null where the engine cannot tell.",
    )


class AttemptSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    attempt_number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=AttemptState.choices)
    device_name = serializers.CharField()
    bound_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    first_chunk_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    gpu_ms = serializers.IntegerField()
    first_chunk_gpu_ms = serializers.IntegerField(allow_null=True, help_text="Of it, until the first sound.")
    audio_ms = serializers.IntegerField()
    error_code = serializers.CharField(help_text="`speech_rejected`: see `speech_check`.")
    seed = serializers.IntegerField(allow_null=True, help_text="By which it was spoken.")
    engine = serializers.CharField(help_text="The model that spoke; empty before it has.")
    engine_version = serializers.CharField()
    speech_check = SpeechCheckSerializer(allow_null=True)


class SegmentSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    part = serializers.IntegerField(
        help_text="0, unless the segment let urgent work pass between two sentences."
    )
    state = serializers.ChoiceField(choices=SegmentState.choices)
    text = serializers.CharField()
    characters = serializers.IntegerField()
    audio_ms = serializers.IntegerField()
    voice_id = serializers.UUIDField()
    voice_version = serializers.IntegerField(help_text="With which of the voice's recordings it is spoken.")
    speaker = serializers.CharField(help_text="By the name in the script; empty: the narrator.")
    chapter = serializers.IntegerField(help_text="From 0; 0 where there are no chapters.")
    seed = serializers.IntegerField(help_text="With which it is to be spoken.")
    reused = serializers.BooleanField(help_text="It had been spoken before, and cost nothing.")
    attempts = AttemptSerializer(many=True)


class ReceiptLineSerializer(serializers.Serializer[Any]):
    attempt_id = serializers.UUIDField()
    attempt_number = serializers.IntegerField()
    segment_index = serializers.IntegerField()
    state = serializers.ChoiceField(choices=AttemptState.choices)
    device_name = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    gpu_ms = serializers.IntegerField()
    audio_ms = serializers.IntegerField()
    characters = serializers.IntegerField()
    seed = serializers.IntegerField(
        allow_null=True,
        help_text="What it was spoken with: another than the job's where a part had to be spoken again.",
    )
    discarded_gpu_ms = serializers.IntegerField(
        help_text="Spent on parts that were spoken again; not charged."
    )
    device_class = serializers.CharField(help_text="Of the device that spoke; empty until the try has ended.")
    gpu_second = MoneySerializer(
        allow_null=True, help_text="What a GPU-second of this try cost; null until it has ended."
    )
    charged = MoneySerializer()
    speech_check = SpeechCheckSerializer(allow_null=True)


class ReceiptSerializer(serializers.Serializer[Any]):
    """What the job used and cost as it stands now; final once the job has ended."""

    characters = serializers.IntegerField()
    reused_segments = serializers.IntegerField(help_text="Spoken before and used again: they cost nothing.")
    reused_characters = serializers.IntegerField(help_text="Of `characters`, those of these segments.")
    gpu_ms = serializers.IntegerField()
    audio_ms = serializers.IntegerField()
    charged = MoneySerializer()
    held = MoneySerializer()
    gpu_second = MoneySerializer(
        help_text="The price of one GPU-second in the job's class; a class of device may have one of its own."
    )
    price_version = serializers.IntegerField()
    lines = ReceiptLineSerializer(many=True)


class JobDetailSerializer(JobSerializer):
    place = PlaceSerializer(allow_null=True, help_text="While it waits.")
    cast = serializers.DictField(
        child=serializers.UUIDField(),
        help_text="The voice of each speaker of a script; empty for every other text.",
    )
    chapters = ChapterSerializer(many=True, help_text="Empty where the text has no titles.")
    subtitles_url = serializers.CharField(
        allow_null=True,
        help_text="Subtitles and chapters, once there is audio; `format` is srt, vtt or chapters.",
    )
    segments = SegmentSerializer(many=True)
    receipt = ReceiptSerializer()
    speech_similarity = serializers.FloatField(
        allow_null=True,
        help_text="The least likeness to the voice’s reference, -1 to 1; null where no engine could tell.",
    )
    speech_score = serializers.IntegerField(
        allow_null=True, help_text="The lowest score of what was delivered; null while there is none."
    )


_SAME_NAMES = (
    "state",
    "text",
    "language",
    "pronunciation_version",
    "job_class",
    "mode",
    "instruction",
    "instruction_text",
    "seed",
    "speed",
    "response_format",
    "loudness_lufs",
    "characters",
    "segment_count",
    "segments_done",
    "estimate_gpu_ms",
    "gpu_ms",
    "audio_ms",
    "created_at",
    "started_at",
    "first_audio_at",
    "finished_at",
    "cancel_requested_at",
)


def job_json(job: SynthesisJob) -> dict[str, Any]:
    """The job as JobSerializer describes it."""
    currency = job.price_version.currency
    return {
        "id": job.pk,
        **{name: getattr(job, name) for name in _SAME_NAMES},
        "sample_rate_hz": job.sample_rate_hz or FORMATS[job.response_format].default_sample_rate_hz,
        "voice": {
            "id": job.voice_id,
            "kind": job.voice.kind,
            "name": voice_name(job.voice),
            "version": job.voice_version,
        },
        "reused_segments": job.reused_count,
        "revision_of": job.revision_of_id,
        "held": money(job.held_micros, currency),
        "charged": money(job.charged_micros, currency),
        "error": {"code": job.error_code, "message": failure_text(job.error_code)}
        if job.error_code
        else None,
        "audio_url": reverse("api_job_audio", args=[job.pk]) if job.audio_key else None,
        "stream_url": reverse("api_job_stream", args=[job.pk]),
        "events_url": reverse("api_job_events", args=[job.pk]),
    }


def job_detail_json(job: SynthesisJob, *, place: Place | None, receipt: Receipt) -> dict[str, Any]:
    """The job of `job_of`, with its segments at hand, as JobDetailSerializer describes it."""
    return {
        **job_json(job),
        "place": vars(place) if place else None,
        "cast": job.cast,
        "chapters": [asdict(chapter) for chapter in chapters_of(job)],
        "subtitles_url": reverse("api_job_subtitles", args=[job.pk]) if has_subtitles(job) else None,
        "segments": [_segment_json(job, segment) for segment in job.segments.all()],
        "receipt": _receipt_json(receipt),
        "speech_score": receipt.speech_score,
        "speech_similarity": receipt.similarity,
    }


def _segment_json(job: SynthesisJob, segment: Segment) -> dict[str, Any]:
    names = (
        "index", "part", "state", "text", "characters", "audio_ms", "voice_version", "speaker", "chapter", "reused",
    )  # fmt: skip
    return {
        **{name: getattr(segment, name) for name in names},
        "voice_id": segment.voice_id or job.voice_id,
        "seed": job.seed if segment.seed is None else segment.seed,
        "attempts": [_attempt_json(attempt) for attempt in segment.attempts.all()],
    }


_ATTEMPT_NAMES = (
    "id", "attempt_number", "state", "bound_at", "started_at", "first_chunk_at", "finished_at", "gpu_ms",
    "first_chunk_gpu_ms", "audio_ms", "error_code", "seed", "engine", "engine_version", "speech_check",
)  # fmt: skip


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {**{name: getattr(attempt, name) for name in _ATTEMPT_NAMES}, "device_name": attempt.device.name}


def _receipt_json(receipt: Receipt) -> dict[str, Any]:
    currency = receipt.currency
    lines = []
    for line in receipt.lines:
        values = dict(vars(line))
        values["charged"] = money(values.pop("charged_micros"), currency)
        rate = values.pop("gpu_second_micros")
        values["gpu_second"] = None if rate is None else money(rate, currency)
        lines.append(values)
    return {
        "characters": receipt.characters,
        "reused_segments": receipt.reused_segments,
        "reused_characters": receipt.reused_characters,
        "gpu_ms": receipt.gpu_ms,
        "audio_ms": receipt.audio_ms,
        "charged": money(receipt.amount_micros, currency),
        "held": money(receipt.held_micros, currency),
        "gpu_second": money(receipt.gpu_second_micros, currency),
        "price_version": receipt.price_version,
        "lines": lines,
    }
