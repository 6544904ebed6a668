"""The pages of voices without a browser: made, refused, renamed, deleted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.consent_statements import current_statement
from accounts.models import ConsentRecord, User, Workspace
from tests.audio.clips import speech, wav
from tests.pages.reading import HTMX, text_of
from tts import storage
from tts.models import SynthesisJob, Voice
from tts.selectors.voices import preset_voices
from tts.states import VoiceState

pytestmark = pytest.mark.django_db


def speech_upload() -> SimpleUploadedFile:
    return SimpleUploadedFile("recording.wav", wav(speech(6.0)), "audio/wav")


def test_a_voice_is_made_from_an_upload(
    alice: User, alice_client: Client, alice_workspace: Workspace
) -> None:
    response = alice_client.post(reverse("voice_new"), voice_fields(speech_upload()))
    voice = Voice.objects.get(workspace=alice_workspace)
    assert response["Location"] == f"/voices/{voice.pk}/?new=1"
    assert (voice.name, voice.language, voice.transcript) == ("My voice", "en", "A few words.")
    consent = ConsentRecord.objects.get(voice_id=voice.pk)
    assert (consent.user_id, consent.statement_locale, consent.clip_sha256) == (
        alice.pk,
        "zh-hans",
        voice.clip_sha256,
    )
    page = text_of(alice_client.get(response["Location"]))
    assert "The voice is saved." in page
    assert consent.statement_text in page
    assert "Background noise" in page


def voice_fields(upload: Any, **changes: Any) -> dict[str, Any]:
    fields = {
        "clip": upload,
        "name": "My voice",
        "language": "en",
        "transcript": "A few words.",
        "consent": "on",
        "statement_locale": "zh-hans",
    }
    return {**fields, **changes}


def test_htmx_is_sent_to_the_new_voice_as_a_whole_page(alice_client: Client) -> None:
    response = alice_client.post(reverse("voice_new"), voice_fields(speech_upload()), headers=HTMX)
    assert response.status_code == 204
    assert response["HX-Redirect"] == f"/voices/{Voice.objects.get(kind='clone').pk}/?new=1"


def test_the_form_says_who_may_use_the_voice(alice_client: Client, alice_workspace: Workspace) -> None:
    page = alice_client.get(reverse("voice_new")).content.decode()
    assert re.search(r'name="shared" value="true"\s+checked', page)
    for given, shared in (({}, True), ({"shared": "true"}, True), ({"shared": "false"}, False)):
        response = alice_client.post(reverse("voice_new"), voice_fields(speech_upload(), **given))
        voice = Voice.objects.filter(workspace=alice_workspace).latest("created_at")
        assert response["Location"] == f"/voices/{voice.pk}/?new=1"
        assert voice.shared == shared
    before = Voice.objects.count()
    refused = alice_client.post(reverse("voice_new"), voice_fields(speech_upload(), shared="all"))
    assert refused.status_code == 400
    assert Voice.objects.count() == before


def test_the_statement_is_shown_as_it_is_recorded(alice_client: Client) -> None:
    for language in ("en", "zh-hans"):
        page = alice_client.get(reverse("voice_new"), headers={"Accept-Language": language})
        statement = current_statement(language)
        assert statement.text in text_of(page)
        assert f'name="statement_locale" value="{statement.locale}"' in page.content.decode()


def test_without_consent_nothing_is_kept(alice_client: Client) -> None:
    fields = voice_fields(speech_upload())
    del fields["consent"]
    response = alice_client.post(reverse("voice_new"), fields)
    assert response.status_code == 400
    assert "only with the consent" in text_of(response)
    assert 'value="My voice"' in response.content.decode()
    assert not Voice.objects.filter(kind="clone").exists()


def test_a_file_that_is_no_audio_is_refused_with_what_to_do(alice_client: Client) -> None:
    upload = SimpleUploadedFile("voice.wav", b"this is no sound at all" * 100, "audio/wav")
    response = alice_client.post(reverse("voice_new"), voice_fields(upload), headers=HTMX)
    assert response.status_code == 400
    assert response["X-Part"] == "findings"
    assert "damaged or is not audio" in text_of(response)
    assert not Voice.objects.filter(kind="clone").exists()
    assert not ConsentRecord.objects.exists()


def test_a_refused_file_is_told_at_the_field_that_it_was_sent_in(alice_client: Client) -> None:
    upload = SimpleUploadedFile("voice.wav", b"this is no sound at all" * 100, "audio/wav")
    response = alice_client.post(reverse("voice_new"), voice_fields(upload))
    assert response.status_code == 400
    html = response.content.decode()
    field = re.search(r'<input type="file" name="clip"[^>]*>', html)
    assert field is not None
    assert 'aria-invalid="true"' in field[0]
    said = re.search(r'<div id="id_clip-error">(.*?)</div>', html, re.DOTALL)
    assert said is not None
    assert "damaged or is not audio" in said[1]
    assert 'aria-describedby="id_clip-error"' in field[0]
    assert not Voice.objects.filter(kind="clone").exists()


def test_rename_and_its_refusal(alice_client: Client, alices_voice: Voice) -> None:
    url = reverse("voice_rename", args=[alices_voice.pk])
    assert alice_client.post(url, {"name": "  Narrator "}).status_code == 302
    alices_voice.refresh_from_db()
    assert alices_voice.name == "Narrator"
    for bad in ("", "x" * 61, "\u200b"):
        assert alice_client.post(url, {"name": bad}).status_code == 400
    alices_voice.refresh_from_db()
    assert alices_voice.name == "Narrator"


def test_deleting_a_voice_takes_its_clip_and_keeps_jobs_and_consent(
    alice_client: Client,
    alices_voice: Voice,
    alices_job: SynthesisJob,
    django_capture_on_commit_callbacks: Any,
) -> None:
    key = alices_voice.clip_key
    page = text_of(alice_client.get(reverse("voice", args=[alices_voice.pk])))
    assert "Delete “Alice&#x27;s voice”?" in page
    assert "1 job used it" in page
    with django_capture_on_commit_callbacks(execute=True):
        alice_client.post(reverse("voice_delete", args=[alices_voice.pk]))
    assert not storage.exists(key)
    assert ConsentRecord.objects.filter(voice_id=alices_voice.pk).exists()
    assert "Alice&#x27;s voice (deleted)" in text_of(alice_client.get(reverse("job", args=[alices_job.pk])))
    assert alice_client.get(reverse("voice", args=[alices_voice.pk])).status_code == 404


def test_presets_can_be_looked_at_but_not_changed(alice_client: Client) -> None:
    preset = preset_voices().first()
    assert preset is not None
    page = alice_client.get(reverse("voice", args=[preset.pk]))
    assert page.status_code == 200
    assert "delete-voice" not in page.content.decode()
    for name in ("voice_rename", "voice_delete"):
        assert alice_client.post(reverse(name, args=[preset.pk]), {"name": "Mine"}).status_code == 403
    preset.refresh_from_db()
    assert (preset.name, preset.state) == ("Xiaohe", VoiceState.READY)
