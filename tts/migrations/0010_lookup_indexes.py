from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tts", "0008_in_hand")]

    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                fields=["finished_at"],
                condition=models.Q(("finished_at__isnull", False)),
                name="attempt_ended",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                fields=["error_code", "-bound_at"],
                condition=models.Q(("error_code", ""), _negated=True),
                name="attempt_by_error",
            ),
        ),
        migrations.AddIndex(
            model_name="synthesisjob",
            index=models.Index(
                fields=["deleted_at"], condition=models.Q(("deleted_at__isnull", False)), name="job_deleted"
            ),
        ),
        migrations.AddIndex(
            model_name="synthesisjob",
            index=models.Index(
                fields=["request_id"],
                condition=models.Q(("request_id", ""), _negated=True),
                name="job_by_request",
            ),
        ),
        migrations.AddIndex(
            model_name="synthesisjob",
            index=models.Index(
                fields=["client_address", "-created_at"],
                condition=models.Q(("client_address__isnull", False)),
                name="job_by_address",
            ),
        ),
        migrations.AddIndex(
            model_name="synthesisjob",
            index=models.Index(
                fields=["error_code", "-created_at"],
                condition=models.Q(("error_code", ""), _negated=True),
                name="job_by_error",
            ),
        ),
    ]
