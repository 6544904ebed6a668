"""Indexes of large tables, made while they are read and written. Their columns came with 0018 and 0019.

Each is dropped first where it is there: so the migration may begin again where it was broken off, which leaves an index
that is not valid.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

INDEXES = (
    ("segment", models.Index(fields=["voice"], condition=Q(voice__isnull=False), name="segment_by_voice")),
    (
        "segment",
        models.Index(
            fields=["workspace", "phrase"],
            condition=Q(state="succeeded") & ~Q(spoken_by=""),
            name="segment_phrase",
        ),
    ),
    (
        "synthesisjob",
        models.Index(fields=["revision_of"], condition=Q(revision_of__isnull=False), name="job_revisions"),
    ),
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tts", "0025_keyed_blocks")]
    operations = [
        operation
        for model_name, index in INDEXES
        for operation in (
            migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
            AddIndexConcurrently(model_name, index),
        )
    ]
