"""Books of a year for a benchmark: made by SQL, row for row as the product leaves them."""

from __future__ import annotations

_TABLES = (
    "billing_ledgertransaction",
    "billing_ledgerentry",
    "billing_usagerecord",
    "billing_hold",
    "billing_creditgrant",
    "billing_grantuse",
    "billing_usageday",
)

# One paid grant for each workspace, of far more than all of its speech costs.
_GRANTS = """
INSERT INTO billing_creditaccount (
    workspace_id, currency, available_micros, held_micros, owed_micros, credit_limit_micros, time_zone, created_at
) SELECT gen_random_uuid(), 'CNY', 0, 0, 0, 0, 'Asia/Shanghai', now() FROM generate_series(1, %(workspaces)s);
INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, created_at)
SELECT workspace_id, workspace_id, 'top_up', 'top_up:' || workspace_id, %(start)s::timestamptz
FROM billing_creditaccount;
INSERT INTO billing_ledgerentry (transaction_id, account, amount_micros)
SELECT workspace_id, v.account, v.amount FROM billing_creditaccount
CROSS JOIN (VALUES ('payments', -1000000000000), ('available', 1000000000000)) AS v (account, amount);
INSERT INTO billing_creditgrant (
    id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, is_spent, created_at
) SELECT workspace_id, workspace_id, 'paid', workspace_id, 1000000000000, 1000000000000, 40, false,
    %(start)s::timestamptz
FROM billing_creditaccount;
"""

# Each record is a job of one attempt: set aside, charged, the rest released. Three devices, twenty voices a workspace,
# spread over a month.
_USAGE = """
CREATE TEMPORARY TABLE spoken AS
SELECT gen_random_uuid() AS job_id, gen_random_uuid() AS attempt_id, w.workspace_id,
    md5(w.workspace_id::text || n %% 20)::uuid AS voice_id, (ARRAY['cpu', 't4', 'h200'])[1 + n %% 3] AS device_class,
    (ARRAY['interactive', 'standard', 'batch'])[1 + n %% 3] AS job_class, 500 + (n * 7919) %% 9000 AS gpu_ms,
    (ARRAY[4000, 12000, 90000])[1 + n %% 3] AS rate,
    %(start)s::timestamptz + make_interval(secs => (n::float8 / %(each)s) * 86400 * 30) AS at,
    gen_random_uuid() AS hold_tx, gen_random_uuid() AS capture_tx, gen_random_uuid() AS release_tx
FROM billing_creditaccount w CROSS JOIN generate_series(0, %(each)s - 1) AS n;
ALTER TABLE spoken ADD COLUMN charged bigint, ADD COLUMN held bigint;
UPDATE spoken SET charged = (gpu_ms::bigint * rate + 500) / 1000, held = 4 * ((gpu_ms::bigint * rate + 500) / 1000);
INSERT INTO billing_hold (
    id, workspace_id, job_id, state, amount_micros, captured_micros, rated_micros, minimum_micros, refunded_micros,
    created_at, closed_at
) SELECT gen_random_uuid(), workspace_id, job_id, 'closed', held, charged, charged, 0, 0, at, at FROM spoken;
INSERT INTO billing_ledgertransaction (id, workspace_id, kind, idempotency_key, job_id, created_at)
SELECT hold_tx, workspace_id, 'hold', 'hold:' || job_id, job_id, at FROM spoken
UNION ALL SELECT capture_tx, workspace_id, 'capture', 'capture:' || attempt_id, job_id, at FROM spoken
UNION ALL SELECT release_tx, workspace_id, 'release', 'release:' || job_id, job_id, at FROM spoken;
INSERT INTO billing_ledgerentry (transaction_id, account, amount_micros)
SELECT v.id, v.account, v.amount FROM spoken CROSS JOIN LATERAL (VALUES
    (hold_tx, 'available', -held), (hold_tx, 'held', held), (capture_tx, 'held', -charged),
    (capture_tx, 'revenue', charged), (release_tx, 'held', charged - held), (release_tx, 'available', held - charged)
) AS v (id, account, amount);
INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros)
SELECT workspace_id, capture_tx, charged FROM spoken;
INSERT INTO billing_usagerecord (
    attempt_id, job_id, workspace_id, voice_id, device_name, device_class, job_class, billable, gpu_ms, audio_ms,
    characters, price_version_id, gpu_second_micros, rated_micros, charged_micros, day, started_at, finished_at,
    created_at
) SELECT attempt_id, job_id, workspace_id, voice_id, device_class || ':0', device_class, job_class, true, gpu_ms,
    gpu_ms * 2, 40, 1, rate, charged, charged, (at AT TIME ZONE 'Asia/Shanghai')::date, at, at, at
FROM spoken;
INSERT INTO billing_usageday (
    workspace_id, day, device_class, job_class, voice_id, billable, records, gpu_ms, audio_ms, characters, rated_micros,
    charged_micros, refunded_micros
) SELECT workspace_id, day, device_class, job_class, voice_id, true, COUNT(*), SUM(gpu_ms), SUM(audio_ms),
    SUM(characters), SUM(rated_micros), SUM(charged_micros), 0
FROM billing_usagerecord GROUP BY workspace_id, day, device_class, job_class, voice_id;
UPDATE billing_creditgrant g SET remaining_micros = amount_micros - used.amount
FROM (SELECT workspace_id, SUM(charged) AS amount FROM spoken GROUP BY workspace_id) AS used
WHERE used.workspace_id = g.workspace_id;
UPDATE billing_creditaccount a SET available_micros = g.remaining_micros
FROM billing_creditgrant g WHERE g.workspace_id = a.workspace_id;
DROP TABLE spoken;
"""


def make_books(*, workspaces: int, records: int, start: str) -> None:
    """Credit and a month of speech for so many workspaces, `records` of it in all. The triggers sleep meanwhile: what
    they keep is written here too, and the reconciliation would find what is not."""
    from django.db import connection

    with connection.cursor() as cursor:
        _triggers(cursor, "DISABLE")
        cursor.execute(_GRANTS, {"workspaces": workspaces, "start": start})
        cursor.execute(_USAGE, {"each": records // workspaces, "start": start})
        _triggers(cursor, "ENABLE")
        cursor.execute(f"VACUUM ANALYZE {', '.join(_TABLES)}, billing_creditaccount")


def _triggers(cursor: object, act: str) -> None:
    from django.db.backends.utils import CursorWrapper

    assert isinstance(cursor, CursorWrapper)
    for table in _TABLES:
        cursor.execute(f"ALTER TABLE {table} {act} TRIGGER USER")
