"""A recording of the spoken consent: asked for by the operator, kept beside the clip, gone with the voice."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.consent_statements import SPOKEN_SENTENCES, STATEMENTS
from accounts.models import ConsentRecord, Workspace
from tests.api.problems import assert_problem
from tests.api.test_voices import VOICES, form, nothing_stored, upload
from tests.audio import clips
from tests.cast import Api
from tests.pages.reading import HTMX, text_of
from tts import storage
from tts.models import Voice


@pytest.fixture(scope="module")
def recording() -> bytes:
    return clips.wav(clips.speech(4.0))


@pytest.fixture(scope="module")
def spoken() -> bytes:
    return clips.wav(clips.speech(5.0))


@pytest.fixture
def asked(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "SPOKEN_CONSENT": True}


def consent_key(workspace: Workspace, voice: Voice) -> str:
    return f"workspaces/{workspace.pk}/voices/{voice.pk}/consent.wav"


@pytest.mark.usefixtures("asked")
def test_it_is_kept_beside_the_clip_with_its_fingerprint_and_goes_with_the_voice(
    alice_api: Api,
    charlie_api: Api,
    alice_workspace: Workspace,
    recording: bytes,
    spoken: bytes,
    django_capture_on_commit_callbacks: Any,
) -> None:
    made = alice_api.post(VOICES, form(recording, consent_file=upload(spoken, "consent.wav")))
    assert made.status_code == 201
    voice = Voice.objects.get(workspace=alice_workspace)
    kept = storage.read(consent_key(alice_workspace, voice))
    record = ConsentRecord.objects.get(voice_id=voice.pk)
    assert record.spoken_sha256 == hashlib.sha256(kept).hexdigest()
    assert record.clip_sha256 == voice.clip_sha256 != record.spoken_sha256
    assert_problem(charlie_api.send("DELETE", f"{VOICES}/{voice.pk}"), 404, "voice_not_found")
    assert storage.exists(consent_key(alice_workspace, voice))
    with django_capture_on_commit_callbacks(execute=True):
        assert alice_api.send("DELETE", f"{VOICES}/{voice.pk}").status_code == 204
    assert not storage.exists(consent_key(alice_workspace, voice))
    assert ConsentRecord.objects.get(voice_id=voice.pk).spoken_sha256 == record.spoken_sha256


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "spoken_consent_missing"),
        (b"", "spoken_consent_unusable"),
        (b"this is text", "spoken_consent_unusable"),
        (clips.wav(clips.noise(4.0, rms=0.0)), "spoken_consent_unusable"),
    ],
)
def test_without_it_no_voice_is_made_and_nothing_is_kept(
    content: bytes | None,
    code: str,
    alice_api: Api,
    alice_workspace: Workspace,
    recording: bytes,
    settings: LazySettings,
) -> None:
    sent = form(recording, consent_file=None if content is None else upload(content))
    assert_problem(alice_api.post(VOICES, sent), 400, code, field="consent_file")
    assert nothing_stored(settings, alice_workspace)


def test_where_nobody_asks_a_voice_is_made_without_it(
    alice_api: Api, alice_workspace: Workspace, alice_client: Client, recording: bytes
) -> None:
    assert alice_api.post(VOICES, form(recording)).status_code == 201
    voice = Voice.objects.get(workspace=alice_workspace)
    assert ConsentRecord.objects.get(voice_id=voice.pk).spoken_sha256 == ""
    assert not storage.exists(consent_key(alice_workspace, voice))
    assert "consent_clip" not in alice_client.get(reverse("voice_new")).content.decode()


def page_fields(recording: bytes, spoken: bytes | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "clip": SimpleUploadedFile("recording.wav", recording),
        "name": "My voice",
        "consent": "on",
        "statement_locale": "en",
    }
    if spoken is not None:
        fields["consent_clip"] = SimpleUploadedFile("consent.wav", spoken)
    return fields


@pytest.mark.usefixtures("asked")
def test_the_page_asks_for_it_with_the_sentence_to_read(
    alice_client: Client,
    alice_workspace: Workspace,
    recording: bytes,
    spoken: bytes,
    settings: LazySettings,
) -> None:
    for language in ("en", "zh-hans"):
        page = text_of(alice_client.get(reverse("voice_new"), headers={"Accept-Language": language}))
        assert SPOKEN_SENTENCES["1"][language] in page
    refused = alice_client.post(reverse("voice_new"), page_fields(recording, None), headers=HTMX)
    assert refused.status_code == 400
    assert "Record the sentence, or choose a file." in text_of(refused)
    assert nothing_stored(settings, alice_workspace)
    made = alice_client.post(reverse("voice_new"), page_fields(recording, spoken))
    voice = Voice.objects.get(workspace=alice_workspace)
    assert made["Location"] == f"/voices/{voice.pk}/?new=1"
    assert storage.exists(consent_key(alice_workspace, voice))


def test_every_wording_has_its_sentence_in_the_same_languages() -> None:
    assert {version: set(texts) for version, texts in SPOKEN_SENTENCES.items()} == {
        version: set(texts) for version, texts in STATEMENTS.items()
    }
