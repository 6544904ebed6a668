"""Every error leaves the API in one shape, and a page as a page."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils import translation
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.lib.api_problem import api_exception_handler
from portal.lib.errors import Conflict, DomainError, InvalidInput, NotFound, ServiceUnavailable
from portal.lib.problem import problem, problem_response


class Paused(DomainError):
    code = "paused"
    status = 429
    message = "Wait for %(reason)s."


def handled(error: Exception) -> Response:
    response = api_exception_handler(error, {})
    assert response is not None
    return response


def test_a_problem_has_a_stable_shape() -> None:
    assert problem(code="text_empty", status=400, detail="Say something.") == {
        "type": "/docs/errors#text_empty",
        "title": "text empty",
        "status": 400,
        "code": "text_empty",
        "detail": "Say something.",
        "request_id": "",
    }


def test_a_field_and_a_list_of_errors_are_added_where_there_are_some() -> None:
    rows = [{"field": "speed", "code": "max_value", "detail": "Too fast."}]
    body = problem(code="invalid_input", status=400, detail="", field="speed", errors=rows)
    assert body["field"] == "speed"
    assert body["errors"] == rows


def test_a_domain_error_becomes_a_problem_with_its_status_and_retry_header() -> None:
    response = handled(Paused(reason="rain", field="text", retry_after_s=30))
    assert response.status_code == 429
    assert response.content_type == "application/problem+json"
    assert response["Retry-After"] == "30"
    assert response.data["code"] == "paused"
    assert response.data["detail"] == "Wait for rain."
    assert response.data["field"] == "text"


def test_outside_the_framework_a_domain_error_looks_the_same() -> None:
    error = Paused(reason="rain", field="text", retry_after_s=30)
    response = problem_response(error)
    assert json.loads(response.content) == handled(error).data
    assert response["Content-Type"] == "application/problem+json"
    assert response["Retry-After"] == "30"


def test_an_error_without_a_time_to_wait_names_none() -> None:
    assert "Retry-After" not in handled(Conflict()).headers
    assert "Retry-After" not in problem_response(Conflict()).headers


def test_messages_are_in_the_language_of_the_request() -> None:
    error = InvalidInput(reason="x")
    with translation.override("en"):
        assert error.text() == "This is not valid: x"


def test_whole_numbers_in_a_message_have_their_thousands_set_apart_and_stay_numbers_beside_it() -> None:
    error = Paused(reason=200_000)
    assert error.text() == "Wait for 200,000."
    assert error.params == {"reason": 200_000}
    assert [Paused(reason=other).text() for other in (999, -1_000, 1234.5, True, "2000")] == [
        "Wait for 999.",
        "Wait for -1,000.",
        "Wait for 1234.5.",
        "Wait for True.",
        "Wait for 2000.",
    ]


def test_an_error_shows_no_message_of_its_own_to_a_log() -> None:
    assert str(InvalidInput(reason="what a customer typed")) == "invalid_input"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Http404("missing"), 404, "not_found"),
        (NotFound(), 404, "not_found"),
        (exceptions.NotFound(), 404, "not_found"),
        (PermissionDenied(), 403, "forbidden"),
        (exceptions.PermissionDenied(), 403, "forbidden"),
        (exceptions.NotAuthenticated(), 401, "not_authenticated"),
        (exceptions.AuthenticationFailed(), 401, "invalid_api_key"),
        (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (exceptions.NotAcceptable(), 406, "not_acceptable"),
        (exceptions.UnsupportedMediaType("text/csv"), 415, "unsupported_media_type"),
        (exceptions.ParseError(), 400, "malformed_request"),
        (ServiceUnavailable(), 503, "service_unavailable"),
        # No free connection is no fault of the caller's key: never 401, never 500.
        (OperationalError("couldn't get a connection after 10.00 sec"), 503, "service_unavailable"),
        (redis.ConnectionError(), 503, "service_unavailable"),
    ],
)
def test_each_refusal_has_its_code(error: Exception, status: int, code: str) -> None:
    response = handled(error)
    assert response.status_code == status
    assert response.data["status"] == status
    assert response.data["code"] == code
    assert response.data["detail"]


def test_a_refusal_of_a_more_special_kind_keeps_its_familys_code() -> None:
    class KeyExpired(exceptions.AuthenticationFailed):
        pass

    assert handled(KeyExpired()).data["code"] == "invalid_api_key"


def test_a_throttled_caller_learns_how_many_whole_seconds_to_wait() -> None:
    for wait_s, header in [(0.1, "1"), (1.0, "1"), (1.2, "2"), (59.5, "60")]:
        response = handled(exceptions.Throttled(wait=wait_s))
        assert response.status_code == 429
        assert response.data["code"] == "rate_limited"
        assert response["Retry-After"] == header


def test_an_unauthenticated_caller_learns_how_to_authenticate() -> None:
    error = exceptions.NotAuthenticated()
    error.auth_header = "Bearer"  # type: ignore[attr-defined]  # the framework's views set it
    assert handled(error)["WWW-Authenticate"] == "Bearer"


def test_nested_validation_errors_become_one_list() -> None:
    class Line(serializers.Serializer[Any]):
        speaker = serializers.CharField()

    class Script(serializers.Serializer[Any]):
        speed = serializers.FloatField(max_value=2.0)
        line = Line()

    form = Script(data={"speed": 9, "line": {}})
    assert not form.is_valid()
    response = handled(exceptions.ValidationError(form.errors))
    assert response.status_code == 400
    assert response.data["code"] == "invalid_input"
    assert [(row["field"], row["code"]) for row in response.data["errors"]] == [
        ("speed", "max_value"),
        ("line.speaker", "required"),
    ]
    assert response.data["field"] == "speed"
    assert response.data["detail"].startswith("speed: ")


def test_a_validation_error_of_no_field_is_still_a_sentence() -> None:
    response = handled(exceptions.ValidationError("The two do not go together."))
    assert response.data["detail"] == "The two do not go together."
    assert "field" not in response.data


def test_an_unknown_error_is_left_to_the_middleware() -> None:
    assert api_exception_handler(RuntimeError("x"), {}) is None


# -- Through the whole stack ---------------------------------------------------------------------------------


class FaultyApi(APIView):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    def get(self, request: Request, kind: str) -> Response:
        raise FAULTS[kind]


def faulty_page(request: HttpRequest, kind: str) -> HttpResponse:
    raise FAULTS[kind]


FAULTS: dict[str, Exception] = {
    "bug": RuntimeError("a secret of the code"),
    "refusal": Paused(reason="rain", retry_after_s=7),
    "missing": Http404(),
    "suspicious": SuspiciousOperation("forged"),
}
urlpatterns = [
    path("api/v1/faulty/<str:kind>", FaultyApi.as_view()),
    path("faulty/<str:kind>", faulty_page),
]
handler404 = "portal.errors_views.not_found"
handler500 = "portal.errors_views.server_error"


@pytest.fixture
def quiet_client(client: Client) -> Client:
    client.raise_request_exception = False
    return client


@pytest.mark.django_db
@pytest.mark.urls(__name__)
@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("bug", 500, "internal_error"),
        ("refusal", 429, "paused"),
        ("missing", 404, "not_found"),
        ("suspicious", 400, "malformed_request"),
    ],
)
def test_the_api_answers_every_fault_as_a_problem(
    quiet_client: Client, kind: str, status: int, code: str
) -> None:
    response = quiet_client.get(f"/api/v1/faulty/{kind}", headers={"X-Request-Id": "request-17"})
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"], body["request_id"]) == (status, code, "request-17")
    assert "secret" not in response.content.decode()


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_an_unknown_address_under_the_api_is_a_problem(quiet_client: Client) -> None:
    response = quiet_client.get("/api/v1/no-such-thing")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not_found"


@pytest.mark.django_db
@pytest.mark.urls("portal.urls")
@pytest.mark.parametrize("address", ["/no-such-page", "/jobs/00000000-0000-0000-0000-000000000000/nothing"])
def test_an_unknown_page_says_so_and_names_the_request(quiet_client: Client, address: str) -> None:
    response = quiet_client.get(address, headers={"X-Request-Id": "request-17"})
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")
    assert "request-17" in response.content.decode()
    assert str(NotFound.message) in response.content.decode()
