"""What the doubles of payment providers share: one server on loopback, which can be told to misbehave."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from enum import Enum

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

# How long an answer is held back that its client is not to wait for (tests give a client a fraction of it).
HELD_BACK_S = 5.0


class Mishap(Enum):
    """What may go wrong with one request."""

    DONE_BUT_UNANSWERED = "it is done, and its answer comes when nobody waits for it any more"
    NOT_DONE_AND_UNANSWERED = "it is lost on its way"
    DONE_BUT_BROKEN = "it is done, and the answer is an error of the server"
    NOT_DONE_AND_BROKEN = "the server has an error of its own"


class FakeProvider(ABC):
    """A double of a provider. `answer` says what a request is answered with."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.server.clear()
        self.server.expect_request(re.compile(".*")).respond_with_handler(self._respond)
        # One request at a time is worked on, as by a provider's own database.
        self.lock = threading.RLock()
        # How often what was asked for, and how often that did something.
        self.calls: Counter[str] = Counter()
        self._mishaps: deque[Mishap] = deque()
        self._let_go = threading.Event()

    def stop(self) -> None:
        """Let go of what is held back. The server stays, for the next double."""
        self._let_go.set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def mishap(self, *mishaps: Mishap) -> None:
        """The next requests go wrong like this, one after the other."""
        self._mishaps.extend(mishaps)

    def forget_mishaps(self) -> None:
        """From now on all goes well."""
        self._mishaps.clear()

    @abstractmethod
    def answer(self, request: Request) -> Response:
        """What the provider does about a request, and says. Called with the lock held."""

    def _respond(self, request: Request) -> Response:
        with self.lock:
            mishap = self._mishaps.popleft() if self._mishaps else None
            done = mishap not in (Mishap.NOT_DONE_AND_UNANSWERED, Mishap.NOT_DONE_AND_BROKEN)
            response = self.answer(request) if done else Response(status=500)
        if mishap in (Mishap.DONE_BUT_UNANSWERED, Mishap.NOT_DONE_AND_UNANSWERED):
            self._let_go.wait(HELD_BACK_S)
        if mishap is Mishap.DONE_BUT_BROKEN:
            return Response(status=500)
        return response
