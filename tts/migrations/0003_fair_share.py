"""Counters of what waits and runs, kept by a trigger, and the decision which segment goes next, made in one call.

The rule in words stands in tts.services.fair_share.
"""

from django.db import migrations

# A transaction that changes what runs locks all queues of its workspace, in the order of their classes; one that
# only adds what waits locks one. Nothing that holds such a lock waits for another workspace's.
COUNTERS = """
CREATE FUNCTION tts_apply_segment_counts(
    p_workspace uuid, p_class varchar, p_queued int, p_estimate bigint, p_running int
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_clock bigint;
BEGIN
    IF p_running <> 0 THEN
        PERFORM 1 FROM tts_fairsharequeue WHERE workspace_id = p_workspace ORDER BY job_class FOR UPDATE;
    END IF;
    SELECT virtual_time INTO v_clock FROM tts_fairshareclass WHERE job_class = p_class;
    v_clock := COALESCE(v_clock, 0);
    -- A queue that comes back starts at the clock of its class: the time it was away is not banked.
    UPDATE tts_fairsharequeue SET
        start_tag = CASE WHEN queued = 0 AND p_queued > 0 THEN GREATEST(start_tag, v_clock) ELSE start_tag END,
        queued = queued + p_queued,
        queued_estimate_gpu_ms = queued_estimate_gpu_ms + p_estimate,
        running = running + p_running
    WHERE workspace_id = p_workspace AND job_class = p_class;
    IF NOT FOUND THEN
        PERFORM 1 FROM tts_fairsharequeue WHERE workspace_id = p_workspace ORDER BY job_class FOR UPDATE;
        INSERT INTO tts_fairsharequeue AS q (
            workspace_id, job_class, start_tag, queued, queued_estimate_gpu_ms, running, workspace_running, running_limit
        ) SELECT p_workspace, p_class, v_clock, p_queued, p_estimate, p_running,
            COALESCE((SELECT SUM(running) FROM tts_fairsharequeue WHERE workspace_id = p_workspace), 0),
            COALESCE(w.running_segments_limit, 2147483647)
        FROM accounts_workspace w WHERE w.id = p_workspace
        ON CONFLICT (workspace_id, job_class) DO UPDATE SET
            queued = q.queued + excluded.queued,
            queued_estimate_gpu_ms = q.queued_estimate_gpu_ms + excluded.queued_estimate_gpu_ms,
            running = q.running + excluded.running;
    END IF;
    IF p_running <> 0 THEN
        UPDATE tts_fairsharequeue SET workspace_running = workspace_running + p_running
        WHERE workspace_id = p_workspace;
    END IF;
END $$;

CREATE FUNCTION tts_count_inserted_segments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN
        SELECT workspace_id, job_class,
            COUNT(*) FILTER (WHERE state = 'queued')::int AS queued,
            COALESCE(SUM(estimate_gpu_ms) FILTER (WHERE state = 'queued'), 0)::bigint AS estimate,
            COUNT(*) FILTER (WHERE state IN ('bound', 'running'))::int AS running
        FROM new_rows GROUP BY workspace_id, job_class ORDER BY workspace_id, job_class
    LOOP
        IF r.queued <> 0 OR r.running <> 0 THEN
            PERFORM tts_apply_segment_counts(r.workspace_id, r.job_class, r.queued, r.estimate, r.running);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION tts_count_changed_segments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    IF current_setting('voicepool.counted', true) = 'yes' THEN
        RETURN NULL;
    END IF;
    FOR r IN
        SELECT workspace_id, job_class,
            COALESCE(SUM(sign) FILTER (WHERE state = 'queued'), 0)::int AS queued,
            COALESCE(SUM(sign * estimate_gpu_ms) FILTER (WHERE state = 'queued'), 0)::bigint AS estimate,
            COALESCE(SUM(sign) FILTER (WHERE state IN ('bound', 'running')), 0)::int AS running
        FROM (
            SELECT workspace_id, job_class, state, estimate_gpu_ms, 1 AS sign FROM new_rows
            UNION ALL SELECT workspace_id, job_class, state, estimate_gpu_ms, -1 FROM old_rows
        ) AS changes GROUP BY workspace_id, job_class ORDER BY workspace_id, job_class
    LOOP
        IF r.queued <> 0 OR r.estimate <> 0 OR r.running <> 0 THEN
            PERFORM tts_apply_segment_counts(r.workspace_id, r.job_class, r.queued, r.estimate, r.running);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE FUNCTION tts_count_deleted_segments() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN
        SELECT workspace_id, job_class,
            COUNT(*) FILTER (WHERE state = 'queued')::int AS queued,
            COALESCE(SUM(estimate_gpu_ms) FILTER (WHERE state = 'queued'), 0)::bigint AS estimate,
            COUNT(*) FILTER (WHERE state IN ('bound', 'running'))::int AS running
        FROM old_rows GROUP BY workspace_id, job_class ORDER BY workspace_id, job_class
    LOOP
        -- With its workspace, a queue goes too: then there is nothing left to count in.
        IF (r.queued <> 0 OR r.running <> 0)
            AND EXISTS (SELECT 1 FROM accounts_workspace w WHERE w.id = r.workspace_id)
        THEN
            PERFORM tts_apply_segment_counts(r.workspace_id, r.job_class, -r.queued, -r.estimate, -r.running);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER segments_inserted AFTER INSERT ON tts_segment REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION tts_count_inserted_segments();
CREATE TRIGGER segments_changed AFTER UPDATE ON tts_segment REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION tts_count_changed_segments();
CREATE TRIGGER segments_deleted AFTER DELETE ON tts_segment REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION tts_count_deleted_segments();
"""
COUNTERS_UNDO = """
DROP TRIGGER segments_deleted ON tts_segment;
DROP TRIGGER segments_changed ON tts_segment;
DROP TRIGGER segments_inserted ON tts_segment;
DROP FUNCTION tts_count_deleted_segments();
DROP FUNCTION tts_count_changed_segments();
DROP FUNCTION tts_count_inserted_segments();
DROP FUNCTION tts_apply_segment_counts(uuid, varchar, int, bigint, int);
"""

