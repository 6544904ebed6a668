"""A workspace that is deleted leaves its plan at that moment, by whichever way its row goes."""

from django.db import migrations

# In the transaction that deletes: no moment without the workspace and with a fee that goes on. What it owes stays, and
# its month is closed like any other.
END = """
CREATE FUNCTION billing_end_plan() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE billing_subscription SET ends_at = GREATEST(starts_at, now())
    WHERE workspace_id = OLD.id AND ends_at IS NULL;
    UPDATE billing_planchange SET state = 'replaced', ended_at = now()
    WHERE workspace_id = OLD.id AND state = 'pending';
    RETURN NULL;
END $$;
CREATE TRIGGER workspace_leaves_its_plan AFTER DELETE ON accounts_workspace
    FOR EACH ROW EXECUTE FUNCTION billing_end_plan();
"""
END_UNDO = """
DROP TRIGGER workspace_leaves_its_plan ON accounts_workspace;
DROP FUNCTION billing_end_plan();
"""
# When those went that are gone already is not known.
GONE = """
UPDATE billing_subscription SET ends_at = GREATEST(starts_at, now())
WHERE ends_at IS NULL AND NOT EXISTS (SELECT FROM accounts_workspace WHERE id = workspace_id);
UPDATE billing_planchange SET state = 'replaced', ended_at = now()
WHERE state = 'pending' AND NOT EXISTS (SELECT FROM accounts_workspace WHERE id = workspace_id);
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_plan_limits"), ("billing", "0015_ledger_reads")]
    operations = [
        migrations.RunSQL(END, END_UNDO),
        migrations.RunSQL(GONE, migrations.RunSQL.noop),
    ]
