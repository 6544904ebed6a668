"""Request ids, the client's address, and how much a request may send."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import secrets
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError
from portal.lib.logging import request_id_var
from portal.lib.problem import error_response

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


# A client that is cut off while it sends never sees why. So much of a body that is refused is taken from it;
# whoever sends more has earned the broken connection.
DISCARDED_BYTES = 32 * 1024 * 1024


class RequestTooLarge(DomainError):
    code = "request_too_large"
    status = 413
    message = _(
        "This is too large: at most %(megabytes)s MB can be sent here. Nothing was stored or charged."
    )


class BodyLimitMiddleware:
    """Refuses a body that is too large by its announced length: none of it is parsed, stored or kept in memory.

    Nothing that runs before it may read a body; the CSRF check reads one only right before the view.
    WSGI shows the application an empty body where no length was announced.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_upload = request.content_type == "multipart/form-data"
        limit: int = settings.VOICEPOOL["UPLOAD_BYTES"] if is_upload else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdecimal() or int(length) > limit:
            refusal = error_response(request, RequestTooLarge(megabytes=limit // (1024 * 1024)))
            if length.isdecimal() and int(length) <= DISCARDED_BYTES:
                # The answer is sent first, the body dropped after it: who reads while sending sees the refusal at
                # once, and who reads only afterwards (browsers) finds it instead of a broken connection.
                refusal._resource_closers.append(  # type: ignore[attr-defined] # Django's own way to act after the answer
                    lambda: _discard_body(request, int(length))
                )
            return refusal
        return self.get_response(request)


def _discard_body(request: HttpRequest, length: int) -> None:
    with contextlib.suppress(UnreadablePostError):  # the client is gone
        while length > 0 and (chunk := request.read(min(length, 64 * 1024))):
            length -= len(chunk)


def client_address(request: HttpRequest) -> str | None:
    """The client's IP address: the one that the outermost of our own proxies saw, or the peer's.

    X-Forwarded-For is believed only for as many hops as ALLAUTH_TRUSTED_PROXY_COUNT says are ours.
    """
    hops = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    forwarded = [
        part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()
    ]
    candidate = forwarded[-hops] if hops and len(forwarded) >= hops else request.META.get("REMOTE_ADDR", "")
    try:
        address = ipaddress.ip_address(candidate)
    except ValueError:
        return None
    # A socket that listens on IPv6 sees "::ffff:192.0.2.1": the same client as 192.0.2.1.
    return str(getattr(address, "ipv4_mapped", None) or address)
