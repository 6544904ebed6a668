"""The Usage page of a workspace with 1,000,000 records, asked of gunicorn as `make run` starts it.

The records are of a year, about 2,740 a day, and as hard to add up as they may be: 40 voices, 12 members with a key
each, three classes of device and of job, so that a day has one sum for every one and a half records. Timed from a
client on the same machine: this month, last month, and a quarter, in turn, after one look at each (`cold_ms` is the
slowest of those). `year_p95_ms` is a page over all of them at once.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
import uuid
from datetime import date, timedelta
from pathlib import Path

from tests.servers import start_servers
from tests.web_server import WebServer

ROOT = Path(__file__).resolve().parent.parent.parent
RECORDS = 1_000_000
PARTS = 4
LOOKS = 40
YEAR_LOOKS = 20


def run() -> dict[str, float]:
    """Return `p95_ms`, and beside it `p50_ms`, `cold_ms` and `year_p95_ms`."""
    servers = start_servers()
    environment = {
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "VOICEPOOL_DATA": str(servers.data_folder),
        "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
        "SECRET_KEY": uuid.uuid4().hex,
        "VOICEPOOL_CPU_ENGINE": "simulated",
        "LOG_LEVEL": "WARNING",
    }
    os.environ.update(environment)
    try:
        for command in (["migrate", "--verbosity", "0"], ["collectstatic", "--no-input", "--verbosity", "0"]):
            subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, check=True)
        session = _make_customer()
        web = WebServer(environment)
        try:
            web.wait_until_ready()
            return _look(web.connect(), session)
        finally:
            web.stop()
    finally:
        servers.stop()


def _make_customer() -> str:
    """Somebody with a workspace of so many records; returns their browser's session."""
    import django

    django.setup()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connections

    from tests.factories import make_user, personal_workspace

    user = make_user("customer")
    _make_records(personal_workspace(user).pk)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    connections.close_all()
    return session.session_key or ""


def _make_records(workspace_id: uuid.UUID) -> None:
    """By SQL, through the triggers that date them and add them up."""
    from django.db import connection

    with connection.cursor() as cursor:
        for part in range(PARTS):
            cursor.execute(
                """
                INSERT INTO billing_usagerecord (attempt_id, job_id, workspace_id, voice_id, user_id, api_key_id,
                    device_name, device_class, job_class, billable, gpu_ms, audio_ms, characters, gpu_second_micros,
                    rated_micros, charged_micros, started_at, finished_at, created_at)
                SELECT gen_random_uuid(), gen_random_uuid(), %(workspace)s,
                    md5('v' || floor(power(random(), 3) * 40))::uuid, md5('u' || who / 2)::uuid,
                    CASE WHEN who %% 2 = 0 THEN NULL ELSE md5('k' || who)::uuid END, 'GPU',
                    (ARRAY['h200', 'a10', 't4'])[1 + floor(random() * 3)::int],
                    (ARRAY['interactive', 'standard', 'batch'])[1 + floor(power(random(), 2) * 3)::int],
                    true, 1500, 9000, 60, 12000, 18000, 18000, ended, ended, ended
                FROM (
                    SELECT floor(power(random(), 2) * 24)::int AS who,
                        now() - interval '1 day' * 365 * (%(part)s + n / %(rows)s::float8) / %(parts)s AS ended
                    FROM generate_series(1, %(rows)s) n
                ) AS made
                """,
                {"workspace": workspace_id, "part": part, "parts": PARTS, "rows": RECORDS // PARTS},
            )
        cursor.execute("VACUUM ANALYZE billing_usageday, billing_usagerecord")


def _look(connection: http.client.HTTPConnection, session: str) -> dict[str, float]:
    today = date.today()  # noqa: DTZ011  # a day more or less changes nothing
    quarter = f"/usage/?period=days&first={today - timedelta(days=90)}&last={today}"
    year = f"/usage/?period=days&first={today - timedelta(days=365)}&last={today}"
    pages = ["/usage/", "/usage/?period=last_month", quarter]
    cold = [_taken_ms(connection, page, session) for page in pages]
    times = sorted(_taken_ms(connection, page, session) for _ in range(LOOKS) for page in pages)
    cold_year = _taken_ms(connection, year, session)
    years = sorted(_taken_ms(connection, year, session) for _ in range(YEAR_LOOKS))
    return {
        "p95_ms": round(times[int(len(times) * 0.95)], 1),
        "p50_ms": round(times[len(times) // 2], 1),
        "cold_ms": round(max(cold), 1),
        "year_p95_ms": round(years[int(len(years) * 0.95)], 1),
        "year_cold_ms": round(cold_year, 1),
    }


def _taken_ms(connection: http.client.HTTPConnection, path: str, session: str) -> float:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": f"sessionid={session}", "Accept-Language": "en"})
    response = connection.getresponse()
    content = response.read()
    taken = (time.perf_counter() - began) * 1000
    if response.status != 200 or b"charged, most on" not in content:
        raise RuntimeError(f"{path} answered {response.status}: {content[:300]!r}")
    return taken
