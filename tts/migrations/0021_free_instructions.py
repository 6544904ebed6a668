"""How a job is read in the customer's own words."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tts", "0018_passages")]
    operations = [
        migrations.AddField(
            "synthesisjob",
            "instruction_text",
            models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
