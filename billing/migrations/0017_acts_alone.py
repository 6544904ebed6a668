"""What one operator does alone is noted and counted; an act may be about no single workspace."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0016_deleted_workspaces")]
    operations = [
        migrations.AddField("pendingact", "counted_micros", models.BigIntegerField(db_default=0, default=0)),
        migrations.AlterField(
            "pendingact",
            "state",
            models.CharField(
                choices=[
                    ("open", "Waits for a second operator"),
                    ("confirmed", "Confirmed"),
                    ("declined", "Declined"),
                    ("alone", "Done by one operator"),
                ],
                db_default="open",
                default="open",
                max_length=10,
            ),
        ),
        migrations.AlterField("pendingact", "workspace_id", models.UUIDField(null=True)),
    ]
