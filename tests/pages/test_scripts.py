"""Scripts in the studio, with and without scripts in the browser; chapters and subtitles of a job."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from tests.billing.books import all_books
from tests.factories import finish_job, make_job, make_voice
from tests.pages.reading import HTMX, text_of
from tts.models import Segment, SynthesisJob, Voice
from tts.views.cards import voice_name

pytestmark = pytest.mark.django_db
SCRIPT = "# The box\nNarrator: It was dark.\nAlice: Who is there?\nBob: Me."


@pytest.fixture
def presets(alice: User) -> list[Voice]:
    return list(Voice.objects.filter(kind="preset").order_by("created_at"))


def fields(voice: Voice, **changes: Any) -> dict[str, Any]:
    return {
        "text": SCRIPT,
        "voice": str(voice.pk),
        "mode": "script",
        "job_class": "interactive",
        "speed": "1",
        "token": str(uuid.uuid4()),
        **changes,
    }


def cast_in(page: str) -> list[tuple[str, str]]:
    """The speakers of a page with the voices that are chosen for them."""
    pattern = r'name="speaker" value="([^"]*)".*?<option value="([^"]*)" selected'
    return re.findall(pattern, page, re.DOTALL)


def rows() -> tuple[int, int, object]:
    return SynthesisJob.objects.count(), Segment.objects.count(), all_books()


def test_the_price_brings_the_speakers_each_with_another_voice(
    alice_client: Client, presets: list[Voice]
) -> None:
    answer = alice_client.post(reverse("quote_page"), fields(presets[0]), headers=HTMX)
    page = answer.content.decode()
    cast = cast_in(page)
    assert [name for name, _ in cast] == ["Narrator", "Alice", "Bob"]
    assert cast[0][1] == str(presets[0].pk)
    assert len({voice_id for _, voice_id in cast}) == 3
    assert 'hx-swap-oob="true"' in page
    assert "Chapters 1" in text_of(answer)


def test_what_was_chosen_stays(alice_client: Client, presets: list[Voice], alices_voice: Voice) -> None:
    chosen = {"speaker": ["alice", "Bob"], "speaker_voice": [str(alices_voice.pk), str(presets[0].pk)]}
    page = alice_client.post(
        reverse("quote_page"), fields(presets[0], **chosen), headers=HTMX
    ).content.decode()
    assert dict(cast_in(page)) == {
        "Narrator": str(presets[0].pk),
        "Alice": str(alices_voice.pk),
        "Bob": str(presets[0].pk),
    }


def test_a_script_is_spoken_after_a_second_submit_without_scripts(
    alice_client: Client, presets: list[Voice]
) -> None:
    before = rows()
    first = alice_client.post(reverse("studio"), fields(presets[0]))
    page = first.content.decode()
    assert first.status_code == 400
    assert "No voice is chosen for Alice, Bob." in text_of(first)
    assert rows() == before
    cast = cast_in(page)
    names, voices = [name for name, _ in cast], [voice_id for _, voice_id in cast]
    second = alice_client.post(reverse("studio"), fields(presets[0], speaker=names, speaker_voice=voices))
    assert second.status_code == 302
    job = SynthesisJob.objects.get()
    assert (job.mode, job.cast) == ("script", dict(cast))
    again = alice_client.get(second["Location"]).content.decode()
    assert cast_in(again) == cast


def test_another_workspaces_voice_is_not_taken_for_a_speaker(
    alice_client: Client, presets: list[Voice], bob: User, bob_workspace: Workspace
) -> None:
    bobs = make_voice(bob_workspace, bob, name="Only Bob's")
    chosen = {"speaker": ["Alice", "Bob"], "speaker_voice": [str(bobs.pk), str(presets[1].pk)]}
    before = rows()
    refused = alice_client.post(reverse("studio"), fields(presets[0], **chosen))
    assert (refused.status_code, rows()) == (400, before)
    page = refused.content.decode()
    assert str(bobs.pk) not in page
    assert "Only Bob" not in page


def test_another_class_takes_more_characters(alice_client: Client, presets: list[Voice]) -> None:
    page = alice_client.get(reverse("studio")).content.decode()
    assert re.findall(r'data-text-limit="(\d+)"', page) == ["5000", "200000", "200000"]
    long = fields(presets[0], mode="plain", text="Hello there, my friend. " * 300)
    assert "Take Standard or Batch" in text_of(alice_client.post(reverse("quote_page"), long))
    taken = alice_client.post(reverse("quote_page"), {**long, "text": long["text"] * 4, "job_class": "batch"})
    assert "more segments" in text_of(taken)


def test_the_jobs_page_has_chapters_and_subtitles(
    alice: User, alice_workspace: Workspace, alice_client: Client, bob_client: Client, presets: list[Voice]
) -> None:
    job = make_job(alice_workspace, alice, presets[0], text="Before.\n# One\nText.\n# Two\nMore.")
    address = reverse("job_subtitles_page", args=[job.pk])
    page = alice_client.get(reverse("job", args=[job.pk])).content.decode()
    assert (address in page, "data-play-from" in page) == (False, False)
    assert alice_client.get(address).status_code == 409
    finish_job(job)
    page = alice_client.get(reverse("job", args=[job.pk])).content.decode()
    assert page.count("data-play-from") == 3 + 5
    # The player's clock counts the pauses too: its end is the last segment's.
    last_end = max(int(end) for end in re.findall(r'data-end-ms="(\d+)"', page))
    assert last_end > SynthesisJob.objects.get().audio_ms
    assert re.findall(r'data-duration-ms="(\d+)"', page) == [str(last_end)]
    assert f"{address}?format=srt" in page
    srt = alice_client.get(f"{address}?format=srt")
    assert srt.content.decode().startswith("1\n00:00:00,000 --> 00:00:01,000\nBefore.\n")
    assert srt["Content-Disposition"].startswith("attachment; filename=")
    chapters = alice_client.get(f"{address}?format=chapters&inline")
    assert chapters.content.decode().count("-->") == 3
    assert "Content-Disposition" not in chapters
    assert bob_client.get(address).status_code == 404


def test_the_jobs_page_says_who_speaks_what_with_which_voice(
    alice_client: Client, presets: list[Voice]
) -> None:
    cast = {"speaker": ["Alice", "Bob"], "speaker_voice": [str(presets[1].pk), str(presets[2].pk)]}
    assert alice_client.post(reverse("studio"), fields(presets[0], **cast)).status_code == 302
    page = alice_client.get(reverse("job", args=[SynthesisJob.objects.get().pk]))
    lines = re.findall(r'<span class="segment__speaker[^>]*>([^<]*)</span>([^<]*)<', page.content.decode())
    assert lines == [("Narrator", "It was dark."), ("Alice", "Who is there?"), ("Bob", "Me.")]
    names = [voice_name(voice) for voice in presets]
    assert f"Narrator {names[0]} Alice {names[1]} Bob {names[2]}" in text_of(page)
