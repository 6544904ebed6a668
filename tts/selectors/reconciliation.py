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
        counted="SELECT COUNT(*) FROM tts_synthesisjob WHERE state IN ('queued', 'running')",
        differing="""
            SELECT j.id::text, j.held_micros, COALESCE(h.amount_micros, 0)
            FROM tts_synthesisjob j LEFT JOIN billing_hold h ON h.job_id = j.id AND h.state = 'open'
            WHERE j.state IN ('queued', 'running') AND h.id IS NULL""",
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
)
