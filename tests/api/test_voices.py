"""Voices over the API: cloned from a real recording, judged, renamed, heard, deleted."""

from __future__ import annotations

import io
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from accounts.consent_statements import current_statement
from accounts.models import ConsentRecord, User, Workspace
from portal.lib.http import DISCARDED_BYTES
from tests.api.problems import assert_problem
from tests.audio import clips
from tests.cast import Api
from tests.factories import make_job
from tts import storage
from tts.audio.limits import MAX_UPLOAD_BYTES
from tts.audio.wav import read_wav
from tts.models import Voice

VOICES = "/api/v1/voices"


@pytest.fixture(scope="module")
def recording() -> bytes:
    """Four seconds of espeak's speech as a WAV file."""
    return clips.wav(clips.speech(4.0))


def upload(content: bytes, name: str = "recording.wav") -> io.BytesIO:
    file = io.BytesIO(content)
    file.name = name
    return file


def form(content: bytes, **changes: Any) -> dict[str, Any]:
    fields = {
        "file": upload(content),
        "name": "Narrator",
        "language": "en",
        "transcript": "The quick brown fox.",
        "consent": "true",
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


def stored_files(settings: LazySettings, workspace: Workspace) -> set[Path]:
    return {
        path
        for path in (Path(settings.MEDIA_ROOT) / "workspaces" / str(workspace.pk)).rglob("*")
        if path.is_file()
    }


def nothing_stored(settings: LazySettings, workspace: Workspace) -> bool:
    voices = Voice.objects.filter(workspace=workspace).exists()
    return not voices and not ConsentRecord.objects.exists() and not stored_files(settings, workspace)


def test_a_recording_becomes_a_voice_with_its_report_and_consent(
    alice_api: Api, alice: User, alice_workspace: Workspace, recording: bytes
) -> None:
    response = alice_api.post(VOICES, form(recording, name="  说书人 "), headers={"Accept-Language": "zh-CN"})
    assert response.status_code == 201
    body = response.json()
    voice = Voice.objects.get(workspace=alice_workspace)
    assert response["Location"] == f"{VOICES}/{voice.pk}"
    assert body["id"] == str(voice.pk)
    assert (body["name"], body["kind"], body["language"]) == ("说书人", "clone", "en")
    assert (body["transcript"], body["duration_ms"]) == ("The quick brown fox.", 4000)
    quality = body["quality"]
    assert quality["verdict"] in ("pass", "warnings")
    assert quality["duration_s"] == pytest.approx(4.0, abs=0.01)
    assert quality["speech_s"] > 2.0
    assert quality["source_sample_rate_hz"] == 48_000
    assert {check["code"] for check in quality["checks"]} >= {"noisy", "clipped", "little_speech"}
    assert body["consent"]["statement_locale"] == "zh-hans"
    record = ConsentRecord.objects.get(voice_id=voice.pk)
    assert (record.user, record.workspace, record.address) == (alice, alice_workspace, "127.0.0.1")
    assert record.statement_text == current_statement("zh-hans").text
    clip = read_wav(storage.read(voice.clip_key))
    assert (clip.sample_rate_hz, clip.channel_count, clip.duration_ms) == (24_000, 1, 4000)
    assert voice.clip_key.startswith(f"workspaces/{alice_workspace.pk}/")


def test_what_is_left_out_may_be_left_out(alice_api: Api, recording: bytes) -> None:
    body = alice_api.post(VOICES, form(recording, language=None, transcript=None)).json()
    assert (body["language"], body["transcript"]) == ("", "")


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"consent": None}, "consent_required", "consent"),
        ({"consent": "perhaps"}, "invalid_input", "consent"),
        ({"consent": "false"}, "consent_required", "consent"),
        ({"file": None}, "invalid_input", "file"),
        ({"file": "not a file"}, "invalid_input", "file"),
        ({"name": None}, "invalid_input", "name"),
        ({"name": ""}, "name_invalid", "name"),
        ({"name": "\u200b"}, "name_invalid", "name"),
        ({"name": "abc\u202egnp.exe"}, "name_invalid", "name"),
        ({"name": "\u2066abc"}, "name_invalid", "name"),
        ({"name": "a\u2028b"}, "name_invalid", "name"),
        ({"name": "x" * 61}, "invalid_input", "name"),
        ({"name": "a\x00b"}, "invalid_input", "name"),
        ({"language": "klingon"}, "invalid_input", "language"),
        ({"transcript": "x" * 501}, "invalid_input", "transcript"),
        ({"transcript": "\x00"}, "invalid_input", "transcript"),
        ({"owner": "me"}, "invalid_input", "owner"),
    ],
)
def test_a_form_that_is_not_right_leaves_nothing_behind(
    changes: dict[str, Any],
    code: str,
    field: str,
    alice_api: Api,
    alice_workspace: Workspace,
    recording: bytes,
    settings: LazySettings,
) -> None:
    assert_problem(alice_api.post(VOICES, form(recording, **changes)), 400, code, field=field)
    assert nothing_stored(settings, alice_workspace)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "clip_empty"),
        (b"this is text", "clip_unreadable"),
        (clips.wav(clips.speech(2.9)), "clip_too_short"),
        (clips.wav(clips.noise(4.0, rms=0.0)), "clip_silent"),
    ],
)
def test_a_file_that_is_no_usable_recording_leaves_nothing_behind(
    content: bytes, code: str, alice_api: Api, alice_workspace: Workspace, settings: LazySettings
) -> None:
    assert_problem(alice_api.post(VOICES, form(content)), 400, code, field="file")
    assert nothing_stored(settings, alice_workspace)


