"""A difference is one row while it stands; what was done of the inbox is found by when."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

# Until now each run wrote its own row: the newest stands for all of them.
ONCE = """
UPDATE billing_difference SET gone_at = now() WHERE id NOT IN (
    SELECT MAX(id) FROM billing_difference GROUP BY check_name, subject
);
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0017_acts_alone")]
    operations = [
        migrations.AddField("difference", "gone_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "difference",
            "last_found_by",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="billing.reconciliation",
            ),
        ),
        migrations.RunSQL(ONCE, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "difference",
            models.UniqueConstraint(
                condition=Q(gone_at__isnull=True),
                fields=("check_name", "subject"),
                name="difference_stands_once",
            ),
        ),
        migrations.RemoveIndex("difference", "difference_open"),
        migrations.AddIndex(
            "difference",
            models.Index(
                condition=Q(explained_at__isnull=True, gone_at__isnull=True),
                fields=["check_name"],
                name="difference_open",
            ),
        ),
        migrations.AddIndex(
            "providerevent",
            models.Index(
                condition=Q(processed_at__isnull=False), fields=["processed_at"], name="provider_event_done"
            ),
        ),
    ]