# The rows are small and change all the time: room for updates in place, and early cleaning.
STORAGE = """
ALTER TABLE tts_fairsharequeue SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tts_fairshareclass SET (fillfactor = 10, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
ALTER TABLE tts_deviceslot SET (fillfactor = 50);
"""
STORAGE_UNDO = """
ALTER TABLE tts_fairsharequeue RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE tts_fairshareclass RESET (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor);
ALTER TABLE tts_deviceslot RESET (fillfactor);
"""

DECISION = """
CREATE FUNCTION tts_ensure_classes() RETURNS void LANGUAGE sql AS $$
    INSERT INTO tts_fairshareclass
        (job_class, weight, override_age_s, start_tag, virtual_time, active, picks_since_override)
    VALUES ('interactive', 16, 30, 0, 0, false, 0),
        ('standard', 4, 600, 0, 0, false, 0),
        ('batch', 1, 21600, 0, 0, false, 0)
    ON CONFLICT DO NOTHING;
$$;

-- All queues of a workspace, in order, as the counters' trigger takes them; false when somebody holds one of them for
-- longer than a settlement or a submission takes.
CREATE FUNCTION tts_lock_queues(p_workspace uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM tts_fairsharequeue WHERE workspace_id = p_workspace ORDER BY job_class FOR UPDATE;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;

-- What was charged in advance is set right by what it really took. Faults of the platform cost a queue nothing. The
-- caller holds the classes' locks.
CREATE FUNCTION tts_true_up() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_actual_ms bigint;
    -- No queue owes more than ten minutes of a device: a guess that was far too low must not lock anyone out.
    c_debt_limit constant bigint := 600000 * 1000;
BEGIN
    FOR r IN
        SELECT a.id, a.workspace_id, a.state, a.error_code, a.gpu_ms, a.share_charged, a.share_weight,
            s.job_class, c.virtual_time, c.weight AS class_weight
        FROM tts_attempt a
        JOIN tts_segment s ON s.id = a.segment_id
        JOIN tts_fairshareclass c ON c.job_class = s.job_class
        WHERE NOT a.share_settled AND a.finished_at IS NOT NULL
        ORDER BY a.id LIMIT 100
        FOR UPDATE OF a SKIP LOCKED
    LOOP
        IF r.share_charged = 0 THEN
            UPDATE tts_attempt SET share_settled = true WHERE id = r.id;
            CONTINUE;
        END IF;
        -- Whoever holds them for long, such as a client that hangs, must not stop the others' decisions.
        CONTINUE WHEN NOT tts_lock_queues(r.workspace_id);
        UPDATE tts_attempt SET share_settled = true WHERE id = r.id;
        v_actual_ms := CASE WHEN r.state IN ('succeeded', 'canceled') OR r.error_code = 'budget_exhausted'
            THEN r.gpu_ms ELSE 0 END;
        UPDATE tts_fairsharequeue SET start_tag = LEAST(
            start_tag + v_actual_ms * 1000 / r.share_weight - r.share_charged,
            GREATEST(start_tag, r.virtual_time + c_debt_limit)
        ) WHERE workspace_id = r.workspace_id AND job_class = r.job_class;
        UPDATE tts_fairshareclass SET start_tag = start_tag
            + (v_actual_ms * 1000 - r.share_charged * r.share_weight) / r.class_weight
        WHERE job_class = r.job_class;
    END LOOP;
END $$;

-- The head of a queue that has waited for longer than its class allows; the one that is the furthest beyond it. The
-- caller holds the classes' locks.
CREATE FUNCTION tts_overdue_queue(p_skipped bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    c record;
    v_head record;
    v_overdue float8;
    v_most float8 := 1;
    v_queue_id bigint;
    v_found bigint;
BEGIN
    FOR c IN SELECT * FROM tts_fairshareclass WHERE overdue_at IS NULL OR overdue_at <= now() LOOP
        -- The oldest of those that may be chosen: one workspace at its limit must not hide all that come after it.
        SELECT s.workspace_id, s.created_at INTO v_head FROM tts_segment s
        WHERE s.state = 'queued' AND s.job_class = c.job_class
            AND s.workspace_id <> ALL (ARRAY(
                SELECT q.workspace_id FROM tts_fairsharequeue q
                WHERE q.job_class = c.job_class AND q.queued > 0 AND q.workspace_running >= q.running_limit
                UNION ALL
                SELECT q.workspace_id FROM tts_fairsharequeue q WHERE q.id = ANY (p_skipped)
            ))
        ORDER BY s.id LIMIT 1;
        v_overdue := EXTRACT(EPOCH FROM now() - v_head.created_at) / c.override_age_s;
        IF v_overdue IS NULL OR v_overdue <= 1 THEN
            -- Those at their limit may come back at any decision, and be older.
            IF p_skipped = '{}' AND NOT EXISTS (
                SELECT 1 FROM tts_fairsharequeue q
                WHERE q.job_class = c.job_class AND q.queued > 0 AND q.workspace_running >= q.running_limit
            ) THEN
                UPDATE tts_fairshareclass
                SET overdue_at = COALESCE(v_head.created_at, now()) + make_interval(secs => c.override_age_s)
                WHERE job_class = c.job_class;
            END IF;
        ELSIF v_overdue > v_most THEN
            SELECT q.id INTO v_queue_id FROM tts_fairsharequeue q
            WHERE q.workspace_id = v_head.workspace_id AND q.job_class = c.job_class AND q.queued > 0
                AND q.workspace_running < q.running_limit;
            IF FOUND THEN
                v_most := v_overdue;
                v_found := v_queue_id;
            END IF;
        END IF;
    END LOOP;
    RETURN v_found;
END $$;

-- Whether a segment that was tried before should rather wait for another device: this one has failed it, and there
-- is one that has not.
CREATE FUNCTION tts_better_elsewhere(p_segment bigint, p_device bigint, p_heartbeat_seconds int)
RETURNS boolean LANGUAGE sql STABLE AS $$
    WITH failed_on AS (
        SELECT device_id FROM tts_attempt
        WHERE segment_id = p_segment AND state IN ('failed', 'lost') AND started_at IS NOT NULL
    )
    SELECT EXISTS (SELECT 1 FROM failed_on WHERE device_id = p_device) AND EXISTS (
        SELECT 1 FROM tts_deviceslot s JOIN tts_device d ON d.id = s.device_id
        WHERE s.ready AND d.state IN ('ready', 'busy')
            AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
            AND s.device_id NOT IN (SELECT device_id FROM failed_on)
    )
$$;

-- Gives a slot its next segment: writes the attempt, takes the slot, and returns the attempt's id; NULL when there is
-- nothing to do or somebody else has the slot. Locks: slot, classes, queues of one workspace, segment.
CREATE FUNCTION tts_bind(p_slot bigint, p_bind_seconds int, p_heartbeat_seconds int) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_slot record;
    v_class record;
    v_queue record;
    v_segment record;
    v_queue_id bigint;
    v_overdue_id bigint;
    v_best_tag bigint;
    v_may_override boolean;
    v_by_age boolean;
    v_skipped bigint[] := '{}';
    v_attempt uuid;
    v_charge bigint;
BEGIN
    -- A decision that a crash of the database forgets is made again: nothing waits for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT s.id, s.number, s.device_id, d.epoch INTO v_slot
    FROM tts_deviceslot s JOIN tts_device d ON d.id = s.device_id
    WHERE s.id = p_slot AND s.ready AND s.attempt_id IS NULL AND d.state IN ('ready', 'busy')
        AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
    FOR UPDATE OF s SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM 1 FROM tts_fairshareclass ORDER BY job_class FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM tts_ensure_classes();
        PERFORM 1 FROM tts_fairshareclass ORDER BY job_class FOR UPDATE;
    END IF;
    -- From here on nobody is waited for longer than that, while all other decisions wait for this one.
    PERFORM set_config('lock_timeout', '250ms', true);
    PERFORM tts_true_up();

    -- At most so many queues are passed over: their heads are being changed by others just now, or may not go here.
    FOR try IN 1..50 LOOP
        v_queue_id := NULL;
        v_best_tag := NULL;
        FOR v_class IN
            SELECT c.job_class, c.active, c.start_tag, next.id AS queue_id,
                COALESCE(MIN(c.start_tag) FILTER (WHERE c.active) OVER (), MAX(c.start_tag) OVER ()) AS newest,
                MIN(c.picks_since_override) OVER () AS least_picks, MIN(COALESCE(c.overdue_at, now())) OVER () AS overdue_at
            FROM tts_fairshareclass c
            LEFT JOIN LATERAL (
                SELECT q.id FROM tts_fairsharequeue q
                WHERE q.job_class = c.job_class AND q.queued > 0 AND q.workspace_running < q.running_limit
                    AND q.id <> ALL (v_skipped)
                ORDER BY q.start_tag, q.id LIMIT 1
            ) AS next ON true
            ORDER BY c.weight DESC
        LOOP
            v_may_override := v_class.least_picks >= 3 AND v_class.overdue_at <= now();
            IF v_class.queue_id IS NULL THEN
                IF v_class.active AND v_skipped = '{}' THEN
                    UPDATE tts_fairshareclass SET active = false WHERE job_class = v_class.job_class;
                END IF;
                CONTINUE;
            END IF;
            IF NOT v_class.active THEN
                -- A class that comes back starts where the others are, or were when the last work ended.
                v_class.start_tag := GREATEST(v_class.start_tag, v_class.newest);
                UPDATE tts_fairshareclass SET active = true, start_tag = v_class.start_tag
                WHERE job_class = v_class.job_class;
            END IF;
            IF v_best_tag IS NULL OR v_class.start_tag < v_best_tag THEN
                v_queue_id := v_class.queue_id;
                v_best_tag := v_class.start_tag;
            END IF;
        END LOOP;
        IF v_queue_id IS NULL THEN
            RETURN NULL;
        END IF;
        -- At most every fourth decision goes by age, so that a flood of old work cannot take over.
        v_by_age := false;
        IF v_may_override THEN
            v_overdue_id := tts_overdue_queue(v_skipped);
            IF v_overdue_id IS NOT NULL THEN
                v_queue_id := v_overdue_id;
                v_by_age := true;
            END IF;
        END IF;
        IF NOT tts_lock_queues((SELECT workspace_id FROM tts_fairsharequeue WHERE id = v_queue_id)) THEN
            v_segment := NULL;
            v_skipped := v_skipped || v_queue_id;
            CONTINUE;
        END IF;
        SELECT q.id, q.workspace_id, q.job_class, q.start_tag, GREATEST(1, w.weight) AS weight INTO v_queue
        FROM tts_fairsharequeue q JOIN accounts_workspace w ON w.id = q.workspace_id
        WHERE q.id = v_queue_id AND q.queued > 0 AND q.workspace_running < q.running_limit;
        IF FOUND THEN
            SELECT s.id, s.job_id, s.attempt_number, s.estimate_gpu_ms INTO v_segment
            FROM tts_segment s
            WHERE s.workspace_id = v_queue.workspace_id AND s.job_class = v_queue.job_class AND s.state = 'queued'
                AND (s.attempt_number = 0 OR NOT tts_better_elsewhere(s.id, v_slot.device_id, p_heartbeat_seconds))
            ORDER BY s.id LIMIT 1 FOR UPDATE SKIP LOCKED;
            EXIT WHEN FOUND;
        END IF;
        v_segment := NULL;
        v_skipped := v_skipped || v_queue_id;
    END LOOP;
    IF v_segment IS NULL OR v_segment.id IS NULL THEN
        RETURN NULL;
    END IF;

    UPDATE tts_fairshareclass SET
        virtual_time = CASE WHEN job_class = v_queue.job_class THEN GREATEST(virtual_time, v_queue.start_tag)
            ELSE virtual_time END,
        start_tag = CASE WHEN job_class = v_queue.job_class
            THEN start_tag + v_segment.estimate_gpu_ms::bigint * 1000 / weight ELSE start_tag END,
        picks_since_override = CASE WHEN v_by_age AND job_class = v_queue.job_class THEN 0
            ELSE LEAST(picks_since_override, 1000000) + 1 END;
    v_charge := v_segment.estimate_gpu_ms::bigint * 1000 / v_queue.weight;
    UPDATE tts_fairsharequeue SET
        start_tag = CASE WHEN id = v_queue.id THEN start_tag + v_charge ELSE start_tag END,
        queued = CASE WHEN id = v_queue.id THEN queued - 1 ELSE queued END,
        queued_estimate_gpu_ms = CASE WHEN id = v_queue.id
            THEN queued_estimate_gpu_ms - v_segment.estimate_gpu_ms ELSE queued_estimate_gpu_ms END,
        running = CASE WHEN id = v_queue.id THEN running + 1 ELSE running END,
        workspace_running = workspace_running + 1
    WHERE workspace_id = v_queue.workspace_id;
    -- Counted just now, in one go with the tag: the trigger need not.
    PERFORM set_config('voicepool.counted', 'yes', true);
    UPDATE tts_segment SET state = 'bound', attempt_number = attempt_number + 1 WHERE id = v_segment.id;
    PERFORM set_config('voicepool.counted', '', true);
    v_attempt := gen_random_uuid();
    INSERT INTO tts_attempt (
        id, segment_id, job_id, workspace_id, attempt_number, device_id, slot_number, epoch, state, leased_until,
        bound_at, gpu_ms, audio_ms, charged_micros, audio_key, share_charged, share_weight, share_settled, error_code,
        error_detail
    ) VALUES (
        v_attempt, v_segment.id, v_segment.job_id, v_queue.workspace_id, v_segment.attempt_number + 1,
        v_slot.device_id, v_slot.number, v_slot.epoch, 'bound', now() + make_interval(secs => p_bind_seconds), now(),
        0, 0, 0, '', v_charge, v_queue.weight, false, '', ''
    );
    UPDATE tts_deviceslot SET attempt_id = v_attempt WHERE id = v_slot.id;
    RETURN v_attempt;
END $$;

-- Gives idle slots their next segments while there are both; returns the attempts and whose they are.
CREATE FUNCTION tts_bind_idle(p_bind_seconds int, p_heartbeat_seconds int)
RETURNS TABLE (attempt_id uuid, device_id bigint, slot_number int) LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_attempt uuid;
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM tts_fairsharequeue q WHERE q.queued > 0 AND q.workspace_running < q.running_limit
    ) THEN
        RETURN;
    END IF;
    -- One slot of each device before the second of any.
    FOR r IN
        SELECT s.id, s.device_id, s.number FROM tts_deviceslot s JOIN tts_device d ON d.id = s.device_id
        WHERE s.ready AND s.attempt_id IS NULL AND d.state IN ('ready', 'busy')
            AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
        ORDER BY s.number, s.device_id LIMIT 200
    LOOP
        v_attempt := tts_bind(r.id, p_bind_seconds, p_heartbeat_seconds);
        IF v_attempt IS NOT NULL THEN
            attempt_id := v_attempt;
            device_id := r.device_id;
            slot_number := r.number;
            RETURN NEXT;
        ELSIF NOT EXISTS (
            SELECT 1 FROM tts_fairsharequeue q WHERE q.queued > 0 AND q.workspace_running < q.running_limit
        ) THEN
            RETURN;
        END IF;
    END LOOP;
END $$;
"""
DECISION_UNDO = """
DROP FUNCTION tts_bind_idle(int, int);
DROP FUNCTION tts_bind(bigint, int, int);
DROP FUNCTION tts_better_elsewhere(bigint, bigint, int);
DROP FUNCTION tts_overdue_queue(bigint[]);
DROP FUNCTION tts_true_up();
DROP FUNCTION tts_lock_queues(uuid);
DROP FUNCTION tts_ensure_classes();
"""

# Queues of what waits already, where the tables are not empty.
FILL = """
SELECT tts_ensure_classes();
INSERT INTO tts_fairsharequeue (
    workspace_id, job_class, start_tag, queued, queued_estimate_gpu_ms, running, workspace_running, running_limit
) SELECT s.workspace_id, s.job_class, 0,
    COUNT(*) FILTER (WHERE s.state = 'queued'),
    COALESCE(SUM(s.estimate_gpu_ms) FILTER (WHERE s.state = 'queued'), 0),
    COUNT(*) FILTER (WHERE s.state IN ('bound', 'running')),
    SUM(COUNT(*) FILTER (WHERE s.state IN ('bound', 'running'))) OVER (PARTITION BY s.workspace_id),
    2147483647
FROM tts_segment s WHERE s.state IN ('queued', 'bound', 'running') GROUP BY s.workspace_id, s.job_class;
UPDATE tts_attempt SET share_settled = true WHERE finished_at IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("tts", "0002_pool")]
    operations = [
        migrations.RunSQL(STORAGE, STORAGE_UNDO),
        migrations.RunSQL(COUNTERS, COUNTERS_UNDO),
        migrations.RunSQL(DECISION, DECISION_UNDO),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
