"""Request ids and the client's address."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from portal.lib.logging import request_id_var

REQUEST_ID_HEADER = "X-Request-Id"
ACCEPTABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,40}")


class RequestIdMiddleware:
    """Gives every request an id to quote: the caller's own where it is short and plain, else a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = given if ACCEPTABLE_REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        request.request_id = request_id  # type: ignore[attr-defined]
        token = request_id_var.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            request_id_var.reset(token)
        response[REQUEST_ID_HEADER] = request_id
        return response


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address: the one that the outermost of our own proxies saw, or the peer's.

    X-Forwarded-For is believed only for as many hops as ALLAUTH_TRUSTED_PROXY_COUNT says are ours.
    """
    hops = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    candidate = forwarded[-hops] if hops and len(forwarded) >= hops else request.META.get("REMOTE_ADDR", "")
    try:
        return str(ipaddress.ip_address(candidate))
    except ValueError:
        return None
