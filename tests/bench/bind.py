"""One decision which segment goes next, with 10,000 customers in three classes, 1,000 devices and a long backlog.

Timed: the database call from a client on the same machine, its commit included, as `bind_next` makes it. Between two
of them an attempt ends, frees its slot and is trued up, as a worker does after each settlement (`true_up_p50_ms`).
`growth` is the median with 1,000,000 queued segments over that with 10,000 (one a customer).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

from tests.servers import start_servers

ROOT = Path(__file__).resolve().parent.parent.parent
TENANTS = 10_000
DEVICES = 1000
DECISIONS = 1500
WARM_UP_DECISIONS = 200


def run() -> dict[str, float]:
    """Return `p50_ms`, `p99_ms` (1,000,000 queued) and `growth`."""
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
        return _measure()
    finally:
        from django.db import connection

        connection.close()
        servers.stop()


def _measure() -> dict[str, float]:
    import django

    django.setup()
    _make_customers_and_devices()
    _queue_segments(per_customer=1)
    few, _ = _decide()
    _queue_segments(per_customer=99)
    many, true_ups = _decide()
    return {
        "p50_ms": round(statistics.median(many), 2),
        "p99_ms": round(sorted(many)[int(len(many) * 0.99)], 2),
        "growth": round(statistics.median(many) / statistics.median(few), 2),
        "p50_with_10000_ms": round(statistics.median(few), 2),
        "true_up_p50_ms": round(statistics.median(true_ups), 2),
    }


def _make_customers_and_devices() -> None:
    from datetime import timedelta

    from django.utils import timezone

    from accounts.models import Workspace
    from billing.services.prices import ensure_first_price
    from tts.models import Device, DeviceKind, DeviceSlot
    from tts.services.voices import ensure_preset_voices
    from tts.states import DeviceState

    ensure_first_price()
    ensure_preset_voices()
    Workspace.objects.bulk_create(
        [Workspace(name=f"customer {number}", weight=1 + number % 4) for number in range(TENANTS)],
        batch_size=2000,
    )
    devices = Device.objects.bulk_create(
        [
            Device(
                name=f"GPU-{number}",
                node_name="bench",
                kind=DeviceKind.GPU,
                state=DeviceState.READY,
                heartbeat_at=timezone.now() + timedelta(hours=1),
            )
            for number in range(DEVICES)
        ]
    )
    DeviceSlot.objects.bulk_create([DeviceSlot(device=device, number=0, ready=True) for device in devices])


def _queue_segments(*, per_customer: int) -> None:
    """A job of so many segments for each customer, classes in turn, by SQL: a million rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO tts_synthesisjob (id, workspace_id, voice_id, state, job_class, mode, text, language, seed,
                speed, characters, segment_count, segments_done, request_sha256, request_id, price_version_id,
                estimate_gpu_ms, held_gpu_ms, held_micros, gpu_ms, audio_ms, charged_micros, audio_key, peaks,
                error_code, created_at)
            SELECT gen_random_uuid(), w.id, (SELECT id FROM tts_voice LIMIT 1), 'running',
                (ARRAY['interactive', 'standard', 'batch'])[1 + (random() * 3)::int %% 3], 'plain', '', 'zh', 1,
                1, 1, %(number)s, 0, '', '', (SELECT MIN(id) FROM billing_priceversion), 1, 1, 1, 0, 0, 0, '', '[]',
                '', now()
            FROM accounts_workspace w
            """,
            {"number": per_customer},
        )
        cursor.execute(
            """
            INSERT INTO tts_segment (job_id, workspace_id, job_class, index, part, text, characters, state,
                attempt_number, estimate_gpu_ms, held_gpu_ms, gpu_ms, audio_ms, audio_key, created_at)
            SELECT j.id, j.workspace_id, j.job_class, n, 0, '', 50, 'queued', 0, 500 + (random() * 4000)::int, 9999,
                0, 0, '', now()
            FROM tts_synthesisjob j CROSS JOIN generate_series(0, %(number)s - 1) n
            WHERE j.segment_count = %(number)s
            """,
            {"number": per_customer},
        )
        cursor.execute("VACUUM ANALYZE tts_segment, tts_fairsharequeue, tts_synthesisjob")


def _decide() -> tuple[list[float], list[float]]:
    """Milliseconds of each decision, warm, and of each truing up."""
    from django.db import connection

    taken_ms, true_up_ms = [], []
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM tts_deviceslot WHERE attempt_id IS NULL ORDER BY id")
        slots = [slot_id for (slot_id,) in cursor.fetchall()]
        for number in range(WARM_UP_DECISIONS + DECISIONS):
            slot_id = slots[number % len(slots)]
            began = time.perf_counter()
            cursor.execute("SELECT tts_bind(%s, 3, 10)", [slot_id])
            (attempt_id,) = cursor.fetchone()
            taken = (time.perf_counter() - began) * 1000
            if attempt_id is None:
                raise RuntimeError("an idle slot was given nothing though segments wait")
            if number >= WARM_UP_DECISIONS:
                taken_ms.append(taken)
            _end(cursor, slot_id)
            began = time.perf_counter()
            cursor.execute("SELECT tts_true_up_ahead()")
            true_up_ms.append((time.perf_counter() - began) * 1000)
    return taken_ms, true_up_ms


def _end(cursor: object, slot_id: int) -> None:
    """The slot's attempt succeeds: what settling writes to the tables that a decision reads."""
    from django.db.backends.utils import CursorWrapper

    assert isinstance(cursor, CursorWrapper)
    cursor.execute(
        """
        WITH ended AS (
            UPDATE tts_attempt a SET state = 'succeeded', finished_at = now(), gpu_ms = 1000
            FROM tts_deviceslot s WHERE s.id = %s AND a.id = s.attempt_id RETURNING a.segment_id
        ) UPDATE tts_segment SET state = 'succeeded' WHERE id IN (SELECT segment_id FROM ended)
        """,
        [slot_id],
    )
    cursor.execute("UPDATE tts_deviceslot SET attempt_id = NULL WHERE id = %s", [slot_id])
