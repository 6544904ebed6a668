"""The production example as it stands: deploy/nginx.conf before deploy/gunicorn.conf.py, over TLS."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from portal.embedded import processes
from portal.embedded.ports import port_of, reserve_loopback_port
from tests.architecture.sources import ROOT
from tests.cast import api_of
from tests.factories import finish_job, make_job, make_user, make_voice, personal_workspace
from tts.models import SynthesisJob

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
HOST = "voice.example.com"
READY_TIMEOUT_S = 60.0
MEGABYTE = 1024 * 1024


def free_port() -> int:
    with reserve_loopback_port() as reservation:
        return port_of(reservation)


class Site:
    """nginx and gunicorn on a folder of their own."""

    def __init__(self, folder: Path, media: Path) -> None:
        self.folder = folder
        self.media = media
        self.port, self.plain_port, self.web_port = free_port(), free_port(), free_port()
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        environment = self.environment()
        subprocess.run(
            [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"],
            cwd=ROOT, env={**environment, "DJANGO_SETTINGS_MODULE": "tests.deploy.collecting"},
            check=True, timeout=120,
        )  # fmt: skip
        make_certificate(self.folder)
        (self.folder / "nginx.conf").write_text(self.nginx_configuration())
        self.run(sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", environment=environment)
        self.run(
            "nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), environment=environment
        )
        self.wait_until_ready()

    def environment(self) -> dict[str, str]:
        database = connection.settings_dict
        where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings.production",
            "DATABASE_URL": f"postgres://{database['USER']}:{database['PASSWORD']}@{where}",
            "SECRET_KEY": "only-for-this-test-but-long-enough-to-be-taken-for-a-real-one-1234567890",
            "ALLOWED_HOSTS": HOST,
            "VOICEPOOL_BASE_URL": f"https://{HOST}",
            "VOICEPOOL_MEDIA": str(self.media),
            "VOICEPOOL_STATIC": str(self.folder / "static"),
            "VOICEPOOL_ACCEL_REDIRECT": "/protected",
            "VOICEPOOL_CPU_ENGINE": "simulated",
            "EMAIL_HOST": "127.0.0.1",
            "WEB_BIND": f"127.0.0.1:{self.web_port}",
            "WEB_WORKERS": "1",
        }

    def nginx_configuration(self) -> str:
        """The example, with this test's ports and folders."""
        example = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        example = re.sub(r"(?m)^\s*listen \[::\].*$", "", example)
        for there, here in {
            "listen 80;": f"listen 127.0.0.1:{self.plain_port};",
            "listen 443 ssl http2;": f"listen 127.0.0.1:{self.port} ssl http2;",
            "server 127.0.0.1:8000;": f"server 127.0.0.1:{self.web_port};",
            "/etc/ssl/voicepool/": f"{self.folder}/",
            "/srv/voicepool/static/": f"{self.folder}/static/",
            "/srv/voicepool/media/": f"{self.media}/",
            "/var/log/nginx/voicepool.log": f"{self.folder}/access.log",
        }.items():
            assert there in example
            example = example.replace(there, here)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "\n".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        user = "user root;" if os.geteuid() == 0 else ""
        return (
            f"{user}\ndaemon off;\npid {self.folder}/nginx.pid;\nerror_log {self.folder}/error.log;\n"
            f"events {{}}\nhttp {{\ninclude /etc/nginx/mime.types;\n{folders}\n{example}\n}}\n"
        )

    def run(self, *command: str, environment: dict[str, str]) -> None:
        log = os.open(self.folder / "output.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            self.running.append(
                processes.start(list(command), environment=environment, output=log, directory=ROOT)
            )
        finally:
            os.close(log)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if self.get("/healthz").status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise AssertionError(
            (self.folder / "output.log").read_text() + (self.folder / "error.log").read_text()
        )

    def stop(self) -> None:
        for process in reversed(self.running):
            processes.stop(process, first=signal.SIGTERM, grace_s=15.0)
        # The server notices a moment later; until then the test database could not be dropped.
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        deadline = time.monotonic() + READY_TIMEOUT_S
        with connection.cursor() as cursor:
            while time.monotonic() < deadline:
                cursor.execute(others)
                if cursor.fetchone() == (0,):
                    return
                time.sleep(0.05)

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.folder / "fullchain.pem"))
        context.check_hostname = False  # reached by its number here
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Any:
        link = self.connect()
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            link.request(method, path, body, {"Host": HOST, **given})
            response: Any = link.getresponse()
            response.body = response.read()
            return response
        finally:
            link.close()

    def get(self, path: str, **headers: str) -> Any:
        return self.request("GET", path, **headers)


