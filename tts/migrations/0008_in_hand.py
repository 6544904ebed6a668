from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tts", "0007_running_limits"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="fairsharequeue",
            index=models.Index(
                condition=models.Q(("queued__gt", 0), ("workspace_running__gte", models.F("running_limit"))),
                fields=["job_class"],
                name="fair_share_at_limit",
            ),
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(
                condition=models.Q(("state__in", ["bound", "running"])),
                fields=["job"],
                name="segment_in_hand",
            ),
        ),
    ]
