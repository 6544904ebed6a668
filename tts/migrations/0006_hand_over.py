"""A slot whose segment has been spoken gets its next one before the first is settled."""

from django.db import migrations

HAND_OVER = """
CREATE FUNCTION tts_hand_over(
    p_device bigint, p_slot_number int, p_attempt uuid, p_bind_seconds int, p_heartbeat_seconds int
) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    v_slot bigint;
    v_next uuid;
BEGIN
    UPDATE tts_deviceslot SET attempt_id = NULL
    WHERE device_id = p_device AND number = p_slot_number AND attempt_id = p_attempt AND ready
    RETURNING id INTO v_slot;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_next := tts_bind(v_slot, p_bind_seconds, p_heartbeat_seconds);
    IF v_next IS NULL THEN
        -- Nothing waits: the slot is freed when the attempt is settled, as ever.
        UPDATE tts_deviceslot SET attempt_id = p_attempt WHERE id = v_slot AND attempt_id IS NULL;
    END IF;
    RETURN v_next;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("tts", "0005_fair_share_indexes")]
    operations = [migrations.RunSQL(HAND_OVER, "DROP FUNCTION tts_hand_over(bigint, int, uuid, int, int);")]
