"""Request ids, client addresses and body limits, at the edge of the portal."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory

from portal.lib.http import BodyLimitMiddleware, RequestIdMiddleware, client_address
from portal.lib.logging import request_id_var

MEGABYTE = 1024 * 1024


@pytest.fixture
def factory() -> RequestFactory:
    return RequestFactory()


def answered(request: HttpRequest) -> tuple[HttpResponseBase, str]:
    """The response of the middleware around a view, and the id that the view's log lines would carry."""
    seen: list[str] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request_id_var.get())
        return HttpResponse(request.request_id)  # type: ignore[attr-defined]

    return RequestIdMiddleware(view)(request), seen[0]


def test_every_request_gets_an_id_of_its_own(factory: RequestFactory) -> None:
    first, first_logged = answered(factory.get("/"))
    second, second_logged = answered(factory.get("/"))
    assert first["X-Request-Id"] == first_logged
    assert len(first_logged) == 16
    assert first_logged != second_logged
    assert second["X-Request-Id"] == second_logged


@pytest.mark.parametrize("given", ["a" * 8, "a" * 40, "job-17.try_2"])
def test_a_plain_id_from_outside_is_kept(factory: RequestFactory, given: str) -> None:
    response, logged = answered(factory.get("/", headers={"X-Request-Id": given}))
    assert response["X-Request-Id"] == given
    assert logged == given


@pytest.mark.parametrize(
    "given",
    [
        "",
        "short",
        "a" * 41,
        "with space",
        'quote"quote',
        "line\nbreak",
        "a" * 8 + "\n",
        "声" * 8,
        "<b>bold</b>",
    ],
)
def test_any_other_id_from_outside_is_replaced(factory: RequestFactory, given: str) -> None:
    response, logged = answered(factory.get("/", HTTP_X_REQUEST_ID=given))
    assert response["X-Request-Id"] == logged
    assert logged != given
    assert len(logged) == 16


def test_the_id_is_forgotten_after_the_request_even_when_the_view_fails(factory: RequestFactory) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        RequestIdMiddleware(view)(factory.get("/"))
    assert request_id_var.get() == ""


def address(factory: RequestFactory, *, peer: str, forwarded: str | None = None) -> str | None:
    request = factory.get("/", REMOTE_ADDR=peer)
    if forwarded is not None:
        request.META["HTTP_X_FORWARDED_FOR"] = forwarded
    return client_address(request)


