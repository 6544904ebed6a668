"""Rate limits, counted in a real Valkey."""

from __future__ import annotations

import logging
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from portal.lib.throttling import SubmitThrottle, WorkspaceThrottle, seconds_until_room

LIMIT = 3


@pytest.fixture(autouse=True)
def _limits(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": LIMIT, "SUBMITS_PER_MINUTE": 1}
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 0


def request_of(workspace: Any = None, **extra: Any) -> Request:
    plain = APIRequestFactory().get("/api/v1/jobs", **extra)
    plain.workspace = workspace  # type: ignore[attr-defined]  # as the middleware does
    return Request(plain)


def some_workspace() -> Any:
    return SimpleNamespace(id=uuid.uuid4())


def an_address() -> str:
    """An address of the documentation range that no other test uses."""
    number = uuid.uuid4().int
    return f"2001:db8:{number >> 16 & 0xFFFF:x}::{number & 0xFFFF:x}"


def passes(request: Request, throttle: type[WorkspaceThrottle] = WorkspaceThrottle) -> bool:
    return throttle().allow_request(request, APIView())


def test_a_workspace_has_so_many_requests_a_minute() -> None:
    workspace = some_workspace()
    assert [passes(request_of(workspace)) for _ in range(LIMIT + 2)] == [True, True, True, False, False]


def test_a_refusal_says_how_long_to_wait() -> None:
    workspace = some_workspace()
    for _ in range(LIMIT):
        throttle = WorkspaceThrottle()
        assert throttle.allow_request(request_of(workspace), APIView())
        assert throttle.wait() is None
    refusal = WorkspaceThrottle()
    assert not refusal.allow_request(request_of(workspace), APIView())
    wait_s = refusal.wait()
    assert wait_s is not None
    assert 1 <= wait_s <= 60


def test_workspaces_do_not_use_up_each_others_requests() -> None:
    busy, quiet = some_workspace(), some_workspace()
    for _ in range(LIMIT + 1):
        passes(request_of(busy))
    assert not passes(request_of(busy))
    assert passes(request_of(quiet))


def test_a_workspace_is_one_caller_wherever_it_calls_from() -> None:
    workspace = some_workspace()
    for _ in range(LIMIT):
        assert passes(request_of(workspace, REMOTE_ADDR=an_address()))
    assert not passes(request_of(workspace, REMOTE_ADDR=an_address()))


def test_strangers_are_counted_by_address() -> None:
    first, second = an_address(), an_address()
    for _ in range(LIMIT):
        assert passes(request_of(REMOTE_ADDR=first))
    assert not passes(request_of(REMOTE_ADDR=first))
    assert passes(request_of(REMOTE_ADDR=second))


def test_a_made_up_forwarded_address_gives_no_new_allowance() -> None:
    peer = an_address()
    for _ in range(LIMIT):
        assert passes(request_of(REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=an_address()))
    assert not passes(request_of(REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR=an_address()))


def test_submissions_are_counted_apart() -> None:
    workspace = some_workspace()
    assert passes(request_of(workspace), SubmitThrottle)
    assert not passes(request_of(workspace), SubmitThrottle)
    assert passes(request_of(workspace))


def test_callers_at_the_same_moment_cannot_share_one_place() -> None:
    workspace = some_workspace()
    together = threading.Barrier(12)

    def call(_: int) -> bool:
        together.wait(timeout=30)
        return passes(request_of(workspace))

    with ThreadPoolExecutor(12) as pool:
        assert sorted(pool.map(call, range(12))) == [False] * (12 - LIMIT) + [True] * LIMIT


def test_everybody_passes_while_redis_is_away_and_nobody_waits_for_it(
    broken_redis: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="portal.lib.throttling"):
        assert passes(request_of(some_workspace()))
    assert [record.getMessage() for record in caplog.records] == ["throttle_unavailable"]
    # Tried once and once more at once: ten tries with pauses would hold a web thread for seconds.
    assert len(broken_redis) <= 2


def test_sums_are_kept_to_the_character_however_many_ask_at_once(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "PRICED_CHARACTERS_PER_MINUTE": 1_000_000}

    def ask(who: str, amount: int) -> int:
        return seconds_until_room(
            scope="test", setting="PRICED_CHARACTERS_PER_MINUTE", who=who, amount=amount
        )

    who = str(uuid.uuid4())
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda _: ask(who, 250_000), range(8)))
    assert sorted(waits)[:4] == [0] * 4
    assert all(1 <= wait_s <= 60 for wait_s in sorted(waits)[4:])
    other = str(uuid.uuid4())
    assert [ask(other, 400_000), ask(other, 700_000) > 0, ask(other, 600_000)] == [0, True, 0]
    # More than there can ever be room for needs all of it.
    assert [ask(f"long {who}", 2_000_000), ask(f"long {who}", 1) > 0] == [0, True]
