"""What callers may send by mistake or on purpose: a clear refusal with a code, never a fault, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import Any

import pytest
from django.conf import LazySettings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import ApiKey, User
from portal.lib.json_input import DuplicateJsonField, InvalidUnicode, MalformedJson, decode_json
from tests.api.problems import assert_problem
from tests.cast import Api
from tts.models import SynthesisJob, Voice

JOBS = "/api/v1/jobs"
NOTHING = uuid.UUID(int=0)


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


@pytest.mark.parametrize(
    "raw",
    [
        b" ",
        b"{",
        b"{'text': 'x'}",
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": -Infinity}',
        b'{"text": 1e999}',
        b'{"seed": 99999999999999999999}',
        b'{"seed": ' + b"9" * 5000 + b"}",
        b'{"text": "\xff"}',
        b'{"text": "a\x00b"}',
        b'\xef\xbb\xbf{"text": "x"}',
        '{"text": "x"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"text": "x"} {}',
    ],
)
def test_what_is_no_json_is_malformed(raw: bytes, alice_api: Api) -> None:
    assert_problem(alice_api.send("POST", JOBS, raw), 400, "malformed_json")
    assert SynthesisJob.objects.count() == 0


@pytest.mark.parametrize("raw", [b'{"text": "\\ud83d"}', b'{"\\ud83d": 1}', b'{"a": [{"b": "\\udc00"}]}'])
def test_half_a_surrogate_pair_is_no_character(raw: bytes, alice_api: Api) -> None:
    assert_problem(alice_api.send("POST", JOBS, raw), 400, "invalid_unicode")


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert decode_json(b'{"text": "\\ud83d\\ude00"}') == {"text": "😀"}


def test_a_field_that_comes_twice_is_refused(alice_api: Api) -> None:
    assert_problem(alice_api.send("POST", JOBS, b'{"text": "a", "text": "b"}'), 400, "duplicate_field")


@pytest.mark.parametrize("raw", [b"[]", b'"text"', b"7", b"null", b"true", b"1.5"])
def test_json_that_is_no_object_is_refused(raw: bytes, alice_api: Api) -> None:
    assert_problem(alice_api.send("POST", JOBS, raw), 400, "invalid_input")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("voice_id", None),
        ("voice_id", 7),
        ("voice_id", -(2**62)),
        ("voice_id", "x"),
        ("voice_id", "a\x00b"),
        ("voice_id", ["7d2c1f0e-58d1-4c6e-9a52-0f0f5b7f4a11"]),
        ("text", None),
        ("text", 7),
        ("text", True),
        ("text", ["a"]),
        ("text", {"a": "b"}),
        ("language", 1),
        ("language", "x" * 11),
        ("language", "e\x00"),
        ("job_class", "urgent"),
        ("job_class", 1),
        ("job_class", ["batch"]),
        ("job_class", {}),
        ("mode", "song"),
        ("mode", None),
        ("instruction", "sing"),
        ("instruction", "请用四川话表达。"),
        ("instruction", None),
        ("speed", 0),
        ("speed", 2.01),
        ("speed", "1"),
        ("speed", True),
        ("speed", None),
        ("speed", 9_999_999_999_999_999_999),
        ("seed", -1),
        ("seed", 2**31),
        ("seed", 1.0),
        ("seed", "1"),
        ("seed", False),
        ("surprise", 1),
        ("x" * 1000, 1),
        ("é\x00", 1),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(field: str, value: Any, alice_api: Api, preset: Voice) -> None:
    body: dict[str, Any] = {"voice_id": str(preset.pk), "text": "Hello.", field: value}
    refused = alice_api.send("POST", JOBS, body)
    problem = assert_problem(refused, 400, "invalid_input", field=field[:60])
    assert problem["errors"][0]["field"] == field[:60]
    assert len(refused.content) < 2000
    assert SynthesisJob.objects.count() == 0


def test_all_inputs_at_fault_are_named_at_once(alice_api: Api) -> None:
    problem = assert_problem(alice_api.send("POST", JOBS, {"seed": "x", "speed": 9}), 400, "invalid_input")
    assert {(row["field"], row["code"]) for row in problem["errors"]} == {
        ("voice_id", "required"),
        ("text", "required"),
        ("seed", "invalid"),
        ("speed", "max_value"),
    }


def test_the_bounds_of_a_seed_are_written_as_people_read_them(alice_api: Api) -> None:
    for seed in (-1, 2**31):
        problem = assert_problem(alice_api.send("POST", JOBS, {"seed": seed}), 400, "invalid_input")
        told = {row["field"]: row["detail"] for row in problem["errors"]}
        assert told["seed"] == "A seed is a whole number from 0 to 2,147,483,647."


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "x"]
)
def test_a_body_of_another_type_is_refused(content_type: str, alice_api: Api) -> None:
    refused = alice_api.post(JOBS, b"voice_id=1&text=2", content_type=content_type)
    assert_problem(refused, 415, "unsupported_media_type")


def test_a_form_for_a_job_is_refused(alice_api: Api) -> None:
    assert_problem(alice_api.post(JOBS, {"text": "x"}), 415, "unsupported_media_type")


def test_the_body_of_another_charset_is_not_guessed(alice_api: Api) -> None:
    body = '{"text": "é"}'.encode("latin-1")
    refused = alice_api.generic("POST", JOBS, body, "application/json; charset=latin-1")
    assert_problem(refused, 400, "malformed_json")


def test_a_body_that_is_too_large_is_refused(alice_api: Api, settings: LazySettings) -> None:
    raw = b'{"text": "' + b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"}'
    assert_problem(alice_api.send("POST", JOBS, raw), 413, "request_too_large")


def test_the_largest_body_is_read(alice_api: Api, settings: LazySettings) -> None:
    raw = b'{"text": "' + b"x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE - 12) + b'"}'
    assert len(raw) == settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert_problem(alice_api.send("POST", JOBS, raw), 400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        "state=done",
        "state=",
        "state=%00",
        "voice_id=1",
        "voice_id=%00",
        "search=%00",
        "search=" + "x" * 201,
        "surprise=1",
        "cursor=nonsense",
        "cursor=cD1mb28%3D",  # p=foo
        "cursor=cD0wMDAxLTAxLTAx",  # p=0001-01-01
        "cursor=cD05OTk5LTEyLTMxVDIzOjU5OjU5LTIzOjU5",  # p=9999-12-31T23:59:59-23:59
        "cursor=bz14",  # o=x
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query: str, alice_api: Api) -> None:
    assert_problem(alice_api.get(f"{JOBS}?{query}"), 400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    ["page_size=0", "page_size=x", "page_size=-1", "page_size=1000000", "search=%ed%a0%80", "cursor=%00"],
)
def test_a_query_that_can_be_understood_is(query: str, alice_api: Api) -> None:
    assert alice_api.get(f"{JOBS}?{query}").status_code == 200


@pytest.mark.parametrize(
    "accept", ["audio/wav", "text/event-stream", "text/html", "nonsense", "application/json;q=0"]
)
def test_answers_and_errors_are_json_whatever_is_asked_for(accept: str, alice_api: Api) -> None:
    assert alice_api.get(JOBS, headers={"Accept": accept})["Content-Type"] == "application/json"
    assert_problem(alice_api.get(f"{JOBS}/{NOTHING}", headers={"Accept": accept}), 404, "job_not_found")
    assert_problem(
        alice_api.get(f"{JOBS}/{NOTHING}/events", headers={"Accept": accept}), 404, "job_not_found"
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_that_is_not_there_says_so(method: str, alice_api: Api) -> None:
    refused = alice_api.send(method, JOBS)
    assert_problem(refused, 405, "method_not_allowed")
    assert "POST" in refused["Allow"]


@pytest.mark.parametrize(
    ("language", "words"), [("zh-CN,zh;q=0.9", "zh-hans"), ("en-GB", "en"), ("fr", "en"), ("*;q=x,,", "en")]
)
def test_details_are_in_the_language_that_is_asked_for(language: str, words: str, alice_api: Api) -> None:
    refused = alice_api.get(f"{JOBS}/{NOTHING}", headers={"Accept-Language": language})
    body = assert_problem(refused, 404, "job_not_found")
    assert refused["Content-Language"] == words
    assert "Accept-Language" in refused["Vary"]
    if words == "en":
        assert body["detail"] == "There is no such job, or it is not yours."


# -- The parser alone, with whatever hypothesis thinks of ----------------------------------------------------

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_every_valid_value_is_read_as_it_was_written(value: Any) -> None:
    assert decode_json(json.dumps(value).encode()) == value
    assert decode_json(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(MalformedJson, InvalidUnicode, DuplicateJsonField):
        decode_json(raw)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(["name", "expires_at", "id", "é"]), JSON_VALUES, max_size=3))
def test_no_json_object_makes_the_api_fail(alice_api: Api, body: dict[str, Any]) -> None:
    before = ApiKey.objects.count()
    response = alice_api.send("POST", "/api/v1/keys", body)
    assert response.status_code in (201, 400, 409, 429), response.content
    assert ApiKey.objects.count() == before + (response.status_code == 201)
