"""Streams are opened one after the other.

A process has one interpreter: while it opens thirty streams at once, each of thirty threads has it for a moment, and
those that only have a chunk to pass on wait for all the others (measured with fifty that come together: 0.8 s for one
chunk in a hundred). One at a time, all of them are open just as soon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

# What /jobs/<id>/stream and /jobs/<id>/events end in, in the API as on pages.
ENDINGS: Final = ("/stream", "/events")
# One that hangs at the database must not keep the others out for ever.
PATIENCE_S: Final = 10.0


class OneStreamAtATimeMiddleware:
    """Until a stream's answer begins, the next one waits. What is sent afterwards is not held up, nor are others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._turn = threading.Lock()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method != "GET" or not request.path_info.endswith(ENDINGS):
            return self.get_response(request)
        has_turn = self._turn.acquire(timeout=PATIENCE_S)
        try:
            return self.get_response(request)
        finally:
            if has_turn:
                self._turn.release()
