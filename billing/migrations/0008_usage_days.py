"""Usage is dated by the workspace's own time zone and summed by day; prices in force and records are never changed."""

from django.db import migrations

DATED = """
CREATE FUNCTION billing_day(p_workspace uuid, p_moment timestamptz) RETURNS date LANGUAGE sql STABLE AS $$
    SELECT (p_moment AT TIME ZONE COALESCE(
        (SELECT time_zone FROM billing_creditaccount WHERE workspace_id = p_workspace), 'UTC'
    ))::date
$$;
CREATE FUNCTION billing_date_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.day := billing_day(NEW.workspace_id, NEW.finished_at);
    RETURN NEW;
END $$;
CREATE TRIGGER usage_dated BEFORE INSERT ON billing_usagerecord FOR EACH ROW EXECUTE FUNCTION billing_date_usage();
UPDATE billing_usagerecord SET day = billing_day(workspace_id, finished_at);
"""
# What was charged before it was noted here stands in the ledger.
CHARGED = """
UPDATE billing_usagerecord u SET charged_micros = e.amount_micros, rated_micros = e.amount_micros
FROM billing_ledgertransaction t JOIN billing_ledgerentry e ON e.transaction_id = t.id AND e.account = 'revenue'
WHERE t.idempotency_key = 'capture:' || u.attempt_id AND u.billable;
"""
DATED_UNDO = """
DROP TRIGGER usage_dated ON billing_usagerecord;
DROP FUNCTION billing_date_usage();
DROP FUNCTION billing_day(uuid, timestamptz);
"""

# In the order of the key, so that two settlements of one workspace never wait for each other in a circle.
SUMMED = """
CREATE FUNCTION billing_sum_usage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO billing_usageday AS d (
        workspace_id, day, device_class, job_class, voice_id, user_id, api_key_id, billable,
        records, gpu_ms, audio_ms, characters, rated_micros, charged_micros
    )
    SELECT workspace_id, day, device_class, job_class, voice_id, user_id, api_key_id, billable,
        COUNT(*), SUM(gpu_ms), SUM(audio_ms), SUM(characters), SUM(rated_micros), SUM(charged_micros)
    FROM new_rows GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    ON CONFLICT ON CONSTRAINT usage_day_once DO UPDATE SET
        records = d.records + excluded.records, gpu_ms = d.gpu_ms + excluded.gpu_ms,
        audio_ms = d.audio_ms + excluded.audio_ms, characters = d.characters + excluded.characters,
        rated_micros = d.rated_micros + excluded.rated_micros, charged_micros = d.charged_micros + excluded.charged_micros;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_summed AFTER INSERT ON billing_usagerecord REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION billing_sum_usage();
INSERT INTO billing_usageday (
    workspace_id, day, device_class, job_class, voice_id, user_id, api_key_id, billable,
    records, gpu_ms, audio_ms, characters, rated_micros, charged_micros
)
SELECT workspace_id, day, device_class, job_class, voice_id, user_id, api_key_id, billable,
    COUNT(*), SUM(gpu_ms), SUM(audio_ms), SUM(characters), SUM(rated_micros), SUM(charged_micros)
FROM billing_usagerecord GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
"""
SUMMED_UNDO = """
DROP TRIGGER usage_summed ON billing_usagerecord;
DROP FUNCTION billing_sum_usage();
DELETE FROM billing_usageday;
"""

UNCHANGED = """
CREATE TRIGGER usage_record_append_only BEFORE UPDATE OR DELETE ON billing_usagerecord
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_change();

CREATE FUNCTION billing_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.effective_at <= now() THEN
        RAISE EXCEPTION 'price version % is in force: % refused', OLD.number, TG_OP USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER price_kept BEFORE UPDATE OR DELETE ON billing_priceversion
    FOR EACH ROW EXECUTE FUNCTION billing_keep_price();
"""
UNCHANGED_UNDO = """
DROP TRIGGER price_kept ON billing_priceversion;
DROP FUNCTION billing_keep_price();
DROP TRIGGER usage_record_append_only ON billing_usagerecord;
"""

