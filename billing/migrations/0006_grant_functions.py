"""Credit comes in by grants and is spent from them in order; a charge is counted once and never below its minimum.

Every function here locks the workspace's credit account first (billing_post does, or its caller did), then the hold,
then grants.
"""

from django.db import migrations

# As before, and: a debit may go down to the credit limit, or further where `p_may_owe`; and a key that was used is
# told from a balance that is too low. `p_reason`: why, where a person decided it.
POST = """
DROP FUNCTION billing_post(uuid, uuid, varchar, varchar, uuid, bigint, bigint, varchar[], bigint[]);
CREATE FUNCTION billing_post(
    p_id uuid, p_workspace uuid, p_kind varchar, p_key varchar, p_job uuid,
    p_available bigint, p_held bigint, p_accounts varchar[], p_amounts bigint[],
    p_may_owe boolean DEFAULT false, p_reason varchar DEFAULT ''
) RETURNS varchar LANGUAGE plpgsql AS $$
BEGIN
    -- First, so that whoever moves this workspace's money waits here.
    UPDATE billing_creditaccount
    SET available_micros = available_micros + p_available, held_micros = held_micros + p_held
    WHERE workspace_id = p_workspace
        AND (p_may_owe OR p_available >= 0 OR available_micros + p_available >= -credit_limit_micros)
        AND held_micros + LEAST(p_held, 0) >= 0;
    IF NOT FOUND THEN
        IF EXISTS (SELECT 1 FROM billing_ledgertransaction WHERE idempotency_key = p_key) THEN
            RETURN 'already_posted';
        END IF;
        RETURN 'balance_too_low';
    END IF;
    INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, job_id, reason, created_at)
    VALUES (p_id, p_workspace, p_kind, p_key, p_job, p_reason, now())
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
POST_UNDO = """
DROP FUNCTION billing_post(
    uuid, uuid, varchar, varchar, uuid, bigint, bigint, varchar[], bigint[], boolean, varchar
);
CREATE FUNCTION billing_post(
    p_id uuid, p_workspace uuid, p_kind varchar, p_key varchar, p_job uuid,
    p_available bigint, p_held bigint, p_accounts varchar[], p_amounts bigint[]
) RETURNS varchar LANGUAGE plpgsql AS $$
BEGIN
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

# Takes what was spent from the grants in their order; what no grant covers is owed. The account is locked already.
SPEND = """
CREATE FUNCTION billing_spend_grants(p_workspace uuid, p_transaction uuid, p_amount bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    g record;
    v_left bigint := p_amount;
    v_taken bigint;
BEGIN
    WHILE v_left > 0 LOOP
        SELECT id, remaining_micros INTO g FROM billing_creditgrant
        WHERE workspace_id = p_workspace AND NOT is_spent
        ORDER BY priority, expires_at, created_at, id LIMIT 1;
        EXIT WHEN NOT FOUND;
        v_taken := LEAST(v_left, g.remaining_micros);
        UPDATE billing_creditgrant
        SET remaining_micros = remaining_micros - v_taken, is_spent = remaining_micros = v_taken WHERE id = g.id;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (g.id, p_transaction, v_taken);
        v_left := v_left - v_taken;
    END LOOP;
    IF v_left > 0 THEN
        UPDATE billing_creditaccount SET owed_micros = owed_micros + v_left WHERE workspace_id = p_workspace;
    END IF;
END $$;
"""