def test_a_recording_that_is_too_poor_answers_with_its_report(
    alice_api: Api, alice_workspace: Workspace, settings: LazySettings
) -> None:
    poor = clips.speech(5.0) + clips.noise(5.0, rms=0.12)
    refused = alice_api.post(VOICES, form(clips.wav(poor)))
    body = assert_problem(refused, 400, "clip_quality_rejected", field="file")
    assert body["quality"]["verdict"] == "rejected"
    worst = [check for check in body["quality"]["checks"] if check["state"] == "rejected"]
    assert "noisy" in [check["code"] for check in worst]
    assert all(check["advice"] for check in worst)
    assert nothing_stored(settings, alice_workspace)


def test_a_file_just_over_the_limit_is_too_large(
    alice_api: Api, alice_workspace: Workspace, settings: LazySettings
) -> None:
    refused = alice_api.post(VOICES, form(bytes(MAX_UPLOAD_BYTES + 1)))
    assert_problem(refused, 413, "clip_too_large", field="file")
    assert nothing_stored(settings, alice_workspace)


def test_a_request_far_over_the_limit_is_refused_by_its_length_alone(alice_api: Api) -> None:
    """Of one that is not far over, the body is taken and dropped, so that its sender sees the answer."""
    refused = alice_api.generic(
        "POST", VOICES, b"only this much comes", MULTIPART_CONTENT, CONTENT_LENGTH=str(DISCARDED_BYTES + 1)
    )
    assert_problem(refused, 413, "request_too_large")


@pytest.mark.parametrize(
    ("content_type", "data", "status", "code"),
    [
        ("application/json", b"{}", 415, "unsupported_media_type"),
        ("multipart/form-data", b"--x", 400, "malformed_request"),
        ("multipart/form-data; boundary=" + "x" * 300, b"--x", 400, "malformed_request"),
        (MULTIPART_CONTENT, b"nonsense", 400, "invalid_input"),
        (
            MULTIPART_CONTENT,
            encode_multipart(BOUNDARY, {str(number): "x" for number in range(2000)}),
            400,
            "malformed_request",
        ),
        (
            MULTIPART_CONTENT,
            encode_multipart(BOUNDARY, {str(number): upload(b"x") for number in range(200)}),
            400,
            "malformed_request",
        ),
    ],
)
def test_a_body_that_is_no_such_form_is_refused(
    content_type: str, data: bytes, status: int, code: str, alice_api: Api
) -> None:
    assert_problem(alice_api.generic("POST", VOICES, data, content_type), status, code)


