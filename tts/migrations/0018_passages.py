"""A job's text in passages: each segment may have a voice of its own, a speaker and a chapter.

A worker is given the segment's voice, and without the job's whole text: of a book, that would be fetched and sent
anew for every segment.
"""

import importlib

import django.db.models.deletion
from django.db import migrations, models

BEFORE = importlib.import_module("tts.migrations.0011_claim").CLAIM.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1
)
OLD = "    SELECT v.* INTO voice FROM tts_voice v WHERE v.id = job.voice_id;\n"
NEW = """    SELECT v.* INTO voice FROM tts_voice v WHERE v.id = COALESCE(segment.voice_id, job.voice_id);
    job.text := '';
"""
if BEFORE.count(OLD) != 1:
    raise ValueError("the function has changed")
CLAIM = BEFORE.replace(OLD, NEW)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_workspace_output'),
        ('tts', '0017_bind_past_others'),
    ]

    operations = [
        migrations.AddField(
            model_name='segment',
            name='chapter',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='segment',
            name='speaker',
            field=models.CharField(blank=True, db_default='', default='', max_length=60),
        ),
        migrations.AddField(
            model_name='segment',
            name='voice',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tts.voice'),
        ),
        migrations.AddField(
            model_name='synthesisjob',
            name='cast',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name='synthesisjob',
            name='chapters',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.RunSQL(CLAIM, BEFORE),
    ]
