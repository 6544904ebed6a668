"""A job's audio as a file: whole, in parts, by validator, to play or to save."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.problems import assert_problem
from tests.cast import Api
from tests.factories import finish_job
from tts import storage
from tts.models import SynthesisJob
from tts.states import JobState


@pytest.fixture
def audio(alices_job: SynthesisJob) -> bytes:
    return finish_job(alices_job)


@pytest.fixture
def path(alices_job: SynthesisJob) -> str:
    return f"/api/v1/jobs/{alices_job.pk}/audio"


def body_of(response: Any) -> bytes:
    return b"".join(response.streaming_content) if response.streaming else response.content


def test_the_whole_audio_is_a_private_wav_file(alice_api: Api, path: str, audio: bytes) -> None:
    response = alice_api.get(path)
    assert response.status_code == 200
    assert body_of(response) == audio
    assert response["Content-Type"] == "audio/wav"
    assert response["Content-Length"] == str(len(audio))
    assert response["Accept-Ranges"] == "bytes"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in response["Cache-Control"]
    assert "public" not in response["Cache-Control"]
    assert re.fullmatch(
        r'inline; filename="[\w.-]+\.wav"; filename\*=UTF-8\'\'[\w.%-]+\.wav', response["Content-Disposition"]
    )


def test_it_can_be_saved(alice_api: Api, path: str, audio: bytes) -> None:
    response = alice_api.get(f"{path}?download=1")
    assert response["Content-Disposition"].startswith('attachment; filename="')
    assert body_of(response) == audio


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-99", 0, 99),
        ("bytes=44-", 44, -1),
        ("bytes=-100", -100, -1),
        ("bytes=100-999999999", 100, -1),
        ("bytes=-999999999", 0, -1),
    ],
)
def test_a_range_is_answered_with_exactly_its_bytes(
    asked: str, first: int, last: int, alice_api: Api, path: str, audio: bytes
) -> None:
    first, last = first % len(audio), last % len(audio)
    response = alice_api.get(path, headers={"Range": asked})
    assert response.status_code == 206
    assert response["Content-Range"] == f"bytes {first}-{last}/{len(audio)}"
    assert response["Content-Length"] == str(last - first + 1)
    assert body_of(response) == audio[first : last + 1]


@pytest.mark.parametrize("asked", ["bytes=48270-", "bytes=999999999-", "bytes=-0"])
def test_a_range_behind_the_end_cannot_be_satisfied(
    asked: str, alice_api: Api, path: str, audio: bytes
) -> None:
    assert len(audio) == 48_270
    response = alice_api.get(path, headers={"Range": asked})
    assert (response.status_code, response.content) == (416, b"")
    assert response["Content-Range"] == "bytes */48270"


@pytest.mark.parametrize(
    "asked", ["bytes=5-2", "bytes=a-b", "bytes=-", "lines=0-1", "bytes=0-1,5-6", "bytes", "\x7f"]
)
def test_a_range_that_is_not_understood_gives_everything(
    asked: str, alice_api: Api, path: str, audio: bytes
) -> None:
    response = alice_api.get(path, headers={"Range": asked})
    assert (response.status_code, body_of(response)) == (200, audio)


def test_who_has_it_already_is_not_sent_it_again(alice_api: Api, path: str, audio: bytes) -> None:
    etag = alice_api.head(path)["ETag"]
    again = alice_api.get(path, headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    other = alice_api.get(path, headers={"If-None-Match": '"other"'})
    assert (other.status_code, body_of(other)) == (200, audio)


def test_a_range_of_another_version_gives_everything(alice_api: Api, path: str, audio: bytes) -> None:
    etag = alice_api.head(path)["ETag"]
    for given, status, expected in [(etag, 206, audio[:10]), ('"old"', 200, audio)]:
        response = alice_api.get(path, headers={"Range": "bytes=0-9", "If-Range": given})
        assert (response.status_code, body_of(response)) == (status, expected)


def test_head_says_how_much_there_is(alice_api: Api, path: str, audio: bytes) -> None:
    response = alice_api.head(path)
    assert (response.status_code, body_of(response)) == (200, b"")
    assert response["Content-Length"] == str(len(audio))


def test_a_job_without_audio_says_so(alice_api: Api, alices_job: SynthesisJob, path: str) -> None:
    assert_problem(alice_api.get(path), 409, "audio_not_ready")
    finish_job(alices_job, state=JobState.FAILED)
    assert_problem(alice_api.get(path), 409, "audio_not_ready")
    assert_problem(alice_api.get(f"/api/v1/jobs/{alices_job.pk}/stream"), 409, "audio_not_ready")


def test_a_file_that_is_gone_is_no_fault(
    alice_api: Api, alices_job: SynthesisJob, path: str, audio: bytes
) -> None:
    storage.delete(alices_job.audio_key)
    assert_problem(alice_api.get(path), 409, "audio_not_ready")
