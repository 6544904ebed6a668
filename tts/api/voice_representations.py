"""What the API answers of voices, as schemas and as plain values."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from accounts.models import ConsentRecord, User
from portal.lib.openapi import ProblemSerializer
from tts.audio.quality import Verdict
from tts.audio.report_json import report_as_json, stored_report
from tts.models import Voice, VoiceKind, VoiceVersion
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
    agreed_by = serializers.CharField(help_text="The address of the account that agreed.")
    spoken = serializers.BooleanField(
        help_text="Whether the person who speaks says so in a recording, which is kept beside the clip."
    )


class VoiceSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=VoiceKind.choices)
    name = serializers.CharField()
    language = serializers.CharField(help_text="ISO 639-1; empty where it was not given.")
    transcript = serializers.CharField()
    duration_ms = serializers.IntegerField(help_text="Of the recording; 0 for a preset voice.")
    quality = QualitySerializer(allow_null=True)
    consent = ConsentSerializer(allow_null=True, help_text="To the recording; null for a preset voice.")
    version = serializers.IntegerField(
        help_text="Which of its recordings speaks, by its number; 1 for a preset."
    )
    shared = serializers.BooleanField(
        help_text="Whether every member of the workspace may use it; else only who made it."
    )
    usable = serializers.BooleanField(
        help_text="Whether you may hear it and speak with it. False only for owners and administrators, of a voice "
        "that another member keeps private: they may share or delete it; its transcript and quality are left out."
    )
    audio_url = serializers.CharField()
    created_at = serializers.DateTimeField()


class VoiceVersionSerializer(serializers.Serializer[Any]):
    """A recording that the voice has, with what belongs to it."""

    number = serializers.IntegerField(help_text="Given once, also where the version is deleted.")
    current = serializers.BooleanField(help_text="Whether the voice speaks with it.")
    language = serializers.CharField(help_text="ISO 639-1; empty where it was not given.")
    transcript = serializers.CharField()
    duration_ms = serializers.IntegerField()
    quality = QualitySerializer(allow_null=True)
    consent = ConsentSerializer(allow_null=True)
    audio_url = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(help_text="An address; empty where the account is gone.")


class VoiceVersionsSerializer(serializers.Serializer[Any]):
    versions = VoiceVersionSerializer(many=True)


def version_json(voice: Voice, version: VoiceVersion) -> dict[str, Any]:
    """A version of `versions_of` as VoiceVersionSerializer describes it."""
    report = stored_report(version.quality)
    return {
        "number": version.number,
        "current": version.number == voice.version,
        "language": version.language,
        "transcript": version.transcript,
        "duration_ms": version.clip_ms,
        "quality": report_as_json(report) if report else None,
        "consent": _consent_json(version.consent),
        "audio_url": reverse("api_voice_version_audio", args=[voice.pk, version.number]),
        "created_at": version.created_at,
        "created_by": version.created_by.email if version.created_by else "",
    }


def _consent_json(consent: ConsentRecord | None) -> dict[str, Any] | None:
    if consent is None:
        return None
    return {
        "statement_version": consent.statement_version,
        "statement_locale": consent.statement_locale,
        "agreed_at": consent.created_at,
        "agreed_by": consent.user.email,
        "spoken": bool(consent.spoken_sha256),
    }


def voice_json(voice: Voice, reader: User) -> dict[str, Any]:
    """The voice as VoiceSerializer describes it to the reader; names of presets and words in the active language."""
    usable = may_use(voice, reader)
    report = stored_report(voice.quality) if usable else None
    return {
        "id": voice.pk,
        "kind": voice.kind,
        "name": voice_name(voice),
        "language": voice.language,
        "transcript": voice.transcript if usable else "",
        "duration_ms": voice.clip_ms,
        "quality": report_as_json(report) if report else None,
        "consent": _consent_json(voice.consent),
        "version": voice.version,
        "shared": voice.shared,
        "usable": usable,
        "audio_url": reverse("api_voice_audio", args=[voice.pk]),
        "created_at": voice.created_at,
    }
