"""What the studio tells of a text: what will be spoken, and where it is wrong."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import reverse

from tests.pages.reading import HTMX
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db


def answer(client: Client, voice: Voice, text: str, language: str = "en") -> str:
    fields = {
        "text": text,
        "voice": str(voice.pk),
        "job_class": "interactive",
        "speed": "1",
        "token": uuid.uuid4(),
    }
    response = client.post(reverse("quote_page"), fields, headers={**HTMX, "Accept-Language": language})
    assert response.status_code == 200
    return response.content.decode()


def test_the_spoken_text_stands_beside_the_price(alice_client: Client, alices_voice: Voice) -> None:
    page = answer(alice_client, alices_voice, "It rose 12.5%.")
    assert '<div class="small spoken">It rose twelve point five percent.</div>' in page
    assert "What will be spoken" in page
    assert "What will be spoken" not in answer(alice_client, alices_voice, "It rose a little.")


def test_mistakes_are_marked_where_they_stand(alice_client: Client, alices_voice: Voice) -> None:
    page = answer(alice_client, alices_voice, "她[hoa4]奇，[laugher]。")
    assert "<mark>[hoa4]</mark>" in page
    assert "<mark>[laugher]</mark>" in page
    assert "<code>[laughter]</code>" in page
    escaped = answer(alice_client, alices_voice, "<strong>x")
    assert "<mark>&lt;strong&gt;</mark>" in escaped
    # What is missing is said once, with its place; an arrow would put it where the other tag is.
    assert "this tag is not closed; write &lt;/strong&gt; behind the words" in escaped
    assert "<code>" not in escaped
    assert not SynthesisJob.objects.exists()
