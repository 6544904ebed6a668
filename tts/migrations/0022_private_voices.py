"""Voices that only their maker may use. Those that there are stay shared in their workspace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tts", "0020_pronunciation")]
    operations = [
        migrations.AddField("voice", "shared", models.BooleanField(db_default=True, default=True)),
    ]