def test_a_workspace_keeps_so_many_voices(
    alice_api: Api, alices_voice: Voice, recording: bytes, settings: LazySettings
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOICES_PER_WORKSPACE": 1}
    assert_problem(alice_api.post(VOICES, form(recording)), 409, "too_many_voices")
    assert list(Voice.objects.filter(kind="clone")) == [alices_voice]


def test_voices_are_listed_with_presets_and_filtered(
    alice_api: Api, charlie_api: Api, alices_voice: Voice, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(4):
        listed = alice_api.get(VOICES).json()["results"]
    presets = Voice.objects.filter(kind="preset").count()
    assert len(listed) == presets + 1
    assert [row["id"] for row in alice_api.get(VOICES, {"kind": "clone"}).json()["results"]] == [
        str(alices_voice.pk)
    ]
    assert len(alice_api.get(VOICES, {"kind": "preset"}).json()["results"]) == presets
    assert str(alices_voice.pk) not in charlie_api.get(VOICES).content.decode()
    assert_problem(alice_api.get(VOICES, {"kind": "other"}), 400, "invalid_input", field="kind")


def test_presets_are_called_by_their_name_in_the_readers_language(alice_api: Api) -> None:
    preset = Voice.objects.get(preset_key="xiaohe")
    names = [
        alice_api.get(f"{VOICES}/{preset.pk}", headers={"Accept-Language": language}).json()["name"]
        for language in ("zh-CN", "en")
    ]
    assert names == ["小荷", "Xiaohe"]


def test_a_voice_is_renamed(alice_api: Api, alices_voice: Voice) -> None:
    response = alice_api.send("PATCH", f"{VOICES}/{alices_voice.pk}", {"name": " Erzähler "})
    assert (response.status_code, response.json()["name"]) == (200, "Erzähler")
    for body, code in [({}, "invalid_input"), ({"name": ""}, "name_invalid"), ({"name": 1}, "invalid_input")]:
        assert_problem(alice_api.send("PATCH", f"{VOICES}/{alices_voice.pk}", body), 400, code, field="name")
    assert_problem(
        alice_api.send("PATCH", f"{VOICES}/{alices_voice.pk}", {"name": "x", "language": "zh"}),
        400,
        "invalid_input",
    )
    alices_voice.refresh_from_db()
    assert (alices_voice.name, alices_voice.language) == ("Erzähler", "en")


def test_a_deleted_voice_is_gone_with_its_clip_and_its_jobs_stay(
    alice_api: Api,
    alice: User,
    alice_workspace: Workspace,
    alices_voice: Voice,
    django_capture_on_commit_callbacks: Any,
) -> None:
    job = make_job(alice_workspace, alice, alices_voice)
    with django_capture_on_commit_callbacks(execute=True):
        response = alice_api.send("DELETE", f"{VOICES}/{alices_voice.pk}")
    assert (response.status_code, response.content) == (204, b"")
    assert not storage.exists(alices_voice.clip_key)
    assert ConsentRecord.objects.filter(voice_id=alices_voice.pk).exists()
    for method, path in [("GET", ""), ("GET", "/audio"), ("DELETE", "")]:
        assert_problem(alice_api.send(method, f"{VOICES}/{alices_voice.pk}{path}"), 404, "voice_not_found")
    assert alice_api.get(f"/api/v1/jobs/{job.pk}").json()["voice"]["id"] == str(alices_voice.pk)


def test_preset_voices_are_nobodys_to_change(alice_api: Api) -> None:
    preset = Voice.objects.filter(kind="preset")[0]
    assert_problem(
        alice_api.send("PATCH", f"{VOICES}/{preset.pk}", {"name": "Mine"}), 403, "preset_voice_fixed"
    )
    assert_problem(alice_api.send("DELETE", f"{VOICES}/{preset.pk}"), 403, "preset_voice_fixed")
    before = preset.name
    preset.refresh_from_db()
    assert (preset.name, preset.state) == (before, "ready")


def test_the_clip_is_heard_whole_and_in_parts(alice_api: Api, alices_voice: Voice) -> None:
    clip = storage.read(alices_voice.clip_key)
    whole = alice_api.get(f"{VOICES}/{alices_voice.pk}/audio")
    assert (whole.status_code, whole["Content-Type"]) == (200, "audio/wav")
    assert b"".join(whole.streaming_content) == clip
    part = alice_api.get(f"{VOICES}/{alices_voice.pk}/audio", headers={"Range": "bytes=44-1043"})
    assert (part.status_code, part["Content-Range"]) == (206, f"bytes 44-1043/{len(clip)}")
    assert b"".join(part.streaming_content) == clip[44:1044]


def test_another_workspaces_voice_is_not_there(charlie_api: Api, alices_voice: Voice) -> None:
    for voice_id in (alices_voice.pk, uuid.uuid4()):
        for method, path, body in [
            ("GET", "", None),
            ("GET", "/audio", None),
            ("PATCH", "", {"name": "Mine"}),
            ("DELETE", "", None),
        ]:
            assert_problem(
                charlie_api.send(method, f"{VOICES}/{voice_id}{path}", body), 404, "voice_not_found"
            )
    before = alices_voice.name
    alices_voice.refresh_from_db()
    assert (alices_voice.name, alices_voice.state) == (before, "ready")
