"""Voices that are heard before they are saved: one a person in a workspace."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tts", "0022_private_voices"),
    ]
    operations = [
        migrations.AlterField(
            "voice",
            "state",
            models.CharField(
                choices=[("draft", "Not saved yet"), ("ready", "Ready"), ("deleted", "Deleted")],
                default="ready",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            "voice",
            models.UniqueConstraint(
                condition=Q(state="draft"), fields=("workspace", "created_by"), name="one_draft_each"
            ),
        ),
    ]
