"""Versions of a cloned voice: what there is becomes version 1, and what was submitted speaks with it."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Some thousand rows at most, in one statement; no file is touched. A deleted voice has no recording left.
FIRST_VERSIONS = """
INSERT INTO tts_voiceversion (
    id, voice_id, number, language, transcript, clip_key, clip_sha256, clip_ms, spoken_key, quality, peaks, consent_id,
    created_by_id, created_at
)
SELECT gen_random_uuid(), v.id, 1, v.language, v.transcript, v.clip_key, v.clip_sha256, v.clip_ms,
    CASE WHEN c.spoken_sha256 <> ''
        THEN 'workspaces/' || v.workspace_id || '/voices/' || v.id || '/consent.wav' ELSE '' END,
    v.quality, v.peaks, v.consent_id, v.created_by_id, v.created_at
FROM tts_voice v LEFT JOIN accounts_consentrecord c ON c.id = v.consent_id
WHERE v.kind = 'clone' AND v.state <> 'deleted';
"""


def number():
    """A constant that the database adds without writing any row anew."""
    return models.PositiveSmallIntegerField(db_default=1, default=1)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("accounts", "0007_spoken_consent"),
        ("tts", "0026_large_indexes"),
    ]
    operations = [
        migrations.AddField("voice", "version", number()),
        migrations.AddField("voice", "last_version", number()),
        migrations.AddField("synthesisjob", "voice_version", number()),
        migrations.AddField("segment", "voice_version", number()),
        migrations.CreateModel(
            name="VoiceVersion",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveSmallIntegerField()),
                ("language", models.CharField(blank=True, max_length=10)),
                ("transcript", models.CharField(blank=True, max_length=500)),
                ("clip_key", models.CharField(max_length=200)),
                ("clip_sha256", models.CharField(max_length=64)),
                ("clip_ms", models.PositiveIntegerField()),
                ("spoken_key", models.CharField(blank=True, max_length=200)),
                ("quality", models.JSONField(null=True)),
                ("peaks", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "consent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.consentrecord",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "voice",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="tts.voice",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("voice", "number"), name="voice_version_once")
                ],
            },
        ),
        migrations.RunSQL(FIRST_VERSIONS, migrations.RunSQL.noop),
    ]