def test_without_proxies_of_ours_the_header_is_not_believed(
    factory: RequestFactory, settings: LazySettings
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 0
    assert address(factory, peer="192.0.2.7", forwarded="203.0.113.9") == "192.0.2.7"


@pytest.mark.parametrize(
    ("hops", "forwarded", "expected"),
    [
        # What the client wrote itself stands further left than what our own proxies appended.
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (1, "127.0.0.1, 10.0.0.1, 203.0.113.9", "203.0.113.9"),
        (2, "198.51.100.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        (1, " , ,203.0.113.9", "203.0.113.9"),
        (1, "2001:db8::1", "2001:db8::1"),
        (1, "2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
    ],
)
def test_behind_proxies_the_address_that_the_outermost_of_ours_saw_counts(
    factory: RequestFactory, settings: LazySettings, hops: int, forwarded: str, expected: str
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = hops
    assert address(factory, peer="10.0.0.2", forwarded=forwarded) == expected


@pytest.mark.parametrize("forwarded", [None, "", ", ,"])
def test_a_request_that_came_past_the_proxies_counts_by_its_peer(
    factory: RequestFactory, settings: LazySettings, forwarded: str | None
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    assert address(factory, peer="10.0.0.2", forwarded=forwarded) == "10.0.0.2"


def test_fewer_hops_than_there_are_proxies_counts_by_its_peer(
    factory: RequestFactory, settings: LazySettings
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 2
    assert address(factory, peer="10.0.0.2", forwarded="203.0.113.9") == "10.0.0.2"


@pytest.mark.parametrize("forwarded", ["unknown", "203.0.113.9:443", "203.0.113.9'; --", "999.1.1.1"])
def test_what_is_no_address_is_none(factory: RequestFactory, settings: LazySettings, forwarded: str) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    assert address(factory, peer="10.0.0.2", forwarded=forwarded) is None


def test_an_ipv4_client_of_an_ipv6_socket_is_an_ipv4_client(
    factory: RequestFactory, settings: LazySettings
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 0
    assert address(factory, peer="::ffff:192.0.2.7") == "192.0.2.7"


class Body(BytesIO):
    """A body that counts how much of it was taken."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.left = length
        self.taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = bytes(self.left if size is None or size < 0 else min(size, self.left))
        self.left -= len(chunk)
        self.taken += len(chunk)
        return chunk


def limited(
    factory: RequestFactory, path: str, *, length: str, content_type: str
) -> tuple[HttpResponseBase, Body]:
    """The answer to a request that announces so much, and its body, which counts how much of it was taken."""
    request = factory.generic("POST", path, data="x", content_type=content_type)
    request.META["CONTENT_LENGTH"] = length
    body = Body(int(length) if length.isdecimal() else 0)
    request._stream = body
    response = BodyLimitMiddleware(lambda request: HttpResponse("passed"))(request)
    return response, body


KINDS = [("application/json", 2 * MEGABYTE), ("multipart/form-data; boundary=x", 16 * MEGABYTE)]


@pytest.mark.parametrize(("content_type", "limit"), KINDS)
def test_a_body_at_its_limit_passes_unread(factory: RequestFactory, content_type: str, limit: int) -> None:
    response, body = limited(factory, "/api/v1/jobs", length=str(limit), content_type=content_type)
    assert (response.status_code, body.taken) == (200, 0)


# Closing a response ends the request, and Django then looks after its database connections.
@pytest.mark.django_db
@pytest.mark.parametrize(("content_type", "limit"), KINDS)
def test_a_body_over_its_limit_is_refused_at_once_and_taken_afterwards_so_that_its_sender_sees_why(
    factory: RequestFactory, content_type: str, limit: int
) -> None:
    refused, sent = limited(factory, "/api/v1/jobs", length=str(limit + 1), content_type=content_type)
    assert (refused.status_code, sent.taken) == (413, 0)
    # What the server does when it has sent the answer.
    refused.close()
    assert sent.taken == limit + 1
    assert refused["Content-Type"] == "application/problem+json"
    body = json.loads(refused.content)  # type: ignore[attr-defined]
    assert body["code"] == "request_too_large"
    assert f"at most {limit // MEGABYTE} MB" in body["detail"]


# Closing a response ends the request, and Django then looks after its database connections.
@pytest.mark.django_db
@pytest.mark.parametrize(("content_type", "limit"), KINDS)
def test_a_huge_body_is_refused_without_taking_any_of_it(
    factory: RequestFactory, content_type: str, limit: int
) -> None:
    refused, sent = limited(factory, "/api/v1/jobs", length=str(10**12), content_type=content_type)
    refused.close()
    assert (refused.status_code, sent.taken) == (413, 0)


@pytest.mark.parametrize("length", ["-1", "a lot", "1e9", "0x10"])
def test_a_length_that_is_no_number_is_refused(factory: RequestFactory, length: str) -> None:
    refused, body = limited(factory, "/api/v1/jobs", length=length, content_type="application/json")
    assert (refused.status_code, body.taken) == (413, 0)


def test_a_request_without_a_body_passes(factory: RequestFactory) -> None:
    assert BodyLimitMiddleware(lambda request: HttpResponse())(factory.get("/")).status_code == 200


@pytest.mark.django_db
def test_the_whole_stack_refuses_a_large_form_with_a_page(client: Client) -> None:
    response = client.post(
        "/studio/", data="x" * (2 * MEGABYTE + 1), content_type="application/x-www-form-urlencoded"
    )
    assert response.status_code == 413
    assert response["Content-Type"].startswith("text/html")
    assert response["X-Request-Id"] in response.content.decode()
    assert "at most 2 MB" in response.content.decode()


@pytest.mark.django_db
def test_the_whole_stack_refuses_a_large_api_body_as_a_problem(client: Client) -> None:
    response = client.post("/api/v1/jobs", data="x" * (2 * MEGABYTE + 1), content_type="application/json")
    assert response.status_code == 413
    assert response.json()["code"] == "request_too_large"
    assert response.json()["request_id"] == response["X-Request-Id"]
