"""A recording checked before it is saved: the report of a voice, and nothing kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from accounts.models import User, Workspace
from tests.api.problems import assert_problem
from tests.api.test_voices import form, upload
from tests.audio import clips
from tests.cast import Api
from tests.security.rows import rows_but_for
from tts.audio.limits import MAX_UPLOAD_BYTES

CHECK = "/api/v1/voices/check"


@pytest.fixture(scope="module")
def recording() -> bytes:
    return clips.wav(clips.speech(4.0))


@pytest.fixture(autouse=True)
def _patience(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOICE_CHECKS_PER_MINUTE": 1000}


def stored_files(settings: LazySettings) -> list[Path]:
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def test_the_report_is_the_one_that_the_voice_has_then(alice_api: Api, recording: bytes) -> None:
    checked = alice_api.post(CHECK, {"file": upload(recording)})
    assert checked.status_code == 200
    assert checked.json()["duration_s"] == pytest.approx(4.0, abs=0.01)
    assert checked.json() == alice_api.post("/api/v1/voices", form(recording)).json()["quality"]


def test_a_recording_that_is_too_poor_is_told_what_to_do_better(alice_api: Api) -> None:
    poor = clips.wav(clips.speech(5.0) + clips.noise(5.0, rms=0.12))
    headers = {"Accept-Language": "zh-CN"}
    body = alice_api.post(CHECK, {"file": upload(poor)}, headers=headers).json()
    assert (body["verdict"], body["message"]) == ("rejected", "这段录音无法使用，请重新录制。")
    noisy = next(check for check in body["checks"] if check["code"] == "noisy")
    assert noisy["state"] == "rejected"
    assert noisy["advice"].startswith("请在安静")


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (clips.wav(clips.speech(4.0)), 200, ""),
        (b"", 400, "clip_empty"),
        (b"this is text", 400, "clip_unreadable"),
        (clips.wav(clips.speech(2.9)), 400, "clip_too_short"),
        (bytes(MAX_UPLOAD_BYTES + 1), 413, "clip_too_large"),
    ],
)
def test_nothing_is_stored_whatever_comes(
    content: bytes,
    status: int,
    code: str,
    alice_api: Api,
    charlie: User,
    charlie_workspace: Workspace,
    settings: LazySettings,
) -> None:
    before, files = rows_but_for(charlie, charlie_workspace), stored_files(settings)
    answer = alice_api.post(CHECK, {"file": upload(content)})
    if code:
        assert_problem(answer, status, code, field="file")
    assert answer.status_code == status
    after = rows_but_for(charlie, charlie_workspace)
    # The key's last use is written with every request.
    assert {name for name in after if after[name] != before[name]} <= {"accounts.ApiKey"}
    assert stored_files(settings) == files


def test_a_form_has_the_file_and_no_more(alice_api: Api, recording: bytes) -> None:
    assert_problem(alice_api.post(CHECK, {}), 400, "invalid_input", field="file")
    named = {"file": upload(recording), "name": "Narrator"}
    assert_problem(alice_api.post(CHECK, named), 400, "invalid_input", field="name")
    assert_problem(alice_api.send("POST", CHECK, {}), 415, "unsupported_media_type")


def test_a_workspace_has_so_many_checks_a_minute_on_pages_and_in_the_api_together(
    alice_api: Api, charlie_api: Api, recording: bytes, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOICE_CHECKS_PER_MINUTE": 1}
    assert alice_api.post(CHECK, {"file": upload(recording)}).status_code == 200
    refused = alice_api.post(CHECK, {"file": upload(recording)})
    assert_problem(refused, 429, "too_many_voice_checks")
    assert refused["Retry-After"] == "60"
    # A voice is made all the same, and another workspace has its own count.
    assert alice_api.post("/api/v1/voices", form(recording)).status_code == 201
    assert charlie_api.post(CHECK, {"file": upload(recording)}).status_code == 200
