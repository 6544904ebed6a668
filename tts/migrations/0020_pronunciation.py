"""A workspace's pronunciations, version by version; a job says by which it is spoken."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# A version is what jobs were spoken by: it stays as it is. (Its maker's account may go.)
KEEP = """
CREATE FUNCTION tts_keep_pronunciations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of pronunciations is never changed';
END $$;
CREATE TRIGGER pronunciations_are_kept BEFORE UPDATE OF workspace_id, number, entries, created_at
    ON tts_pronunciationversion FOR EACH ROW EXECUTE FUNCTION tts_keep_pronunciations();
"""


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tts", "0019_reuse"),
    ]
    operations = [
        migrations.CreateModel(
            name="PronunciationVersion",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("entries", models.JSONField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
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
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.workspace"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("workspace", "number"), name="pronunciation_version_once")
                ],
            },
        ),
        migrations.AddField("synthesisjob", "pronunciation_version", models.PositiveIntegerField(null=True)),
        migrations.RunSQL(KEEP, "DROP FUNCTION tts_keep_pronunciations() CASCADE;"),
    ]
