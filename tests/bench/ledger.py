"""How many jobs' money the database moves in a second: set aside, charged, released, each as the product does it.

Four client processes, each with one connection, on the machine that also runs PostgreSQL. Commits do not wait for the
disk (the setting of the test servers): what is measured is the work of both sides, not the disk. First over 500
workspaces in turn, then all on one.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from tests.servers import start_servers

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENTS = 4
WORKSPACES = 500
SECONDS = 12
WARM_UP_S = 3
CREDIT_MICROS = 10**15


def run() -> dict[str, float]:
    """Return `jobs_per_s` over 500 workspaces and `hot_jobs_per_s` on one."""
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
        workspaces = _workspaces()
        spread = _jobs_per_s(workspaces)
        hot = _jobs_per_s(workspaces[:1])
        _check()
    finally:
        servers.stop()
    return {"jobs_per_s": round(spread), "hot_jobs_per_s": round(hot)}


def _workspaces() -> list[uuid.UUID]:
    import django

    django.setup()
    from django.db import connection

    from billing.services.grants import grant

    workspaces = [uuid.uuid4() for _ in range(WORKSPACES)]
    for workspace_id in workspaces:
        grant(workspace_id=workspace_id, amount_micros=CREDIT_MICROS, idempotency_key=str(workspace_id))
    connection.close()
    return workspaces


def _jobs_per_s(workspaces: list[uuid.UUID]) -> float:
    """Jobs that all clients together finished in a second, after a warm-up."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(CLIENTS) as clients:
        done = clients.starmap(
            _client, [(workspaces[number::CLIENTS] or workspaces,) for number in range(CLIENTS)]
        )
    return sum(done)


def _client(workspaces: list[uuid.UUID]) -> float:
    import django

    django.setup()
    from django.db import connection, transaction

    from billing.services import holds

    connection.ensure_connection()
    began = time.perf_counter()
    counted_from = began + WARM_UP_S
    ends = counted_from + SECONDS
    jobs = number = 0
    while (moment := time.perf_counter()) < ends:
        workspace_id, job_id = workspaces[number % len(workspaces)], uuid.uuid4()
        number += 1
        with transaction.atomic():
            holds.place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=5_000)
        with transaction.atomic():
            holds.capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=1_234, last=True)
        if moment >= counted_from:
            jobs += 1
    connection.close()
    return jobs / SECONDS


def _check() -> None:
    """A benchmark of books that are wrong says nothing."""
    from billing.reconciliation.checks import CHECKS, run

    wanted = {"transactions_sum_to_zero", "balances_are_the_ledgers", "credit_is_what_is_left_of_grants"}
    for check in CHECKS:
        if check.name in wanted and run(check, day=None).differing:
            raise RuntimeError(f"the books do not add up: {check.name}")
