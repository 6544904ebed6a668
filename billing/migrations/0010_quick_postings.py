"""Setting aside, and the last charge of a job, each in one call; the sum of a posting is checked once, not per entry."""

from django.db import migrations

# A posting writes all of its entries in one statement: that statement has to sum to zero for every transaction. So does
# then every transaction, for entries are never changed.
SUM = """
DROP TRIGGER ledger_entry_sums_to_zero ON billing_ledgerentry;
DROP FUNCTION billing_check_sum();
CREATE FUNCTION billing_check_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid;
BEGIN
    SELECT transaction_id INTO v_transaction FROM new_rows
    GROUP BY transaction_id HAVING SUM(amount_micros) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'ledger transaction % does not sum to zero', v_transaction USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_entry_sums_to_zero AFTER INSERT ON billing_ledgerentry REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION billing_check_sums();
"""
SUM_UNDO = """
DROP TRIGGER ledger_entry_sums_to_zero ON billing_ledgerentry;
DROP FUNCTION billing_check_sums();
CREATE FUNCTION billing_check_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT COALESCE(SUM(amount_micros), 0) FROM billing_ledgerentry WHERE transaction_id = NEW.transaction_id) <> 0 THEN
        RAISE EXCEPTION 'ledger transaction % does not sum to zero', NEW.transaction_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_entry_sums_to_zero AFTER INSERT ON billing_ledgerentry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_sum();
"""

# `budgets`: there is a hard budget that the caller has to look at first (`p_budgets_checked`). Nothing was changed then.
PLACE = """
CREATE FUNCTION billing_place_hold(
    p_hold uuid, p_workspace uuid, p_job uuid, p_amount bigint, p_minimum bigint, p_user uuid, p_key uuid,
    p_budgets_checked boolean
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_outcome varchar;
BEGIN
    IF NOT p_budgets_checked AND EXISTS (
        SELECT 1 FROM billing_budget WHERE workspace_id = p_workspace AND is_hard
            AND (scope = 'workspace' OR subject_id IN (p_user, p_key))
    ) THEN
        RETURN 'budgets';
    END IF;
    v_outcome := billing_post(
        gen_random_uuid(), p_workspace, 'hold', 'hold:' || p_job, p_job, -p_amount, p_amount,
        CASE WHEN p_amount = 0 THEN '{}' ELSE '{available,held}' END::varchar[],
        CASE WHEN p_amount = 0 THEN '{}'::bigint[] ELSE ARRAY[-p_amount, p_amount] END
    );
    IF v_outcome = 'posted' THEN
        INSERT INTO billing_hold (
            id, workspace_id, job_id, user_id, api_key_id, state, amount_micros, captured_micros, rated_micros,
            minimum_micros, refunded_micros, created_at
        ) VALUES (p_hold, p_workspace, p_job, p_user, p_key, 'open', p_amount, 0, 0, p_minimum, 0, now());
    END IF;
    RETURN v_outcome;
END $$;
"""

# A charge as billing_capture makes it; `p_last`: nothing more comes, and the rest of the hold is released in the same go.
SETTLE = """
CREATE FUNCTION billing_settle(
    p_job uuid, p_attempt uuid, p_amount bigint, p_last boolean, OUT outcome varchar, OUT charged bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_hold record;
    v_workspace uuid;
    v_capture uuid := gen_random_uuid();
    v_release uuid := gen_random_uuid();
    v_rated bigint;
    v_rest bigint := 0;
BEGIN
    charged := 0;
    SELECT workspace_id INTO v_workspace FROM billing_hold WHERE job_id = p_job;
    IF NOT FOUND THEN
        outcome := 'no_hold';
        RETURN;
    END IF;
    PERFORM 1 FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT id, state, amount_micros, captured_micros, rated_micros, minimum_micros INTO v_hold
    FROM billing_hold WHERE job_id = p_job FOR NO KEY UPDATE;
    IF v_hold.state <> 'open' THEN
        outcome := 'hold_not_open';
        RETURN;
    END IF;
    INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, job_id, created_at)
    VALUES (v_capture, v_workspace, 'capture', 'capture:' || p_attempt, p_job, now())
    ON CONFLICT (idempotency_key) DO NOTHING;
    IF NOT FOUND THEN
        outcome := 'already_posted';
        RETURN;
    END IF;
    v_rated := v_hold.rated_micros + p_amount;
    charged := LEAST(
        CASE WHEN v_rated > 0 THEN GREATEST(v_rated, v_hold.minimum_micros) ELSE 0 END, v_hold.amount_micros
    ) - v_hold.captured_micros;
    IF p_last THEN
        v_rest := v_hold.amount_micros - v_hold.captured_micros - charged;
    END IF;
    IF v_rest > 0 THEN
        INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, job_id, created_at)
        VALUES (v_release, v_workspace, 'release', 'release:' || p_job, p_job, now());
    END IF;
    INSERT INTO billing_ledgerentry (transaction_id, account, amount_micros)
    SELECT entry.id, entry.account, entry.amount FROM (VALUES
        (v_capture, 'held', -charged), (v_capture, 'revenue', charged),
        (v_release, 'held', -v_rest), (v_release, 'available', v_rest)
    ) AS entry (id, account, amount) WHERE entry.amount <> 0;
    UPDATE billing_creditaccount
    SET held_micros = held_micros - charged - v_rest, available_micros = available_micros + v_rest
    WHERE workspace_id = v_workspace;
    PERFORM billing_spend_grants(v_workspace, v_capture, charged);
    UPDATE billing_hold SET captured_micros = captured_micros + charged, rated_micros = v_rated,
        state = CASE WHEN p_last THEN 'closed' ELSE state END,
        closed_at = CASE WHEN p_last THEN statement_timestamp() END
    WHERE id = v_hold.id;
    outcome := 'posted';
END $$;
DROP FUNCTION billing_capture(uuid, uuid, bigint);
"""
SETTLE_UNDO = """
DROP FUNCTION billing_settle(uuid, uuid, bigint, boolean);
CREATE FUNCTION billing_capture(
    p_job uuid, p_attempt uuid, p_amount bigint, OUT outcome varchar, OUT charged bigint
) LANGUAGE plpgsql AS $$
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


class Migration(migrations.Migration):
    dependencies = [("billing", "0009_money")]
    operations = [
        migrations.RunSQL(SUM, SUM_UNDO),
        migrations.RunSQL(
            PLACE,
            "DROP FUNCTION billing_place_hold(uuid, uuid, uuid, bigint, bigint, uuid, uuid, boolean);",
        ),
        migrations.RunSQL(SETTLE, SETTLE_UNDO),
    ]