def make_certificate(folder: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", "privkey.pem", "-out", "fullchain.pem"],
        cwd=folder, check=True, capture_output=True, timeout=60,
    )  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, transactional_db: None) -> Iterator[Site]:
    for program in ("nginx", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    media = Path(settings.MEDIA_ROOT)
    media.mkdir(parents=True, exist_ok=True)
    started = Site(tmp_path, media)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def test_the_example_serves_pages_files_and_the_api(site: Site) -> None:
    user = make_user("alice")
    workspace = personal_workspace(user)
    voice = make_voice(workspace, user)
    done, waiting = make_job(workspace, user, voice), make_job(workspace, user, voice)
    audio = finish_job(done)
    key = f"Bearer {api_of(user).key}"

    check_pages(site)
    check_audio(site, done, audio, key)
    check_addresses_and_bodies(site, key, str(voice.pk))
    check_events(site, waiting, key)
    log = (site.folder / "access.log").read_text()
    assert "/api/v1/jobs" in log
    assert "what-somebody-searched-for" not in log


def check_pages(site: Site) -> None:
    page = site.get(
        "/?q=what-somebody-searched-for", Referer="https://voice.example.com/?q=what-somebody-searched-for"
    )
    assert page.status == 200
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert all(
        cookie.startswith("__Host-") and "Secure" in cookie
        for cookie in page.headers.get_all("Set-Cookie", [])
    )
    assert site.get("/account/login/").headers.get_all("Set-Cookie")
    style = re.search(r'href="(/static/css/tokens\.[0-9a-f]+\.css)"', page.body.decode())
    assert style is not None
    answer = site.get(style.group(1))
    assert answer.status == 200
    assert "immutable" in answer.headers["Cache-Control"]
    small = site.get(style.group(1), Accept_Encoding="gzip")
    assert small.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(small.body) == answer.body
    plain = http.client.HTTPConnection("127.0.0.1", site.plain_port, timeout=30)
    plain.request("GET", "/studio/", headers={"Host": HOST})
    assert (redirect := plain.getresponse()).status == 301
    assert redirect.headers["Location"] == f"https://{HOST}/studio/"
    plain.close()
    assert site.request("GET", "/", Host="other.example.com").status == 400


def check_audio(site: Site, job: SynthesisJob, audio: bytes, key: str) -> None:
    """nginx sends the bytes, once the portal has said who may have them."""
    address = f"/api/v1/jobs/{job.pk}/audio"
    whole = site.get(address, Authorization=key)
    assert (whole.status, whole.body) == (200, audio)
    assert "X-Accel-Redirect" not in whole.headers
    part = site.get(address, Authorization=key, Range="bytes=0-3")
    assert (part.status, part.body) == (206, b"RIFF")
    assert site.get(address).status == 401
    assert site.get(f"/protected/{job.audio_key}").status == 404
    assert (site.media / job.audio_key).is_file()


def check_addresses_and_bodies(site: Site, key: str, voice_id: str) -> None:
    body = json.dumps({"voice_id": voice_id, "text": "Two boats."}).encode()
    sent = {"Authorization": key, "Content_Type": "application/json", "X_Forwarded_For": "203.0.113.9"}
    answer = site.request("POST", "/api/v1/jobs", body, **sent)
    assert answer.status == 202
    # What the client wrote into the header is not believed.
    assert SynthesisJob.objects.get(pk=json.loads(answer.body)["id"]).client_address == "127.0.0.1"
    large = {"Authorization": key, "Content_Type": "multipart/form-data; boundary=x"}
    refused = site.request("POST", "/api/v1/voices", bytes(17 * MEGABYTE), **large)
    assert (refused.status, json.loads(refused.body)["code"]) == (413, "request_too_large")
    refused = site.request("POST", "/api/v1/voices", bytes(21 * MEGABYTE), **large)
    assert (refused.status, json.loads(refused.body)["code"]) == (413, "request_too_large")


def check_events(site: Site, job: SynthesisJob, key: str) -> None:
    """The first event is there while the job still waits: nothing on the way holds it back."""
    link = site.connect()
    link.request("GET", f"/api/v1/jobs/{job.pk}/events", headers={"Host": HOST, "Authorization": key})
    response = link.getresponse()
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/event-stream")
    lines: list[bytes] = []
    while not any(line.startswith(b"data:") for line in lines):
        lines.append(response.readline())
        assert lines[-1]
    assert b"event: queued\n" in lines
    link.close()


@pytest.mark.parametrize(
    "unit", sorted((ROOT / "deploy" / "systemd").glob("*.service")), ids=lambda path: path.stem
)
def test_a_unit_starts_what_exists(unit: Path) -> None:
    """The commands, the settings and the files that the units name."""
    start = re.search(r"(?m)^ExecStart=/srv/voicepool/app/\.venv/bin/(\w+) (.+)$", unit.read_text())
    assert start is not None
    program, arguments = start.groups()
    assert shutil.which(program, path=str(Path(sys.executable).parent)) is not None
    if program == "python":
        script, command = arguments.split()
        help_text = subprocess.run(
            [sys.executable, script, command, "--help"],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert help_text.returncode == 0
    else:
        assert (ROOT / arguments.removeprefix("-c ")).is_file()


def test_the_gunicorn_file_leaves_threads_for_plain_requests() -> None:
    values: dict[str, Any] = {}
    exec(compile((ROOT / "deploy" / "gunicorn.conf.py").read_text(), "gunicorn.conf.py", "exec"), values)  # noqa: S102
    assert values["threads"] - settings.VOICEPOOL["OPEN_STREAMS_PER_PROCESS"] >= 8
    assert values["worker_class"] == "gthread"
    assert values["accesslog"] is None
