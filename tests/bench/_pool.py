"""A pool for a benchmark: its own servers, real agents with the simulated engine, customers with plenty of credit."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.servers import start_servers

if TYPE_CHECKING:
    from accounts.models import Workspace
    from tests.pool.processes import Pool
    from tts.models import SynthesisJob

ROOT = Path(__file__).resolve().parent.parent.parent
PLENTY = "1000000000"
CREDIT_MICROS = 10**15
# The simulated engine's default; what a quote expects of it is the same.
MS_PER_CHARACTER = 20
ENGINE_SETTINGS: dict[str, object] = {
    "real_time": True,
    "ms_per_character": MS_PER_CHARACTER,
    "chunk_ms": 2000,
}


def text_that_takes(ms: int) -> str:
    """A sentence on which the simulated engine works so long."""
    return "声" * (ms // MS_PER_CHARACTER - 1) + "。"


class BenchPool:
    """Customers and their jobs, submitted as the API submits them."""

    def __init__(self, processes: Pool) -> None:
        from tts.models import Voice

        self.processes = processes
        self._voice = Voice.objects.filter(kind="preset").order_by("pk")[0]

    def customer(self, *, weight: int = 1) -> Workspace:
        from accounts.models import Workspace
        from billing.services.grants import grant

        workspace = Workspace.objects.create(name="customer", weight=weight)
        grant(workspace_id=workspace.pk, amount_micros=CREDIT_MICROS, idempotency_key=str(uuid.uuid4()))
        return workspace

    def submit(self, workspace: Workspace, text: str, *, job_class: str = "standard") -> SynthesisJob:
        from tts.services.submit import JobRequest, submit_job

        return submit_job(
            workspace=workspace,
            user=None,
            api_key=None,
            request=JobRequest(voice_id=self._voice.pk, text=text, language="zh", job_class=job_class),
            idempotency_key=None,
            client_address=None,
            request_id="bench",
        ).job

    def wait_for_slots(self, number: int) -> None:
        """Until so many slots take work."""
        from tests.pool.processes import wait_for
        from tts.selectors.devices import ready_slot_count

        wait_for(lambda: ready_slot_count() == number, timeout_s=60, what=f"{number} slots to be ready")


@contextlib.contextmanager
def bench_pool(**environment: str) -> Iterator[BenchPool]:
    """Servers, tables, prices and preset voices; every process is ended on the way out."""
    servers = start_servers()
    os.environ.update(
        {
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "VOICEPOOL_DATA": str(servers.data_folder),
            "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
            "SECRET_KEY": uuid.uuid4().hex,
            "VOICEPOOL_CPU_ENGINE": "simulated",
            "VOICEPOOL_PRESET_SAMPLES": "false",
            "QUEUED_JOBS_PER_WORKSPACE": PLENTY,
            "LOG_LEVEL": "ERROR",
            **environment,
        }
    )
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True)
        import django

        django.setup()
        from django.db import connection

        from billing.services.prices import ensure_first_price
        from tests.pool.processes import Pool
        from tts.services.voices import ensure_preset_voices

        ensure_first_price()
        ensure_preset_voices()
        processes = Pool()
        try:
            yield BenchPool(processes)
        finally:
            processes.stop()
            connection.close()
    finally:
        servers.stop()


def percentile(values: list[float], percent: int) -> float:
    """The value below which so many percent of them lie, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