# Credit comes in. What is owed is paid by it first.
ADD = """
CREATE FUNCTION billing_add_grant(
    p_grant uuid, p_workspace uuid, p_grant_kind varchar, p_amount bigint, p_priority int, p_expires_at timestamptz,
    p_kind varchar, p_key varchar, p_source varchar, p_reason varchar
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_outcome varchar;
    v_pays bigint;
BEGIN
    v_outcome := billing_post(
        v_transaction, p_workspace, p_kind, p_key, NULL, p_amount, 0,
        ARRAY[p_source, 'available'], ARRAY[-p_amount, p_amount], true, p_reason
    );
    IF v_outcome <> 'posted' THEN
        RETURN v_outcome;
    END IF;
    SELECT LEAST(owed_micros, p_amount) INTO v_pays FROM billing_creditaccount WHERE workspace_id = p_workspace;
    INSERT INTO billing_creditgrant (
        id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, expires_at, is_spent, created_at
    ) VALUES (
        p_grant, p_workspace, p_grant_kind, v_transaction, p_amount, p_amount - v_pays, p_priority, p_expires_at,
        p_amount = v_pays, clock_timestamp()
    );
    IF v_pays > 0 THEN
        UPDATE billing_creditaccount SET owed_micros = owed_micros - v_pays WHERE workspace_id = p_workspace;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (p_grant, v_transaction, v_pays);
    END IF;
    RETURN 'posted';
END $$;
"""

# Money goes out other than for speech: a fee, a tax, an adjustment.
DEBIT = """
CREATE FUNCTION billing_debit(
    p_workspace uuid, p_amount bigint, p_kind varchar, p_key varchar, p_account varchar, p_may_owe boolean,
    p_reason varchar
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_outcome varchar;
BEGIN
    v_outcome := billing_post(
        v_transaction, p_workspace, p_kind, p_key, NULL, -p_amount, 0,
        ARRAY['available', p_account], ARRAY[-p_amount, p_amount], p_may_owe, p_reason
    );
    IF v_outcome = 'posted' THEN
        PERFORM billing_spend_grants(p_workspace, v_transaction, p_amount);
    END IF;
    RETURN v_outcome;
END $$;
"""

# Money that came by one grant goes back where it came from. `p_may_owe`: also what was spent already (a chargeback),
# which is owed then; else no more than what is left of the grant.
TAKE_BACK = """
CREATE FUNCTION billing_take_back(
    p_grant uuid, p_amount bigint, p_kind varchar, p_key varchar, p_may_owe boolean, p_reason varchar
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_workspace uuid;
    v_remaining bigint;
    v_available bigint;
    v_taken bigint;
    v_outcome varchar;
BEGIN
    SELECT workspace_id INTO v_workspace FROM billing_creditgrant WHERE id = p_grant;
    SELECT available_micros INTO v_available
    FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT remaining_micros INTO v_remaining FROM billing_creditgrant WHERE id = p_grant FOR NO KEY UPDATE;
    IF NOT p_may_owe AND LEAST(v_remaining, v_available) < p_amount THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM billing_ledgertransaction WHERE idempotency_key = p_key)
            THEN 'already_posted' ELSE 'balance_too_low' END;
    END IF;
    v_outcome := billing_post(
        v_transaction, v_workspace, p_kind, p_key, NULL, -p_amount, 0,
        '{available,payments}'::varchar[], ARRAY[-p_amount, p_amount], true, p_reason
    );
    IF v_outcome <> 'posted' THEN
        RETURN v_outcome;
    END IF;
    v_taken := LEAST(v_remaining, p_amount);
    IF v_taken > 0 THEN
        UPDATE billing_creditgrant
        SET remaining_micros = remaining_micros - v_taken, is_spent = remaining_micros = v_taken WHERE id = p_grant;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (p_grant, v_transaction, v_taken);
    END IF;
    UPDATE billing_creditaccount SET owed_micros = owed_micros + (p_amount - v_taken) WHERE workspace_id = v_workspace;
    RETURN 'posted';
END $$;
"""

