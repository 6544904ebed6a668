"""Streams that come together are opened one after the other; nothing else waits for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from portal.lib.opening import OneStreamAtATimeMiddleware

LONG_S = 20.0


def test_streams_are_opened_one_at_a_time_and_other_requests_pass() -> None:
    inside, most = 0, 0
    counting = threading.Lock()
    entered, may_go = threading.Event(), threading.Event()

    def view(request: HttpRequest) -> HttpResponse:
        nonlocal inside, most
        if request.path.endswith("/stream"):
            with counting:
                inside += 1
                most = max(most, inside)
            entered.set()
            may_go.wait(LONG_S)
            with counting:
                inside -= 1
        return HttpResponse(request.path)

    middleware = OneStreamAtATimeMiddleware(view)
    requests = RequestFactory()
    with ThreadPoolExecutor(4) as threads:
        streams = [threads.submit(middleware, requests.get(f"/jobs/{number}/stream")) for number in range(3)]
        assert entered.wait(LONG_S)
        assert middleware(requests.get("/jobs/1")).status_code == 200
        may_go.set()
        assert [stream.result(LONG_S).status_code for stream in streams] == [200, 200, 200]
    assert most == 1


def test_a_stream_that_is_refused_lets_the_next_one_in() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        raise ValueError(request.path)

    middleware = OneStreamAtATimeMiddleware(view)
    for number in range(2):
        with pytest.raises(ValueError, match=f"/jobs/{number}/events"):
            middleware(RequestFactory().get(f"/jobs/{number}/events"))
