"""What the console adds up of the ledger is found by its time, however long the ledger is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0014_plan_changes")]
    operations = [
        migrations.AddIndex(
            model_name="ledgertransaction",
            index=models.Index(
                condition=models.Q(("kind__in", ["capture", "fee", "refund"])),
                fields=["created_at"],
                name="ledger_earned",
            ),
        ),
        migrations.AddIndex(
            model_name="ledgertransaction",
            index=models.Index(
                condition=models.Q(("kind", "refund")), fields=["-created_at"], name="ledger_newest_refunds"
            ),
        ),
    ]
