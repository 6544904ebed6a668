"""Taking from a hold and closing it, each in one call. Locks: the credit account, then the hold."""

from django.db import migrations

CAPTURE = """
CREATE FUNCTION billing_capture(p_job uuid, p_attempt uuid, p_amount bigint, OUT outcome varchar, OUT charged bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_hold record;
    v_workspace uuid;
BEGIN
    charged := 0;
    SELECT workspace_id INTO v_workspace FROM billing_hold WHERE job_id = p_job;
    IF NOT FOUND THEN
        outcome := 'no_hold';
        RETURN;
    END IF;
    PERFORM 1 FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT id, state, amount_micros, captured_micros INTO v_hold
    FROM billing_hold WHERE job_id = p_job FOR NO KEY UPDATE;
    IF v_hold.state <> 'open' THEN
        outcome := 'hold_not_open';
        RETURN;
    END IF;
    charged := LEAST(p_amount, v_hold.amount_micros - v_hold.captured_micros);
    outcome := billing_post(
        gen_random_uuid(), v_workspace, 'capture', 'capture:' || p_attempt, p_job, 0, -charged,
        CASE WHEN charged = 0 THEN '{}' ELSE '{held,revenue}' END::varchar[],
        CASE WHEN charged = 0 THEN '{}'::bigint[] ELSE ARRAY[-charged, charged] END
    );
    IF outcome <> 'posted' THEN
        charged := 0;
        RETURN;
    END IF;
    UPDATE billing_hold SET captured_micros = captured_micros + charged WHERE id = v_hold.id;
END $$;
"""
RELEASE = """
CREATE FUNCTION billing_release(p_job uuid, OUT outcome varchar, OUT released bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_hold record;
    v_workspace uuid;
BEGIN
    released := 0;
    SELECT workspace_id INTO v_workspace FROM billing_hold WHERE job_id = p_job;
    IF NOT FOUND THEN
        outcome := 'no_hold';
        RETURN;
    END IF;
    PERFORM 1 FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT id, state, amount_micros - captured_micros AS rest INTO v_hold
    FROM billing_hold WHERE job_id = p_job FOR NO KEY UPDATE;
    IF v_hold.state <> 'open' THEN
        outcome := 'hold_not_open';
        RETURN;
    END IF;
    released := v_hold.rest;
    outcome := 'posted';
    IF released <> 0 THEN
        outcome := billing_post(
            gen_random_uuid(), v_workspace, 'release', 'release:' || p_job, p_job, released, -released,
            '{held,available}'::varchar[], ARRAY[-released, released]
        );
        IF outcome <> 'posted' THEN
            released := 0;
            RETURN;
        END IF;
    END IF;
    UPDATE billing_hold SET state = 'closed', closed_at = statement_timestamp() WHERE id = v_hold.id;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0003_ledger_post")]
    operations = [
        migrations.RunSQL(CAPTURE, "DROP FUNCTION billing_capture(uuid, uuid, bigint);"),
        migrations.RunSQL(RELEASE, "DROP FUNCTION billing_release(uuid);"),
    ]
