"""A workspace's limit of running segments counts from the moment when it is changed, by whomever."""

from django.db import migrations

LIMITS = """
CREATE FUNCTION tts_apply_running_limit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tts_fairsharequeue SET running_limit = COALESCE(NEW.running_segments_limit, 2147483647)
    WHERE id IN (
        SELECT id FROM tts_fairsharequeue WHERE workspace_id = NEW.id ORDER BY job_class FOR UPDATE
    );
    RETURN NULL;
END $$;
CREATE TRIGGER running_limit_changed AFTER UPDATE OF running_segments_limit ON accounts_workspace
    FOR EACH ROW WHEN (OLD.running_segments_limit IS DISTINCT FROM NEW.running_segments_limit)
    EXECUTE FUNCTION tts_apply_running_limit();
"""
UNDO = """
DROP TRIGGER running_limit_changed ON accounts_workspace;
DROP FUNCTION tts_apply_running_limit();
"""


class Migration(migrations.Migration):
    dependencies = [("tts", "0006_hand_over"), ("accounts", "0002_workspace_limits")]
    operations = [migrations.RunSQL(LIMITS, UNDO)]
