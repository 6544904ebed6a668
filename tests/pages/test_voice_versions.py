"""A voice's recordings on its page: replaced, played, used again, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from tests.audio.clips import noise, speech, wav
from tests.factories import make_job, make_voice
from tests.pages.reading import HTMX, text_of
from tests.pages.test_tts_voice_pages import speech_upload, voice_fields
from tests.pool.voice_recordings import everything, upload
from tts import storage
from tts.models import Voice
from tts.selectors.voices import preset_voices

pytestmark = pytest.mark.django_db


def fields(**changes: Any) -> dict[str, Any]:
    wanted = voice_fields(changes.pop("clip", None) or speech_upload(), **changes)
    return {name: value for name, value in wanted.items() if name != "name"}


def address(name: str, voice: Voice, *arguments: int) -> str:
    return reverse(name, args=[voice.pk, *arguments])


def test_a_recording_is_replaced_heard_used_again_and_deleted(
    alice: User,
    alice_client: Client,
    alices_voice: Voice,
    django_capture_on_commit_callbacks: Any,
) -> None:
    page = text_of(alice_client.get(address("voice", alices_voice)))
    assert "Version 1" in page
    assert "no, by a tick" in page
    form = alice_client.get(address("voice_replace", alices_voice))
    assert "Replace the recording of" in text_of(form)
    assert 'name="name"' not in form.content.decode()
    answer = alice_client.post(address("voice_replace", alices_voice), fields(consent_clip=speech_upload()))
    assert answer["Location"] == address("voice", alices_voice)
    page = text_of(alice_client.get(answer["Location"]))
    for words in (
        "has its new recording",
        "Version 1",
        "Version 2",
        "A few words.",
        alice.email,
        "yes, in a recording",
    ):
        assert words in page, words
    current = Voice.objects.get(pk=alices_voice.pk)
    assert (current.version, current.clip_key != alices_voice.clip_key) == (2, True)
    heard: Any = alice_client.get(address("voice_version_audio", alices_voice, 1))
    assert b"".join(heard.streaming_content) == storage.read(alices_voice.clip_key)

    alice_client.post(address("voice_version_use", alices_voice, 1))
    assert Voice.objects.get(pk=alices_voice.pk).clip_key == alices_voice.clip_key
    page = text_of(alice_client.get(address("voice", alices_voice)))
    assert "Delete version 2 of" in page
    with django_capture_on_commit_callbacks(execute=True):
        answer = alice_client.post(address("voice_version_delete", alices_voice, 2), follow=True)
    assert "Version 2 and its recording are deleted." in text_of(answer)
    assert not storage.exists(current.clip_key)
    assert list(alices_voice.versions.values_list("number", flat=True)) == [1]


def test_what_is_refused_is_said_in_the_form_and_changes_nothing(
    alice_client: Client, alices_voice: Voice
) -> None:
    before, path = everything(), address("voice_replace", alices_voice)
    poor = upload(wav(noise(4.0, rms=0.1)))
    for changes in (
        {"consent": ""},
        {"clip": poor},
        {"clip": upload(b"words")},
        {"consent_clip": upload(b"words")},
    ):
        answer = alice_client.post(path, fields(**changes))
        assert answer.status_code == 400, changes
        assert "A few words." in answer.content.decode()
    part = alice_client.post(path, fields(clip=upload(b"words")), headers=HTMX)
    assert (part.status_code, part["X-Part"]) == (400, "findings")
    assert everything() == before
    assert alice_client.post(path, fields(), headers=HTMX)["HX-Redirect"] == address("voice", alices_voice)


def test_a_version_in_use_or_needed_stays_and_the_page_says_why(
    alice: User, alice_workspace: Workspace, alice_client: Client, alices_voice: Voice
) -> None:
    make_job(alice_workspace, alice, alices_voice)
    alice_client.post(address("voice_replace", alices_voice), fields(clip=upload(wav(speech(4.0)))))
    before = everything()
    for number, words in ((1, "Jobs that are not done yet"), (2, "The voice speaks with this version.")):
        answer = alice_client.post(address("voice_version_delete", alices_voice, number), follow=True)
        assert words in text_of(answer)
    assert everything() == before


def test_nobody_else_finds_them_and_a_preset_has_none(
    alices_voice: Voice, charlie_client: Client, bob: User, team: Workspace, alice_client: Client
) -> None:
    private = make_voice(team, bob)
    Voice.objects.filter(pk=private.pk).update(shared=False)
    alice_client.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
    before = everything()
    for client, voice, status in (
        (charlie_client, alices_voice, 404),
        (alice_client, private, 404),
        (alice_client, preset_voices()[0], 403),
    ):
        for method, path, data in (
            ("get", address("voice_replace", voice), {}),
            ("post", address("voice_replace", voice), fields()),
            ("post", address("voice_version_use", voice, 1), {}),
            ("post", address("voice_version_delete", voice, 1), {}),
            ("get", address("voice_version_audio", voice, 1), {}),
        ):
            assert getattr(client, method)(path, data).status_code == status, path
    assert everything() == before
    page = text_of(alice_client.get(address("voice", private)))
    assert "Another member keeps this voice private." in page
    assert "Replace the recording" not in page
