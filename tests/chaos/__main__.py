"""`python -m tests.chaos --jobs 1000 --seconds 60 --seed 1`: customers, a nemesis, and then the reckoning.

It lasts at least so long, and until so many jobs were taken in and a tenth as many processes were killed (and what
else belongs to it: tests.chaos.nemesis.Plan). The last line of standard output is one JSON object; the exit status is
1 when anything is lost, charged twice, left over or wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from portal.embedded import processes
from tests.chaos.databases import Databases

if TYPE_CHECKING:
    from tests.chaos.checker import Findings
    from tests.chaos.customers import Customers
    from tests.chaos.nemesis import Nemesis, Plan
    from tests.chaos.stack import Stack

ROOT = Path(__file__).resolve().parent.parent.parent
TICK_S = 0.05
READY_TIMEOUT_S = 90.0
# A worker that died often waits up to a minute before it is started again.
SETTLE_TIMEOUT_S = 180.0
SWEEP_TWICE_S = 2.5
PLENTY = "1000000000"


def _environment(databases: Databases) -> dict[str, str]:
    data = databases.folder / "data"
    data.mkdir()
    return {
        "DATABASE_URL": databases.database_url,
        "REDIS_URL": databases.redis_url,
        "VOICEPOOL_DATA": str(data),
        "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
        "SECRET_KEY": secrets.token_hex(16),
        "VOICEPOOL_CPU_ENGINE": "simulated",
        "VOICEPOOL_PRESET_SAMPLES": "false",
        "VOICEPOOL_NO_PROGRESS_S": "5",
        # The nemesis is to blame, neither texts nor devices.
        "VOICEPOOL_POISON_KILLS": PLENTY,
        "QUEUED_JOBS_PER_WORKSPACE": PLENTY,
        "REQUESTS_PER_MINUTE": PLENTY,
        "SUBMITS_PER_MINUTE": PLENTY,
        "LOG_LEVEL": "WARNING",
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--keep", action="store_true", help="leave logs, database and files where they are")
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    token = {processes.TOKEN_VARIABLE: secrets.token_hex(16)}
    databases = Databases(token)
    found = None
    try:
        databases.start()
        environment = {**_environment(databases), **token}
        os.environ.update(environment)
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True)
        import django

        django.setup()
        # That the database is away from time to time is what this is about.
        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
        found, figures = _run(databases, environment, jobs=given.jobs, seconds=given.seconds, seed=given.seed)
    finally:
        keep = given.keep or found is None or bool(found.words)
        databases.stop(keep_folder=keep)
        if keep:
            print(f"logs, database and files are left in {databases.folder}", flush=True)
    print(json.dumps({"bench": "chaos", "figures": figures}), flush=True)
    return 1 if found.words else 0


def _run(
    databases: Databases, environment: dict[str, str], *, jobs: int, seconds: float, seed: int
) -> tuple[Findings, dict[str, int]]:
    from billing.services.prices import ensure_first_price
    from tests.chaos.checker import check
    from tests.chaos.customers import Customers
    from tests.chaos.nemesis import Nemesis, Plan
    from tests.chaos.stack import Stack
    from tts.services.voices import ensure_preset_voices

    ensure_first_price()
    ensure_preset_voices()
    plan = Plan(jobs=jobs, seconds=seconds, seed=seed)
    stack = Stack(databases, environment)
    try:
        _wait_until_ready(stack)
        lasts_s = plan.gap_s * len(plan.acts(random.Random(0)))
        customers = Customers(seed=seed, jobs_per_s=1.3 * jobs / lasts_s, web_port=stack.web_port)
        nemesis = Nemesis(plan, stack=stack, databases=databases)
        began = time.monotonic()
        _storm(plan, stack, customers, nemesis)
        stormed_s = time.monotonic() - began
        settled_s = _settle(stack)
    finally:
        left_over = stack.stop()
    found = check(customers.history)
    for command in left_over:
        found.say(f"a process was left over: {command}")
    if settled_s is None:
        found.say(f"the pool was not at rest {SETTLE_TIMEOUT_S:g} s after the last act")
    return found, _tell(customers, nemesis, found, stormed_s=stormed_s, settled_s=settled_s)


def _wait_until_ready(stack: Stack) -> None:
    from tests.web_server import READY_TIMEOUT_S as WEB_TIMEOUT_S
    from tts.selectors.devices import ready_slot_count

    deadline = time.monotonic() + max(READY_TIMEOUT_S, WEB_TIMEOUT_S)
    while time.monotonic() < deadline:
        stack.keep_up()
        if ready_slot_count() == stack.slots:
            return
        time.sleep(TICK_S)  # between two looks
    raise RuntimeError("the pool did not come up")


def _storm(plan: Plan, stack: Stack, customers: Customers, nemesis: Nemesis) -> None:
    """Customers press while the nemesis kills, until both have had their fill."""
    ends_at = time.monotonic() + plan.seconds
    customers.start()
    try:
        while time.monotonic() < ends_at or not nemesis.finished or customers.taken_in < plan.jobs:
            stack.keep_up()
            nemesis.tick()
            time.sleep(TICK_S)  # between two looks
    finally:
        nemesis.rest()
        customers.stop()


def _settle(stack: Stack) -> float | None:
    """Wait until every job has ended and nothing is held; returns the seconds, None when that does not come."""
    from billing.models import Hold
    from tts.models import Attempt, SynthesisJob
    from tts.states import ATTEMPT_LIVE, JOB_LIVE

    began = time.monotonic()
    while time.monotonic() < began + SETTLE_TIMEOUT_S:
        stack.keep_up()
        if not (
            SynthesisJob.objects.filter(state__in=JOB_LIVE).exists()
            or Attempt.objects.filter(state__in=ATTEMPT_LIVE).exists()
            or Hold.objects.filter(state="open").exists()
        ):
            # The sweep has the last word on what was deleted or is to be put together.
            time.sleep(SWEEP_TWICE_S)  # at rest only if nothing stirs over two sweeps
            return time.monotonic() - began
        time.sleep(TICK_S)  # between two looks
    return None


def _tell(
    customers: Customers, nemesis: Nemesis, found: Findings, *, stormed_s: float, settled_s: float | None
) -> dict[str, int]:
    from django.db.models import Count

    from tts.models import Attempt, SynthesisJob

    states = SynthesisJob.objects.values_list("state").annotate(Count("pk")).order_by("state")
    print("jobs:", dict(states))
    ends = Attempt.objects.values_list("state", "error_code").annotate(Count("pk")).order_by("state")
    print("attempts:", {" ".join(end).strip(): count for *end, count in ends})
    print("acts:", dict(nemesis.done))
    print(
        f"listeners: {len(customers.history.heard)}; canceled: {len(customers.history.canceled)}; "
        f"deleted: {len(customers.history.deleted)}"
    )
    print(f"the storm lasted {stormed_s:.0f} s, then all was at rest after {settled_s or -1:.0f} s")
    for words in found.words:
        print("WRONG:", words)
    return {
        "jobs": SynthesisJob.objects.count(),
        "kills": nemesis.kills,
        "redis_losses": nemesis.done["empty redis"] + nemesis.done["kill redis"],
        "postgres_kills": nemesis.done["kill postgres"] + nemesis.done["kill backend"],
        "lost": found.lost,
        "charged_twice": found.charged_twice,
        "holds_left": found.holds_left,
        "ledger_sum": found.ledger_sum,
        "wrong_audio": found.wrong_audio,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
