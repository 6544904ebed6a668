"""A posting is one statement: the balance, the transaction and its entries change together or not at all."""

from django.db import migrations

POST = """
CREATE FUNCTION billing_post(
    p_id uuid, p_workspace uuid, p_kind varchar, p_key varchar, p_job uuid,
    p_available bigint, p_held bigint, p_accounts varchar[], p_amounts bigint[]
) RETURNS varchar LANGUAGE plpgsql AS $$
BEGIN
    -- First, so that whoever moves this workspace's money waits here.
    UPDATE billing_creditaccount
    SET available_micros = available_micros + p_available, held_micros = held_micros + p_held
    WHERE workspace_id = p_workspace
        AND available_micros + LEAST(p_available, 0) >= 0 AND held_micros + LEAST(p_held, 0) >= 0;
    IF NOT FOUND THEN
        RETURN 'balance_too_low';
    END IF;
    INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, job_id, created_at)
    VALUES (p_id, p_workspace, p_kind, p_key, p_job, now())
    ON CONFLICT (idempotency_key) DO NOTHING;
    IF NOT FOUND THEN
        UPDATE billing_creditaccount
        SET available_micros = available_micros - p_available, held_micros = held_micros - p_held
        WHERE workspace_id = p_workspace;
        RETURN 'already_posted';
    END IF;
    INSERT INTO billing_ledgerentry (transaction_id, account, amount_micros)
    SELECT p_id, entry.account, entry.amount FROM unnest(p_accounts, p_amounts) AS entry (account, amount);
    RETURN 'posted';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0002_ledger_triggers")]
    operations = [
        migrations.RunSQL(
            POST,
            "DROP FUNCTION billing_post(uuid, uuid, varchar, varchar, uuid, bigint, bigint, varchar[], bigint[]);",
        )
    ]
