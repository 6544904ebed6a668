"""How a job is read, and with which seed each try really was."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tts", "0012_device_hours")]
    operations = [
        migrations.AddField(
            "synthesisjob", "instruction", models.CharField(blank=True, db_default="", default="", max_length=60)
        ),
        migrations.AddField("attempt", "seed", models.BigIntegerField(null=True)),
        # Attempts are written by the database's own functions, which know nothing of this column.
        migrations.AddField(
            "attempt", "discarded_gpu_ms", models.PositiveIntegerField(db_default=0, default=0)
        ),
    ]
