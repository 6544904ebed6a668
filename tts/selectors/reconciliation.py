"""What must be so between the pool's work and the books: questions in the manner of billing.reconciliation."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from billing.reconciliation.checks import Check

CHECKS = (
    Check(
        name="open_holds_have_live_jobs",
        title=_("Every open hold belongs to a job that waits or runs"),
        counted="SELECT COUNT(*) FROM billing_hold WHERE state = 'open'",
        # A minute's grace: the sweep releases what a crash left behind.
        differing="""
            SELECT h.job_id::text, 0, h.amount_micros - h.captured_micros
            FROM billing_hold h LEFT JOIN tts_synthesisjob j ON j.id = h.job_id
            WHERE h.state = 'open' AND h.created_at < now() - interval '1 minute'
                AND (j.id IS NULL OR (
                    j.state NOT IN ('queued', 'running')
                    AND COALESCE(j.finished_at, '-infinity') < now() - interval '1 minute'
                ))""",
    ),
    Check(
        name="live_jobs_have_open_holds",
        title=_("Every job that waits or runs has money set aside"),
        # But for one that uses nothing but what was spoken before, until its file is put together.
        counted="""
            SELECT COUNT(*) FROM tts_synthesisjob
            WHERE state IN ('queued', 'running') AND reused_count < segment_count""",
        differing="""
            SELECT j.id::text, j.held_micros, COALESCE(h.amount_micros, 0)
            FROM tts_synthesisjob j LEFT JOIN billing_hold h ON h.job_id = j.id AND h.state = 'open'
            WHERE j.state IN ('queued', 'running') AND j.reused_count < j.segment_count AND h.id IS NULL""",
    ),
    Check(
        name="spoken_attempts_are_recorded",
        title=_("Every attempt that was spoken has one record of its use, with the same time and charge"),
        counted="""
            SELECT COUNT(*) FROM tts_attempt
            WHERE state = 'succeeded' AND finished_at >= %(start)s AND finished_at < %(end)s""",
        differing="""
            SELECT a.id::text || ' ' || v.what, v.expected, v.actual
            FROM tts_attempt a LEFT JOIN billing_usagerecord u ON u.attempt_id = a.id
            CROSS JOIN LATERAL (VALUES
                ('records', 1, CASE WHEN u.id IS NULL THEN 0 ELSE 1 END),
                ('gpu_ms', a.gpu_ms, COALESCE(u.gpu_ms, a.gpu_ms)),
                ('charged_micros', a.charged_micros, COALESCE(u.charged_micros, a.charged_micros))
            ) AS v (what, expected, actual)
            WHERE a.state = 'succeeded' AND a.finished_at >= %(start)s AND a.finished_at < %(end)s
                AND v.expected <> v.actual""",
    ),
    Check(
        name="jobs_cost_what_was_captured",
        title=_("What a job says it cost is what was captured for it"),
        counted="""
            SELECT COUNT(*) FROM tts_synthesisjob WHERE finished_at >= %(start)s AND finished_at < %(end)s""",
        differing="""
            SELECT j.id::text, h.captured_micros - h.refunded_micros, j.charged_micros
            FROM tts_synthesisjob j JOIN billing_hold h ON h.job_id = j.id
            WHERE j.finished_at >= %(start)s AND j.finished_at < %(end)s
                AND j.charged_micros NOT IN (h.captured_micros, h.captured_micros - h.refunded_micros)""",
    ),
    Check(
        name="devices_worked_as_long_as_recorded",
        title=_("No device has more time on its records than its workers were at work"),
        counted="SELECT COUNT(DISTINCT device_id) FROM tts_devicehour WHERE hour >= %(start)s AND hour < %(end)s",
        # The workers' clocks are written down every two seconds: a worker that was killed takes that much with it, and
        # so much may fall on the other side of midnight. Both measures are rounded to milliseconds, once an attempt.
        differing="""
            WITH worked AS (
                SELECT device_id, SUM(worked_ms) AS ms FROM tts_devicehour
                WHERE hour >= %(start)s AND hour < %(end)s GROUP BY device_id
            ), used AS (
                SELECT device_name, SUM(gpu_ms) AS ms, COUNT(*) AS attempts,
                    COALESCE(SUM(gpu_ms) FILTER (WHERE started_at < %(start)s), 0) AS begun_before
                FROM billing_usagerecord WHERE finished_at >= %(start)s AND finished_at < %(end)s GROUP BY device_name
            ), starts AS (
                SELECT device_id, COUNT(*) AS number FROM tts_deviceevent
                WHERE kind IN ('registered', 'restarted', 'recycled')
                    AND created_at >= %(start)s AND created_at < %(end)s GROUP BY device_id
            )
            SELECT d.name, worked.ms, used.ms
            FROM used JOIN tts_device d ON d.name = used.device_name JOIN worked ON worked.device_id = d.id
            LEFT JOIN starts ON starts.device_id = d.id
            WHERE used.ms > worked.ms + used.begun_before + used.attempts
                + 3000 * d.slots * (1 + COALESCE(starts.number, 0))""",
    ),
)
