"""The whole of the books checked: 1,000,000 usage records of 1,000 workspaces, with the 3,000,000 transactions and
6,000,000 entries of the ledger that they made.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import uuid
from pathlib import Path

from tests.servers import start_servers

ROOT = Path(__file__).resolve().parent.parent.parent
WORKSPACES = 1_000
RECORDS = int(os.environ.get("BENCH_RECORDS", "1000000"))


def run() -> dict[str, float]:
    """Return `seconds` of one run over everything and `rss_mb` of the process that made it."""
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

        from portal.books import reconcile_books
        from tests.bench._money import make_books

        make_books(workspaces=WORKSPACES, records=RECORDS, start="2026-10-01 00:00+08")
        began = time.perf_counter()
        found = reconcile_books(day=None)
        seconds = time.perf_counter() - began
        connection.close()
        if found.differences or found.counts["usage_is_charged_once"] != RECORDS:
            raise RuntimeError("the made-up books do not add up: the benchmark would say nothing")
    finally:
        servers.stop()
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": round(seconds, 1), "rss_mb": round(rss_mb)}
