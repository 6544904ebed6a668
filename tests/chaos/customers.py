"""Customers who press, repeat, cancel, delete, listen and hang up, in threads of their own.

Some call the services as the pages do, some talk to the web server as programs do. What fails because somebody was
killed is tried again with the same idempotency key, as a good program does.
"""

from __future__ import annotations

import abc
import http.client
import json
import random
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import DatabaseError, connection
from psycopg_pool import PoolTimeout

from accounts.models import User, Workspace
from accounts.services.api_keys import create_api_key
from tests.billing.books import grant
from tests.chaos.history import Heard, History, book, sentence
from tests.factories import make_user, personal_workspace
from tts.errors import JobAlreadyEnded, JobNotFound
from tts.models import SynthesisJob, Voice
from tts.services.jobs import cancel_job, delete_job
from tts.services.submit import JobRequest, submit_job
from tts.states import JOB_LIVE

CREDIT_MICROS = 10**13
T = TypeVar("T")
# A customer's live jobs; who has more waits.
MOST_LIVE = 12
WHILE_DOWN = (DatabaseError, PoolTimeout)
BROKEN = (OSError, http.client.HTTPException)


class Stopped(Exception):
    """The run is over: what was asked last may or may not have been done."""


class Customers:
    """All of them. `taken_in` counts jobs that the pool has promised to speak."""

    def __init__(self, *, seed: int, jobs_per_s: float, web_port: int) -> None:
        self.history = History()
        self._stop = threading.Event()
        kinds: list[type[Customer]] = [Clicker, Clicker, Clicker, Program, Program]
        self._customers = [
            kind(
                number=number,
                rng=random.Random(f"{seed} customer {number}"),
                pause_s=len(kinds) / jobs_per_s,
                history=self.history,
                stop=self._stop,
                web_port=web_port,
            )
            for number, kind in enumerate(kinds)
        ]
        self._threads = [
            threading.Thread(target=customer.run, name=f"customer-{number}")
            for number, customer in enumerate(self._customers)
        ]

    @property
    def taken_in(self) -> int:
        return len(self.history.accepted)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask them to go home and wait until they have."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Customer(abc.ABC):
    """One customer with a workspace and more money than can be spent."""

    def __init__(
        self,
        *,
        number: int,
        rng: random.Random,
        pause_s: float,
        history: History,
        stop: threading.Event,
        web_port: int,
    ) -> None:
        self.user: User = make_user(f"chaos-{number}")
        self.workspace: Workspace = personal_workspace(self.user)
        grant(self.workspace.pk, CREDIT_MICROS)
        _, self.key = create_api_key(workspace=self.workspace, user=self.user, name="chaos")
        self.voices = list(Voice.objects.filter(kind="preset").order_by("pk"))
        self.rng = rng
        self.history = history
        self.stop = stop
        self.web_port = web_port
        self._pause_s = pause_s
        self._requests: list[tuple[str, JobRequest]] = []
        self._mine: list[uuid.UUID] = []

    def run(self) -> None:
        """Until told to stop."""
        try:
            while not self.stop.is_set():
                self._act()
                self.stop.wait(self.rng.expovariate(1 / self._pause_s))
        except Stopped:
            pass
        except Exception:  # the run must hear of it, and this is a thread
            self.history.note(traceback.format_exc())
        finally:
            connection.close()

    def _act(self) -> None:
        what = self.rng.random()
        if what < 0.08 and self._mine:
            self.cancel(self.rng.choice(self._mine[-6:]))
        elif what < 0.12 and self._mine:
            self.delete(self.rng.choice(self._mine[-12:]))
        elif what < 0.2 and self._requests:
            self.submit(*self.rng.choice(self._requests[-20:]))
        elif self.live() < MOST_LIVE:
            key, request = f"{self.rng.getrandbits(64):x}", self._request()
            self._requests.append((key, request))
            self._mine.append(self.submit(key, request))
            self.follow(self._mine[-1])

    def _request(self) -> JobRequest:
        job_class = self.rng.choices(["interactive", "standard", "batch"], weights=[70, 18, 12])[0]
        long = job_class == "batch" or self.rng.random() < 0.1
        return JobRequest(
            voice_id=self.rng.choice(self.voices).pk,
            text=book(self.rng) if long else sentence(self.rng),
            language="en",
            job_class=job_class,
            speed=self.rng.choice([1.0, 1.0, 1.25]),
        )

    def live(self) -> int:
        live = SynthesisJob.objects.filter(workspace=self.workspace, state__in=JOB_LIVE)
        return self.until_it_works(live.count, when=WHILE_DOWN)

    def until_it_works(self, act: Callable[[], T], *, when: tuple[type[BaseException], ...]) -> T:
        """What `act` returns, however often somebody is killed under its hands. Raises Stopped."""
        while True:
            try:
                return act()
            except when:
                connection.close()
                if self.stop.wait(self.rng.uniform(0.1, 0.4)):
                    raise Stopped from None

    @abc.abstractmethod
    def submit(self, key: str, request: JobRequest) -> uuid.UUID: ...

    @abc.abstractmethod
    def cancel(self, job_id: uuid.UUID) -> None: ...

    @abc.abstractmethod
    def delete(self, job_id: uuid.UUID) -> None: ...

    def follow(self, job_id: uuid.UUID) -> None:  # noqa: B027 - only some listen
        """What the customer does while the job is spoken."""