# What is left of a grant whose time is over is gone, but for what is set aside for jobs that were taken in before: they
# may still spend it. What is held counts against the grants that are spent first.
EXPIRE = """
CREATE FUNCTION billing_expire_grant(p_grant uuid, OUT expired bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    g record;
    a record;
    v_workspace uuid;
    v_before bigint;
BEGIN
    expired := 0;
    SELECT workspace_id INTO v_workspace FROM billing_creditgrant WHERE id = p_grant;
    SELECT available_micros, held_micros INTO a
    FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT * INTO g FROM billing_creditgrant
    WHERE id = p_grant AND NOT is_spent AND expires_at <= now() FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT COALESCE(SUM(o.remaining_micros), 0) INTO v_before FROM billing_creditgrant o
    WHERE o.workspace_id = v_workspace AND NOT o.is_spent
        AND (o.priority, o.expires_at, o.created_at, o.id) < (g.priority, g.expires_at, g.created_at, g.id);
    expired := LEAST(g.remaining_micros - GREATEST(0, a.held_micros - v_before), g.remaining_micros, a.available_micros);
    IF expired <= 0 THEN
        expired := 0;
        RETURN;
    END IF;
    PERFORM billing_post(
        v_transaction, v_workspace, 'expiry', 'expiry:' || v_transaction, NULL, -expired, 0,
        '{available,expired}'::varchar[], ARRAY[-expired, expired]
    );
    UPDATE billing_creditgrant
    SET remaining_micros = remaining_micros - expired, is_spent = remaining_micros = expired WHERE id = p_grant;
    INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (p_grant, v_transaction, expired);
END $$;
"""

APPEND_ONLY = """
CREATE TRIGGER grant_use_append_only BEFORE UPDATE OR DELETE ON billing_grantuse
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_change();
"""

# Until now credit had no name: what is left of it is one grant, dated by the account's first transaction.
NAME_WHAT_IS_THERE = """
INSERT INTO billing_creditgrant (
    id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, is_spent, created_at
)
SELECT gen_random_uuid(), a.workspace_id, 'promotional', first.id, a.available_micros + a.held_micros,
    a.available_micros + a.held_micros, 20, false, now()
FROM billing_creditaccount a
CROSS JOIN LATERAL (
    SELECT t.id FROM billing_ledgertransaction t WHERE t.workspace_id = a.workspace_id AND t.kind = 'grant'
    ORDER BY t.created_at, t.id LIMIT 1
) AS first
WHERE a.available_micros + a.held_micros > 0;
UPDATE billing_hold SET rated_micros = captured_micros WHERE captured_micros > 0;
UPDATE billing_hold h SET refunded_micros = captured_micros
FROM billing_ledgertransaction t WHERE t.job_id = h.job_id AND t.kind = 'refund' AND h.captured_micros > 0;
"""
STORAGE = """
ALTER TABLE billing_creditaccount SET (fillfactor = 50);
ALTER TABLE billing_creditgrant SET (fillfactor = 70);
ALTER TABLE billing_hold SET (fillfactor = 70);
"""
STORAGE_UNDO = """
ALTER TABLE billing_creditaccount RESET (fillfactor);
ALTER TABLE billing_creditgrant RESET (fillfactor);
ALTER TABLE billing_hold RESET (fillfactor);
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0005_grants")]
    operations = [
        migrations.RunSQL(STORAGE, STORAGE_UNDO),
        migrations.RunSQL(NAME_WHAT_IS_THERE, migrations.RunSQL.noop),
        migrations.RunSQL(POST, POST_UNDO),
        migrations.RunSQL(SPEND, "DROP FUNCTION billing_spend_grants(uuid, uuid, bigint);"),
        migrations.RunSQL(
            ADD,
            "DROP FUNCTION billing_add_grant("
            "uuid, uuid, varchar, bigint, int, timestamptz, varchar, varchar, varchar, varchar);",
        ),
        migrations.RunSQL(
            DEBIT, "DROP FUNCTION billing_debit(uuid, bigint, varchar, varchar, varchar, boolean, varchar);"
        ),
        migrations.RunSQL(
            TAKE_BACK, "DROP FUNCTION billing_take_back(uuid, bigint, varchar, varchar, boolean, varchar);"
        ),
        migrations.RunSQL(EXPIRE, "DROP FUNCTION billing_expire_grant(uuid);"),
        migrations.RunSQL(APPEND_ONLY, "DROP TRIGGER grant_use_append_only ON billing_grantuse;"),
    ]
