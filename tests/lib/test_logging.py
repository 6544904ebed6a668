"""Log lines are JSON with ids: objects, texts and what exceptions quote stay out."""

from __future__ import annotations

import io
import json
import logging
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import DataError, ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from accounts.models import User
from portal.lib.errors import NotFound
from portal.lib.http import RequestIdMiddleware
from portal.lib.logging import JsonFormatter
from tts.states import JobState

SECRET = "what the customer wrote 声音"


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(stream: io.StringIO) -> logging.Logger:
    """A logger whose lines are written to `stream` as the portal writes them."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.Logger("tests.logging")  # noqa: LOG001  # its own, outside the session's tree
    logger.addHandler(handler)
    return logger


def only_line(stream: io.StringIO) -> dict[str, Any]:
    text = stream.getvalue()
    assert text.count("\n") == 1
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_is_an_event_with_its_fields(logger: logging.Logger, stream: io.StringIO) -> None:
    logger.info(
        "attempt_finished", extra={"gpu_ms": 1200, "device": "cpu:0@here", "billable": True, "rest": None}
    )
    line = only_line(stream)
    moment = datetime.fromisoformat(line.pop("time"))
    assert moment.utcoffset() == UTC.utcoffset(None)
    assert line == {
        "level": "info",
        "logger": "tests.logging",
        "event": "attempt_finished",
        "gpu_ms": 1200,
        "device": "cpu:0@here",
        "billable": True,
        "rest": None,
    }


def test_plain_values_keep_their_shape(logger: logging.Logger, stream: io.StringIO) -> None:
    job_id = uuid.UUID(int=7)
    moment = datetime(2026, 11, 30, 12, tzinfo=UTC)
    logger.info(
        "shapes",
        extra={
            "job_id": job_id,
            "at": moment,
            "amount": Decimal("1.5"),
            "state": JobState.QUEUED,
            "ids": (1, [job_id]),
        },
    )
    line = only_line(stream)
    assert line["job_id"] == str(job_id)
    assert line["at"] == "2026-11-30 12:00:00+00:00"
    assert line["amount"] == "1.5"
    assert line["state"] == "queued"
    assert line["ids"] == [1, [str(job_id)]]


def test_an_object_is_logged_by_its_type_alone(logger: logging.Logger, stream: io.StringIO) -> None:
    user = User(email="alice@example.com")
    logger.info(
        "objects",
        extra={
            "user": user,
            "users": [user],
            "by_name": {"user": user},
            "error": ValueError(SECRET),
            "raw": b"k",
        },
    )
    line = only_line(stream)
    assert line["user"] == "<User>"
    assert line["users"] == ["<User>"]
    assert line["by_name"] == {"user": "<User>"}
    assert line["error"] == "<ValueError>"
    assert line["raw"] == "<bytes>"
    assert "alice" not in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_the_request_that_django_adds_is_left_out(logger: logging.Logger, stream: io.StringIO) -> None:
    request = RequestFactory().post("/", data={"text": SECRET})
    logger.error("failed", extra={"request": request, "response": object(), "status_code": 500})
    line = only_line(stream)
    assert "request" not in line
    assert "response" not in line
    assert line["status_code"] == 500


def test_a_field_cannot_pass_for_the_event_or_the_level(logger: logging.Logger, stream: io.StringIO) -> None:
    logger.info("real", extra={"event": "forged", "level": "debug", "time": "never", "logger": "other"})
    line = only_line(stream)
    assert (line["event"], line["level"], line["logger"]) == ("real", "info", "tests.logging")
    assert line["time"] != "never"


def test_line_breaks_and_half_surrogates_stay_within_one_valid_line(
    logger: logging.Logger, stream: io.StringIO
) -> None:
    logger.info("odd", extra={"label": 'a\nb"c', "half": "\ud800"})
    line = only_line(stream)
    assert line["label"] == 'a\nb"c'
    assert line["half"] == "\ud800"
    stream.getvalue().encode("utf-8")  # can be written to a file


def test_lines_of_a_request_carry_its_id(logger: logging.Logger, stream: io.StringIO) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        logger.info("seen")
        return HttpResponse()

    RequestIdMiddleware(view)(RequestFactory().get("/", headers={"X-Request-Id": "request-17"}))
    assert only_line(stream)["request_id"] == "request-17"


def log_failure(logger: logging.Logger, error: BaseException) -> None:
    try:
        raise error
    except BaseException:
        logger.exception("failed")


def test_a_trace_names_types_and_places_but_not_what_an_error_quotes(
    logger: logging.Logger, stream: io.StringIO
) -> None:
    def parse() -> int:
        try:
            return int(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error

    try:
        parse()
    except KeyError:
        logger.exception("failed")
    trace = only_line(stream)["trace"]
    lines = trace.splitlines()
    assert lines[0] == "KeyError"
    assert lines.index("caused by") < lines.index("ValueError")
    assert any(line.endswith("in parse") and "test_logging.py:" in line for line in lines)
    assert SECRET not in stream.getvalue()


def test_a_trace_keeps_what_speaks_of_the_machine(logger: logging.Logger, stream: io.StringIO) -> None:
    log_failure(logger, ConnectionRefusedError(111, "Connection refused"))
    assert only_line(stream)["trace"].startswith("ConnectionRefusedError: [Errno 111] Connection refused\n")


def test_a_trace_keeps_the_code_of_a_refusal(logger: logging.Logger, stream: io.StringIO) -> None:
    log_failure(logger, NotFound())
    assert only_line(stream)["trace"].startswith("portal.lib.errors.NotFound: not_found\n")


def test_causes_that_lead_back_to_themselves_end(logger: logging.Logger, stream: io.StringIO) -> None:
    first, second = OSError("first"), OSError("second")
    first.__context__, second.__context__ = second, first
    log_failure(logger, first)
    assert only_line(stream)["trace"].count("caused by") == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        # PostgreSQL's own DETAIL repeats the whole row that it refused, or the value.
        ("INSERT INTO accounts_workspace (id, name) VALUES (gen_random_uuid(), %s)", IntegrityError),
        ("SELECT %s::text::uuid", DataError),
    ],
)
def test_a_row_that_the_database_refused_is_not_logged(
    logger: logging.Logger, stream: io.StringIO, statement: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [SECRET])
    assert SECRET in str(refused.value)  # or this would prove nothing
    log_failure(logger, refused.value)
    assert SECRET not in stream.getvalue()
    assert kind.__name__ in only_line(stream)["trace"]


@pytest.mark.django_db
def test_a_statement_that_the_database_cannot_read_is_not_logged(
    logger: logging.Logger, stream: io.StringIO
) -> None:
    with pytest.raises(ProgrammingError) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT missing_column, %s", [SECRET])
    assert SECRET in str(refused.value)
    log_failure(logger, refused.value)
    assert SECRET not in stream.getvalue()
    assert "missing_column" in only_line(stream)["trace"]