class Clicker(Customer):
    """Calls the services, as the pages do."""

    def submit(self, key: str, request: JobRequest) -> uuid.UUID:
        def ask() -> uuid.UUID:
            return submit_job(
                workspace=self.workspace,
                user=self.user,
                api_key=None,
                request=request,
                idempotency_key=key,
                client_address=None,
                request_id="chaos",
            ).job.pk

        job_id = self.until_it_works(ask, when=WHILE_DOWN)
        self.history.accept(key, job_id)
        return job_id

    def cancel(self, job_id: uuid.UUID) -> None:
        def ask() -> None:
            try:
                cancel_job(workspace=self.workspace, job_id=job_id)
            except (JobAlreadyEnded, JobNotFound):
                return
            self.history.canceled.add(job_id)

        self.until_it_works(ask, when=WHILE_DOWN)

    def delete(self, job_id: uuid.UUID) -> None:
        def ask() -> None:
            try:
                delete_job(workspace=self.workspace, job_id=job_id)
            except JobNotFound:
                return
            self.history.deleted.add(job_id)

        self.until_it_works(ask, when=WHILE_DOWN)


class Refused(Exception):
    """The web server could not do it now: tried again."""


class Program(Customer):
    """Talks to the web server with a key."""

    def submit(self, key: str, request: JobRequest) -> uuid.UUID:
        body = {
            "voice_id": str(request.voice_id),
            "text": request.text,
            "language": request.language,
            "job_class": request.job_class,
            "speed": request.speed,
        }
        answer = self._ask("POST", "/api/v1/jobs", body, {"Idempotency-Key": key}, expected=(202,))
        job_id = uuid.UUID(json.loads(answer[1])["id"])
        self.history.accept(key, job_id)
        return job_id

    def cancel(self, job_id: uuid.UUID) -> None:
        status, _ = self._ask("POST", f"/api/v1/jobs/{job_id}/cancel", expected=(200, 202, 404, 409))
        if status in (200, 202):
            self.history.canceled.add(job_id)

    def delete(self, job_id: uuid.UUID) -> None:
        status, _ = self._ask("DELETE", f"/api/v1/jobs/{job_id}", expected=(204, 404))
        if status == 204:
            self.history.deleted.add(job_id)

    def follow(self, job_id: uuid.UUID) -> None:
        """Sometimes listen live: to the end, or until fed up, which cancels the job where that is asked for."""
        what = self.rng.random()
        if what < 0.25:
            self._listen(job_id, "?cancel_on_close=0", chunks=10**6)
        elif what < 0.4:
            cancels = self.rng.randrange(2)
            self._listen(job_id, f"?cancel_on_close={cancels}", chunks=self.rng.randrange(6))

    def _listen(self, job_id: uuid.UUID, query: str, *, chunks: int) -> None:
        content, whole, deadline = b"", False, time.monotonic() + 60
        line = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=20)
        try:
            line.request("GET", f"/api/v1/jobs/{job_id}/stream{query}", headers=self._headers)
            response: Any = line.getresponse()
            if response.status != 200:
                return
            for _ in range(chunks):
                if self.stop.is_set() or time.monotonic() > deadline:
                    break
                data = response.read1(65536)
                if not data:
                    whole = True
                    break
                content += data
            response.close()
        except BROKEN:
            pass
        finally:
            line.close()
        self.history.heard.append(Heard(job_id=job_id, content=content, whole=whole))

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        *,
        expected: tuple[int, ...],
    ) -> tuple[int, bytes]:
        def ask() -> tuple[int, bytes]:
            line = http.client.HTTPConnection("127.0.0.1", self.web_port, timeout=20)
            try:
                payload = json.dumps(body).encode() if body is not None else None
                line.request(method, path, payload, {**self._headers, **(headers or {})})
                response = line.getresponse()
                content = response.read()
            finally:
                line.close()
            if response.status >= 500 or response.status == 429:
                raise Refused
            if response.status not in expected:
                self.history.note(f"{method} {path} answered {response.status}: {content[:300]!r}")
            return response.status, content

        return self.until_it_works(ask, when=(*BROKEN, Refused))
