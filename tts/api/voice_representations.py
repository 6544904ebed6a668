"""What the API answers of voices, as schemas and as plain values."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from accounts.models import User
from portal.lib.openapi import ProblemSerializer
from tts.audio.quality import Verdict
from tts.audio.report_json import report_as_json, stored_report
from tts.models import Voice, VoiceKind
from tts.selectors.voices import may_use
from tts.views.cards import voice_name


class CheckSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    state = serializers.ChoiceField(choices=["passed", "notice", "warning", "rejected"])
    title = serializers.CharField()
    message = serializers.CharField()
    advice = serializers.CharField(help_text="What to do better; empty for what passed.")
    measured = serializers.CharField(help_text="The figure with its unit; empty where there is none.")


class QualitySerializer(serializers.Serializer[Any]):
    """What was measured in the recording, and what follows from it."""

    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Verdict])
    message = serializers.CharField()
    duration_s = serializers.FloatField()
    speech_s = serializers.FloatField(help_text="Of it, speech.")
    snr_db = serializers.FloatField(help_text="How far speech stands above what is heard between it.")
    clipping_ratio = serializers.FloatField(help_text="Share of samples at full scale, 0 to 1.")
    silence_ratio = serializers.FloatField(help_text="Share of time without speech, 0 to 1.")
    bandwidth_hz = serializers.IntegerField(help_text="The highest frequency that carries speech.")
    channel_count = serializers.IntegerField()
    source_sample_rate_hz = serializers.IntegerField()
    rms_dbfs = serializers.FloatField(help_text="Level of the speech.")
    leading_silence_s = serializers.FloatField()
    channels_differ = serializers.BooleanField(help_text="The channels differ; only the clearest is used.")
    damaged = serializers.BooleanField(help_text="Parts of the file could not be read.")
    checks = CheckSerializer(many=True)


class ClipProblemSerializer(ProblemSerializer):
    """Why a recording is refused; with its report where it could be measured."""

    quality = QualitySerializer(required=False)


class ConsentSerializer(serializers.Serializer[Any]):
    statement_version = serializers.CharField()
    statement_locale = serializers.CharField()
    agreed_at = serializers.DateTimeField()


class VoiceSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=VoiceKind.choices)
    name = serializers.CharField()
    language = serializers.CharField(help_text="ISO 639-1; empty where it was not given.")
    transcript = serializers.CharField()
    duration_ms = serializers.IntegerField(help_text="Of the recording; 0 for a preset voice.")
    quality = QualitySerializer(allow_null=True)
    consent = ConsentSerializer(allow_null=True)
    shared = serializers.BooleanField(
        help_text="Whether every member of the workspace may use it; else only who made it."
    )
    usable = serializers.BooleanField(
        help_text="Whether you may hear it and speak with it. False only for owners and administrators, of a voice "
        "that another member keeps private: they may share or delete it; its transcript and quality are left out."
    )
    audio_url = serializers.CharField()
    created_at = serializers.DateTimeField()


def voice_json(voice: Voice, reader: User) -> dict[str, Any]:
    """The voice as VoiceSerializer describes it to the reader; names of presets and words in the active language."""
    usable = may_use(voice, reader)
    report = stored_report(voice.quality) if usable else None
    consent = voice.consent
    return {
        "id": voice.pk,
        "kind": voice.kind,
        "name": voice_name(voice),
        "language": voice.language,
        "transcript": voice.transcript if usable else "",
        "duration_ms": voice.clip_ms,
        "quality": report_as_json(report) if report else None,
        "consent": {
            "statement_version": consent.statement_version,
            "statement_locale": consent.statement_locale,
            "agreed_at": consent.created_at,
        }
        if consent
        else None,
        "shared": voice.shared,
        "usable": usable,
        "audio_url": reverse("api_voice_audio", args=[voice.pk]),
        "created_at": voice.created_at,
    }
