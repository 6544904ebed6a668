"""A month of 1,000 workspaces with 1,000,000 usage records, drafted, posted and finalized by the monthly run.

Every workspace has a fee and a tax on top; one in ten speaks on given credit, and owes them. Afterwards each invoice is
compared with the records.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from tests.servers import start_servers

ROOT = Path(__file__).resolve().parent.parent.parent
WORKSPACES = 1_000
RECORDS = int(os.environ.get("BENCH_RECORDS", "1000000"))
FEE_MICROS = 99_000_000

_TERMS = """
INSERT INTO billing_plan (code, name, is_default, is_offered, created_at)
VALUES ('bench', 'Bench', false, false, now());
INSERT INTO billing_planversion (
    plan_id, number, currency, monthly_fee_micros, included_gpu_seconds, fair_share_weight, effective_at, created_at
) SELECT id, 1, 'CNY', %(fee)s, 0, 1, '2026-01-01', now() FROM billing_plan WHERE code = 'bench';
INSERT INTO billing_subscription (id, workspace_id, plan_version_id, starts_at, created_at)
SELECT gen_random_uuid(), account.workspace_id, version.id, '2026-10-01 00:00+08', now()
FROM billing_creditaccount account, billing_planversion version WHERE version.monthly_fee_micros = %(fee)s;
INSERT INTO billing_billingprofile (
    workspace_id, name, address, tax_number, email, tax_rate_basis_points, tax_inclusive, payment_days, updated_at
) SELECT workspace_id, 'Bench', '', '', '', 600, false, 14, now() FROM billing_creditaccount;
UPDATE billing_creditgrant SET kind = 'promotional', priority = 20
WHERE id IN (SELECT id FROM billing_creditgrant ORDER BY id LIMIT %(given)s);
"""
_WRONG = """
SELECT COUNT(*) FROM billing_creditaccount account
LEFT JOIN billing_invoice invoice ON invoice.workspace_id = account.workspace_id AND invoice.state = 'final'
LEFT JOIN (
    SELECT workspace_id, SUM(charged_micros) AS charged FROM billing_usagerecord
    WHERE day BETWEEN '2026-10-01' AND '2026-10-31' GROUP BY workspace_id
) AS spoken ON spoken.workspace_id = account.workspace_id
JOIN billing_creditgrant credit ON credit.workspace_id = account.workspace_id
WHERE invoice.id IS NULL OR invoice.fee_micros <> %(fee)s OR invoice.usage_micros <> spoken.charged
    OR invoice.discount_micros <> CASE credit.kind WHEN 'paid' THEN 0 ELSE spoken.charged END
    OR invoice.due_micros <> CASE credit.kind WHEN 'paid' THEN 0 ELSE invoice.total_micros END
    OR invoice.due_micros <> account.owed_micros
"""


def run() -> dict[str, float]:
    """Return `seconds` of the run and `rss_mb`, the most that its process ever had."""
    servers = start_servers()
    os.environ.update(
        {
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "VOICEPOOL_DATA": str(servers.data_folder),
            "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
            "SECRET_KEY": uuid.uuid4().hex,
        }
    )
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True)
        import django

        django.setup()
        from django.db import connection

        from billing.services.invoice_run import close_due_periods
        from tests.bench._money import make_books

        make_books(workspaces=WORKSPACES, records=RECORDS, start="2026-10-01 00:00+08")
        with connection.cursor() as cursor:
            cursor.execute(_TERMS, {"fee": FEE_MICROS, "given": WORKSPACES // 10})
        began = time.perf_counter()
        made = close_due_periods(at=datetime(2026, 11, 1, tzinfo=UTC))
        seconds = time.perf_counter() - began
        _check(made)
        connection.close()
    finally:
        servers.stop()
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 1), "rss_mb": round(rss_mb)}


def _check(made: int) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_WRONG, {"fee": FEE_MICROS})
        wrong = cursor.fetchone()[0]
    if made != WORKSPACES or wrong:
        raise RuntimeError(
            f"{made} invoices were made, and {wrong} of them are wrong: the figure would say nothing"
        )
