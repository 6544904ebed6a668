"""An attempt is claimed, and all that its worker needs of it is read, in one call; a hand-over claims at once."""

from django.db import migrations

# Locks segment and attempt, in this order; a cancel, which closes bound segments, comes before or after it. A claim
# that a crash of the database forgets leaves the attempt bound, and its worker settles it all the same: nothing waits
# for the disk. No row: it is not waiting to be claimed, and nothing was changed.
CLAIM = """
CREATE FUNCTION tts_claim(p_attempt uuid, p_lease_seconds int)
RETURNS TABLE (attempt tts_attempt, segment tts_segment, job tts_synthesisjob, voice tts_voice)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT s.* INTO segment FROM tts_segment s
    WHERE s.id = (SELECT a.segment_id FROM tts_attempt a WHERE a.id = p_attempt AND a.state = 'bound')
    FOR NO KEY UPDATE OF s;
    IF segment.id IS NULL OR segment.state <> 'bound' THEN
        RETURN;
    END IF;
    SELECT j.* INTO job FROM tts_synthesisjob j WHERE j.id = segment.job_id;
    IF job.state NOT IN ('queued', 'running') OR job.cancel_requested_at IS NOT NULL THEN
        RETURN;
    END IF;
    UPDATE tts_attempt a SET state = 'running', started_at = clock_timestamp(),
        leased_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
    WHERE a.id = p_attempt AND a.state = 'bound' AND a.attempt_number = segment.attempt_number
    RETURNING a.* INTO attempt;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Still counted as being in hand: the counters' trigger has nothing to do.
    PERFORM set_config('voicepool.counted', 'yes', true);
    UPDATE tts_segment s SET state = 'running' WHERE s.id = segment.id;
    PERFORM set_config('voicepool.counted', '', true);
    segment.state := 'running';
    SELECT v.* INTO voice FROM tts_voice v WHERE v.id = job.voice_id;
    RETURN NEXT;
END $$;
"""

# One row, the next attempt's id NULL where nothing waits, its rows NULL where it could not be claimed.
HAND_OVER = """
CREATE FUNCTION tts_hand_over_claimed(
    p_device bigint, p_slot_number int, p_attempt uuid, p_bind_seconds int, p_heartbeat_seconds int, p_lease_seconds int
) RETURNS TABLE (
    next_id uuid, attempt tts_attempt, segment tts_segment, job tts_synthesisjob, voice tts_voice
) LANGUAGE plpgsql AS $$
DECLARE
    c record;
BEGIN
    next_id := tts_hand_over(p_device, p_slot_number, p_attempt, p_bind_seconds, p_heartbeat_seconds);
    IF next_id IS NOT NULL THEN
        SELECT * INTO c FROM tts_claim(next_id, p_lease_seconds);
        attempt := c.attempt;
        segment := c.segment;
        job := c.job;
        voice := c.voice;
    END IF;
    RETURN NEXT;
END $$;
"""

# What a decision does first (tts_bind), done ahead of it, so that no device waits for it.
TRUE_UP = """
CREATE FUNCTION tts_true_up_ahead() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM tts_attempt WHERE NOT share_settled AND finished_at IS NOT NULL) THEN
        RETURN;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM 1 FROM tts_fairshareclass ORDER BY job_class FOR UPDATE;
    PERFORM set_config('lock_timeout', '250ms', true);
    PERFORM tts_true_up();
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tts", "0010_lookup_indexes")]
    operations = [
        migrations.RunSQL(CLAIM, "DROP FUNCTION tts_claim(uuid, int);"),
        migrations.RunSQL(
            HAND_OVER, "DROP FUNCTION tts_hand_over_claimed(bigint, int, uuid, int, int, int);"
        ),
        migrations.RunSQL(TRUE_UP, "DROP FUNCTION tts_true_up_ahead();"),
    ]
