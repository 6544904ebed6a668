"""What the web process takes and what it can do: gunicorn as `make run` starts it, one worker, 32 threads.

`rss_mb` is the resident memory of that worker, in MiB, after 500 requests over pages and API (an upload, quotes
and submissions among them). `submits_per_s` is how many jobs it takes in when four clients, each of a workspace
of its own, submit as fast as they are answered: authentication by key, both throttles, validation, quote, hold,
job, segments, and an Idempotency-Key. No device takes work, so that nothing but taking in is measured; the
database and Redis share the machine with the worker and the clients.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import start_servers
from tests.web_server import WebServer

ROOT = Path(__file__).resolve().parent.parent.parent
REQUESTS = 500
CLIENTS = 4
SUBMITS_PER_CLIENT = 100
SENTENCE = "今天天气很好，我们一起去公园里散步喝茶吧。"
PLENTY = "1000000000"
CREDIT_MICROS = 10**15


@dataclass(frozen=True)
class Customer:
    key: str
    session: str
    voice_id: str

    @property
    def api_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}


def run() -> dict[str, float]:
    """Return `rss_mb` and `submits_per_s`, and what a submission takes at the median and at the 95th percentile."""
    servers = start_servers()
    environment = {
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "VOICEPOOL_DATA": str(servers.data_folder),
        "DJANGO_SETTINGS_MODULE": "portal.settings.embedded",
        "SECRET_KEY": uuid.uuid4().hex,
        "VOICEPOOL_CPU_ENGINE": "simulated",
        "REQUESTS_PER_MINUTE": PLENTY,
        "SUBMITS_PER_MINUTE": PLENTY,
        "QUEUED_JOBS_PER_WORKSPACE": PLENTY,
        "LOG_LEVEL": "WARNING",
    }
    os.environ.update(environment)
    try:
        for command in (["migrate", "--verbosity", "0"], ["collectstatic", "--no-input", "--verbosity", "0"]):
            subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, check=True)
        customers = _make_customers()
        web = WebServer(environment)
        try:
            web.wait_until_ready()
            _browse(web, customers[0])
            rss_mb = _resident_mib(web.worker_pid)
            return {"rss_mb": round(rss_mb, 1), **_submit(web, customers)}
        finally:
            web.stop()
    finally:
        servers.stop()


def _make_customers() -> list[Customer]:
    """Four people with money, a voice, a key and a browser's session each."""
    import django

    django.setup()
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.db import connections

    from accounts.services.api_keys import create_api_key
    from tests.billing.books import grant
    from tests.factories import finish_job, make_job, make_user, make_voice, personal_workspace

    found = []
    for number in range(CLIENTS):
        user = make_user(f"customer-{number}")
        workspace = personal_workspace(user)
        grant(workspace.pk, CREDIT_MICROS)
        voice = make_voice(workspace, user)
        for text in range(20):
            finish_job(make_job(workspace, user, voice, text=f"{SENTENCE} {text}"))
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "allauth.account.auth_backends.AuthenticationBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        _, key = create_api_key(workspace=workspace, user=user, name="bench")
        found.append(Customer(key=key, session=session.session_key or "", voice_id=str(voice.pk)))
    connections.close_all()
    return found


def _browse(web: WebServer, customer: Customer) -> None:
    """500 requests over the pages and the API, one after the other on one connection."""
    connection = web.connect()
    pages = {"Cookie": f"sessionid={customer.session}"}
    jobs = _asked(connection, "GET", "/api/v1/jobs", customer.api_headers)["results"]
    _upload(connection, customer)
    body = json.dumps({"voice_id": customer.voice_id, "text": SENTENCE})
    turns: list[tuple[str, str, dict[str, str], str | None]] = [
        ("GET", "/?stay=1", pages, None),
        ("GET", "/studio/", pages, None),
        ("GET", "/voices/", pages, None),
        ("GET", f"/voices/{customer.voice_id}/", pages, None),
        ("GET", "/history/", pages, None),
        ("GET", f"/jobs/{jobs[0]['id']}/", pages, None),
        ("GET", f"/jobs/{jobs[0]['id']}/audio", pages, None),
        ("GET", "/developers/", pages, None),
        ("GET", "/settings/", pages, None),
        ("GET", "/api/v1/docs", {}, None),
        ("GET", "/api/v1/schema", {}, None),
        ("GET", "/api/v1/account", customer.api_headers, None),
        ("GET", "/api/v1/voices", customer.api_headers, None),
        ("GET", "/api/v1/jobs", customer.api_headers, None),
        ("GET", f"/api/v1/jobs/{jobs[0]['id']}", customer.api_headers, None),
        ("GET", f"/api/v1/jobs/{jobs[0]['id']}/audio", customer.api_headers, None),
        ("POST", "/api/v1/quotes", customer.api_headers, body),
        ("POST", "/api/v1/jobs", customer.api_headers, body),
    ]
    taken_ms: dict[str, list[float]] = {}
    for method, path, headers, payload in itertools.islice(itertools.cycle(turns), REQUESTS):
        began = time.perf_counter()
        _asked(connection, method, path, headers, payload)
        taken_ms.setdefault(f"{method} {path}", []).append((time.perf_counter() - began) * 1000)
    for path, times in sorted(taken_ms.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{statistics.median(times):7.1f} ms  {path}", flush=True)
    connection.close()


def _upload(connection: http.client.HTTPConnection, customer: Customer) -> None:
    """Clone a voice: the web process starts the child that decodes, and keeps what it answers."""
    from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

    from tests.api.test_voices import upload
    from tests.audio import clips

    fields = {"file": upload(clips.wav(clips.speech(8.0))), "name": "Uploaded", "consent": "true"}
    headers = {**customer.api_headers, "Content-Type": MULTIPART_CONTENT}
    _asked(connection, "POST", "/api/v1/voices", headers, encode_multipart(BOUNDARY, fields))


def _asked(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: dict[str, str],
    payload: str | bytes | None = None,
) -> Any:
    """The answer, read to its end; JSON is decoded. Anything but a success ends the benchmark."""
    connection.request(method, path, payload.encode() if isinstance(payload, str) else payload, headers)
    response = connection.getresponse()
    content = response.read()
    if response.status not in (200, 201, 202):
        raise RuntimeError(f"{method} {path} answered {response.status}: {content[:500]!r}")
    return json.loads(content) if "json" in (response.headers["Content-Type"] or "") else content


def _submit(web: WebServer, customers: list[Customer]) -> dict[str, float]:
    start = threading.Barrier(CLIENTS + 1)
    taken_ms: list[list[float]] = [[] for _ in customers]

    def client(number: int) -> None:
        customer, connection = customers[number], web.connect()
        body = json.dumps({"voice_id": customer.voice_id, "text": SENTENCE})
        start.wait()
        for _ in range(SUBMITS_PER_CLIENT):
            began = time.perf_counter()
            headers = {**customer.api_headers, "Idempotency-Key": uuid.uuid4().hex}
            _asked(connection, "POST", "/api/v1/jobs", headers, body)
            taken_ms[number].append((time.perf_counter() - began) * 1000)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - began
    every = sorted(itertools.chain(*taken_ms))
    if len(every) != CLIENTS * SUBMITS_PER_CLIENT:
        raise RuntimeError("a client gave up; see above")
    return {
        "submits_per_s": round(len(every) / elapsed_s, 1),
        "submit_p50_ms": round(statistics.median(every), 1),
        "submit_p95_ms": round(every[int(0.95 * len(every))], 1),
    }


def _resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel tells no resident memory")