# What a job had cost goes back: into the grants that it came from, the last one first; what came from none was owed, and
# is owed no more. What was owed and has been paid since comes back as paid credit.
REFUND = """
CREATE FUNCTION billing_refund(p_job uuid, p_amount bigint, p_key varchar, p_reason varchar, OUT outcome varchar)
LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_workspace uuid;
    v_hold record;
    u record;
    v_left bigint := p_amount;
    v_back bigint;
BEGIN
    SELECT workspace_id INTO v_workspace FROM billing_hold WHERE job_id = p_job;
    IF NOT FOUND THEN
        outcome := 'no_hold';
        RETURN;
    END IF;
    PERFORM 1 FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT id, state, captured_micros - refunded_micros AS refundable INTO v_hold
    FROM billing_hold WHERE job_id = p_job FOR NO KEY UPDATE;
    IF EXISTS (SELECT 1 FROM billing_ledgertransaction WHERE idempotency_key = p_key) THEN
        outcome := 'already_posted';
        RETURN;
    END IF;
    IF v_hold.state = 'open' THEN
        outcome := 'hold_open';
        RETURN;
    END IF;
    IF p_amount > v_hold.refundable THEN
        outcome := 'more_than_charged';
        RETURN;
    END IF;
    outcome := billing_post(
        v_transaction, v_workspace, 'refund', p_key, p_job, p_amount, 0,
        '{revenue,available}'::varchar[], ARRAY[-p_amount, p_amount], true, p_reason
    );
    FOR u IN
        SELECT use.grant_id, SUM(use.amount_micros) AS amount, g.expires_at <= now() AS is_over
        FROM billing_grantuse use
        JOIN billing_ledgertransaction t ON t.id = use.transaction_id
        JOIN billing_creditgrant g ON g.id = use.grant_id
        WHERE t.job_id = p_job GROUP BY use.grant_id, g.expires_at HAVING SUM(use.amount_micros) > 0
        ORDER BY MAX(use.id) DESC
    LOOP
        v_back := LEAST(v_left, u.amount);
        EXIT WHEN v_back = 0;
        IF u.is_over THEN
            -- Given back into what has expired it would be gone within a minute: it lasts another month.
            INSERT INTO billing_creditgrant (
                id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, expires_at, is_spent,
                created_at
            ) VALUES (
                gen_random_uuid(), v_workspace, 'promotional', v_transaction, v_back, v_back, 20,
                now() + interval '30 days', false, clock_timestamp()
            );
            v_left := v_left - v_back;
            CONTINUE;
        END IF;
        UPDATE billing_creditgrant SET remaining_micros = remaining_micros + v_back, is_spent = false
        WHERE id = u.grant_id;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros)
        VALUES (u.grant_id, v_transaction, -v_back);
        v_left := v_left - v_back;
    END LOOP;
    SELECT LEAST(owed_micros, v_left) INTO v_back FROM billing_creditaccount WHERE workspace_id = v_workspace;
    UPDATE billing_creditaccount SET owed_micros = owed_micros - v_back WHERE workspace_id = v_workspace;
    v_left := v_left - v_back;
    IF v_left > 0 THEN
        INSERT INTO billing_creditgrant (
            id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, is_spent, created_at
        ) VALUES (gen_random_uuid(), v_workspace, 'paid', v_transaction, v_left, v_left, 40, false, clock_timestamp());
    END IF;
    UPDATE billing_hold SET refunded_micros = refunded_micros + p_amount WHERE id = v_hold.id;
    -- Given back today, for what the job had used most of.
    INSERT INTO billing_usageday AS d (
        workspace_id, day, device_class, job_class, voice_id, user_id, api_key_id, billable,
        records, gpu_ms, audio_ms, characters, rated_micros, charged_micros, refunded_micros
    )
    SELECT v_workspace, billing_day(v_workspace, now()), used.device_class, used.job_class, used.voice_id, used.user_id,
        used.api_key_id, true, 0, 0, 0, 0, 0, 0, p_amount
    FROM billing_usagerecord used WHERE used.job_id = p_job AND used.billable
    ORDER BY used.charged_micros DESC, used.id LIMIT 1
    ON CONFLICT ON CONSTRAINT usage_day_once DO UPDATE SET refunded_micros = d.refunded_micros + excluded.refunded_micros;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0007_rated_usage")]
    operations = [
        migrations.RunSQL(DATED, DATED_UNDO),
        migrations.RunSQL(CHARGED, migrations.RunSQL.noop),
        migrations.RunSQL(SUMMED, SUMMED_UNDO),
        migrations.RunSQL(REFUND, "DROP FUNCTION billing_refund(uuid, bigint, varchar, varchar);"),
        migrations.RunSQL(UNCHANGED, UNCHANGED_UNDO),
        migrations.RunSQL(
            "ALTER TABLE billing_usageday SET (fillfactor = 70);",
            "ALTER TABLE billing_usageday RESET (fillfactor);",
        ),
    ]
