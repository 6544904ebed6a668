"""The report on the New voice page before anything is saved."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import ConsentRecord
from tests.audio.clips import noise, speech, wav
from tests.pages.reading import text_of
from tts.models import Voice

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _patience(settings: LazySettings) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOICE_CHECKS_PER_MINUTE": 1000}


def clip(content: bytes) -> dict[str, Any]:
    return {"clip": SimpleUploadedFile("secret-name.wav", content, "audio/wav")}


def test_a_recording_is_answered_with_the_checklist_alone(alice_client: Client) -> None:
    answer = alice_client.post(reverse("voice_check"), clip(wav(speech(6.0))))
    assert (answer.status_code, answer["X-Part"]) == (200, "check")
    page = answer.content.decode()
    assert "<html" not in page
    assert page.count('class="report__item ') == 9
    assert "secret-name" not in page
    assert not Voice.objects.filter(kind="clone").exists()
    assert not ConsentRecord.objects.exists()


def test_what_to_do_better_is_said_in_the_readers_language(alice_client: Client) -> None:
    poor = clip(wav(speech(5.0) + noise(5.0, rms=0.12)))
    page = text_of(alice_client.post(reverse("voice_check"), poor))
    assert "This recording cannot be used. Please record again." in page
    assert "Record in a quiet room without music" in page
    poor["clip"].seek(0)
    chinese = alice_client.post(reverse("voice_check"), poor, headers={"Accept-Language": "zh-CN"})
    assert "这段录音无法使用，请重新录制。" in text_of(chinese)


def test_a_file_that_is_not_read_says_why(alice_client: Client) -> None:
    answer = alice_client.post(reverse("voice_check"), clip(b"this is no sound at all"))
    assert (answer.status_code, answer["X-Part"]) == (400, "check")
    assert "damaged or is not audio" in text_of(answer)
    assert "Nothing was kept." in text_of(answer)
    missing = alice_client.post(reverse("voice_check"), {})
    assert (missing.status_code, "The file is empty" in text_of(missing)) == (400, True)


def test_only_somebody_who_is_signed_in_has_a_recording_checked(alice_client: Client) -> None:
    assert Client().post(reverse("voice_check"), clip(wav(speech(6.0)))).status_code == 302
    assert alice_client.get(reverse("voice_check")).status_code == 405


def test_the_page_says_where_the_report_comes_from(alice_client: Client) -> None:
    page = alice_client.get(reverse("voice_new")).content.decode()
    assert f'data-voice-check="{reverse("voice_check")}" data-file-field="id_clip"' in page
