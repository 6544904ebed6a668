"""Devices say what they offer and segments what they need; models on trial get a share of the jobs."""

import importlib

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# As in 0003, with three things more: a segment goes to a device that offers what it needs, a model on trial speaks what
# drew it, and a segment that a model on trial failed is another's.
DECISION = """
-- Whether a segment that was tried before should rather wait for another device: this one has failed it, and there
-- is one that has not, and may speak it.
CREATE OR REPLACE FUNCTION tts_better_elsewhere(p_segment bigint, p_device bigint, p_heartbeat_seconds int)
RETURNS boolean LANGUAGE sql STABLE AS $$
    WITH failed_on AS (
        SELECT device_id FROM tts_attempt
        WHERE segment_id = p_segment AND state IN ('failed', 'lost') AND started_at IS NOT NULL
    )
    SELECT EXISTS (SELECT 1 FROM failed_on WHERE device_id = p_device) AND EXISTS (
        SELECT 1 FROM tts_segment g CROSS JOIN tts_deviceslot s JOIN tts_device d ON d.id = s.device_id
        WHERE g.id = p_segment AND s.ready AND d.state IN ('ready', 'busy')
            AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
            AND s.device_id NOT IN (SELECT device_id FROM failed_on)
            AND (d.offers = '{}' OR g.needs <@ d.offers)
            AND NOT EXISTS (SELECT 1 FROM tts_modelshare m WHERE m.engine = d.engine)
    )
$$;

-- Whether a device that claimed this segment failed it.
CREATE FUNCTION tts_failed_before(p_segment bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM tts_attempt
        WHERE segment_id = p_segment AND state IN ('failed', 'lost') AND started_at IS NOT NULL
    )
$$;

-- The engines of the devices that are ready.
CREATE FUNCTION tts_ready_engines(p_heartbeat_seconds int) RETURNS varchar[] LANGUAGE sql STABLE AS $$
    SELECT COALESCE(array_agg(DISTINCT d.engine), '{}') FROM tts_device d
    WHERE d.engine <> '' AND d.state IN ('ready', 'busy')
        AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
        AND EXISTS (SELECT 1 FROM tts_deviceslot s WHERE s.device_id = d.id AND s.ready)
$$;

-- Gives a slot its next segment: writes the attempt, takes the slot, and returns the attempt's id; NULL when there is
-- nothing to do or somebody else has the slot. Locks: slot, classes, queues of one workspace, segment.
CREATE OR REPLACE FUNCTION tts_bind(p_slot bigint, p_bind_seconds int, p_heartbeat_seconds int) RETURNS uuid LANGUAGE plpgsql AS $$
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
    v_on_trial varchar[];
    v_others varchar[] := '{}';
    v_trial boolean := false;
BEGIN
    -- A decision that a crash of the database forgets is made again: nothing waits for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT s.id, s.number, s.device_id, d.epoch, d.engine, d.offers INTO v_slot
    FROM tts_deviceslot s JOIN tts_device d ON d.id = s.device_id
    WHERE s.id = p_slot AND s.ready AND s.attempt_id IS NULL AND d.state IN ('ready', 'busy')
        AND d.heartbeat_at >= now() - make_interval(secs => p_heartbeat_seconds)
    FOR UPDATE OF s SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- A model on trial speaks what drew it, and everything while no other is ready; all others leave it that.
    SELECT array_agg(m.engine) INTO v_on_trial FROM tts_modelshare m;
    IF v_on_trial IS NOT NULL THEN
        v_others := array_remove(tts_ready_engines(p_heartbeat_seconds), v_slot.engine);
        v_trial := v_slot.engine = ANY (v_on_trial) AND NOT v_others <@ v_on_trial;
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
                    AND (NOT v_trial OR EXISTS (
                        SELECT 1 FROM tts_segment s
                        WHERE s.engine = v_slot.engine AND s.engine <> '' AND s.workspace_id = q.workspace_id
                            AND s.job_class = q.job_class AND s.state = 'queued'
                    ))
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
            -- Two queries, so that each has its index: what waits for a model on trial is a few among many.
            IF v_trial THEN
                SELECT s.id, s.job_id, s.attempt_number, s.estimate_gpu_ms, s.engine INTO v_segment
                FROM tts_segment s
                WHERE s.engine = v_slot.engine AND s.engine <> '' AND s.workspace_id = v_queue.workspace_id
                    AND s.job_class = v_queue.job_class AND s.state = 'queued'
                    AND (v_slot.offers = '{}' OR s.needs <@ v_slot.offers)
                    AND (s.attempt_number = 0 OR NOT tts_failed_before(s.id))
                ORDER BY s.id LIMIT 1 FOR UPDATE SKIP LOCKED;
            ELSE
                SELECT s.id, s.job_id, s.attempt_number, s.estimate_gpu_ms, s.engine INTO v_segment
                FROM tts_segment s
                WHERE s.workspace_id = v_queue.workspace_id AND s.job_class = v_queue.job_class AND s.state = 'queued'
                    AND (v_slot.offers = '{}' OR s.needs <@ v_slot.offers)
                    AND (s.engine <> ALL (v_others) OR (s.attempt_number > 0 AND tts_failed_before(s.id)))
                    AND (s.attempt_number = 0 OR NOT tts_better_elsewhere(s.id, v_slot.device_id, p_heartbeat_seconds))
                ORDER BY s.id LIMIT 1 FOR UPDATE SKIP LOCKED;
            END IF;
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
    IF v_segment.engine <> '' AND v_segment.engine <> v_slot.engine THEN
        -- Its model is away, or failed it: the rest of the job stays with the pool's own.
        UPDATE tts_segment SET engine = '' WHERE id = v_segment.id OR id IN (
            SELECT s.id FROM tts_segment s
            WHERE s.job_id = v_segment.job_id AND s.state = 'queued' AND s.engine <> '' FOR UPDATE SKIP LOCKED
        );
    END IF;
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
"""
# The definitions before: those of 0003, which are the first two functions that this one replaces.
_BEFORE = importlib.import_module("tts.migrations.0003_fair_share").DECISION
DECISION_UNDO = (
    _BEFORE[_BEFORE.index("-- Whether a segment that was tried before") : _BEFORE.index("-- Gives idle slots")].replace(
        "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
    )
    + "DROP FUNCTION tts_failed_before(bigint);\nDROP FUNCTION tts_ready_engines(int);\n"
)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0004_plan_limits'),
        ("tts", "0015_instructions_and_seeds"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelShare',
            fields=[
                ('engine', models.CharField(max_length=30, primary_key=True, serialize=False)),
                ('share', models.PositiveSmallIntegerField(validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(10000)])),
                ('changed_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.AddField(
            model_name='device',
            name='capabilities',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='device',
            name='installed_engines',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='device',
            name='offers',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, size=None),
        ),
        migrations.AddField(
            model_name='segment',
            name='engine',
            field=models.CharField(blank=True, db_default='', default='', max_length=30),
        ),
        migrations.AddField(
            model_name='segment',
            name='needs',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), db_default=[], default=list, size=None),
        ),
        migrations.AddField(
            model_name='synthesisjob',
            name='engine',
            field=models.CharField(blank=True, db_default='', default='', max_length=30),
        ),
        migrations.AlterField(
            model_name='device',
            name='kind',
            field=models.CharField(choices=[('gpu', 'GPU'), ('cpu', 'CPU'), ('remote', 'Remote server')], max_length=10),
        ),
        migrations.AddIndex(
            model_name='segment',
            index=models.Index(condition=models.Q(('state', 'queued'), models.Q(('engine', ''), _negated=True)), fields=['engine', 'workspace', 'job_class', 'id'], name='segment_on_trial'),
        ),
        migrations.AddField(
            model_name='modelshare',
            name='changed_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddConstraint(
            model_name='modelshare',
            constraint=models.CheckConstraint(condition=models.Q(('share__lte', 10000)), name='model_share_is_a_part'),
        ),
        migrations.RunSQL(DECISION, DECISION_UNDO),
    ]
