"""The pages of speech without a browser: what they show, change and refuse."""

from __future__ import annotations

import html
import json
import re
import shlex
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User, Workspace
from billing.models import CreditAccount
from billing.selectors.balances import balance_of
from tests.factories import finish_job, make_job, make_voice, personal_workspace
from tests.pages.reading import HTMX, text_of
from tts import storage
from tts.models import SynthesisJob, Voice
from tts.selectors.voices import preset_voices
from tts.states import JobState, VoiceState
from tts.views.cards import text_start

pytestmark = pytest.mark.django_db


def studio_fields(voice: Voice, **changes: Any) -> dict[str, Any]:
    fields = {
        "text": "Hello, this is a test.",
        "voice": str(voice.pk),
        "job_class": "interactive",
        "speed": "1",
    }
    return {**fields, "token": str(uuid.uuid4()), **changes}


@pytest.mark.parametrize("name", ["studio", "voices", "voice_new", "history"])
def test_visitors_are_asked_to_sign_in(client: Client, name: str) -> None:
    response = client.get(reverse(name))
    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))


@pytest.mark.parametrize("name", ["studio", "voices", "voice_new", "history"])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_pages_hold_nothing_inline(
    alice_client: Client, alices_job: SynthesisJob, name: str, language: str
) -> None:
    finish_job(alices_job)
    page = alice_client.get(reverse(name), headers={"Accept-Language": language}).content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert not re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page)


def test_a_form_sent_twice_makes_one_job(alice: User, alice_client: Client, alices_voice: Voice) -> None:
    fields = studio_fields(alices_voice)
    first = alice_client.post(reverse("studio"), fields)
    second = alice_client.post(reverse("studio"), fields)
    job = SynthesisJob.objects.get()
    assert first["Location"] == second["Location"] == f"/studio/?job={job.pk}#job"
    assert (job.created_by_id, job.text, job.state) == (alice.pk, "Hello, this is a test.", JobState.QUEUED)
    held = balance_of(personal_workspace(alice).pk).held_micros
    assert held == job.held_micros > 0


def test_the_same_form_with_another_text_is_another_job(alice_client: Client, alices_voice: Voice) -> None:
    fields = studio_fields(alices_voice)
    alice_client.post(reverse("studio"), fields)
    alice_client.post(reverse("studio"), {**fields, "text": "Something else."})
    assert set(SynthesisJob.objects.values_list("text", flat=True)) == {
        "Hello, this is a test.",
        "Something else.",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Write the text"),
        ("   \n", "There is no text"),
        ("!!! …", "no letters and no digits"),
        ("x" * 5001, "5,001 characters; 5,000 are allowed"),
    ],
    ids=["empty", "spaces", "punctuation", "too-long"],
)
def test_a_bad_text_is_refused_beside_the_form(
    alice: User, alice_client: Client, alices_voice: Voice, text: str, words: str
) -> None:
    before = balance_of(personal_workspace(alice).pk)
    response = alice_client.post(reverse("studio"), studio_fields(alices_voice, text=text))
    assert response.status_code == 400
    page = response.content.decode()
    assert re.search(words, text_of(response))
    assert f'value="{alices_voice.pk}" checked' in page
    if text.strip():
        assert text in page
    assert SynthesisJob.objects.count() == 0
    assert balance_of(personal_workspace(alice).pk) == before


def test_without_enough_credit_nothing_is_stored_and_the_text_is_kept(
    alice: User, alice_client: Client, alices_voice: Voice
) -> None:
    CreditAccount.objects.filter(workspace_id=personal_workspace(alice).pk).update(available_micros=0)
    response = alice_client.post(reverse("studio"), studio_fields(alices_voice))
    assert response.status_code == 402
    assert "Nothing was spoken and nothing was charged." in text_of(response)
    assert "Hello, this is a test.</textarea>" in response.content.decode()
    assert SynthesisJob.objects.count() == 0


def test_another_workspaces_voice_cannot_be_used(charlie_client: Client, alices_voice: Voice) -> None:
    response = charlie_client.post(reverse("studio"), studio_fields(alices_voice))
    assert response.status_code == 404
    assert "Alice" not in text_of(response)
    assert SynthesisJob.objects.count() == 0


def test_quote_tells_the_price_and_stores_nothing(alice_client: Client, alices_voice: Voice) -> None:
    long_text = "This is a sentence of some length that is said again. " * 12
    response = alice_client.post(
        reverse("quote_page"), studio_fields(alices_voice, text=long_text), headers=HTMX
    )
    assert response.status_code == 200
    page = text_of(response)
    assert re.search(r"Characters 6[34]\d", page)
    assert re.search(r"Segments [2-9]", page)
    assert "Price ≈ CN¥" in page
    assert "/api/v1/jobs" in page
    assert SynthesisJob.objects.count() == 0


def test_the_curl_command_is_safe_for_a_shell(alice_client: Client, alices_voice: Voice) -> None:
    text = 'It\'s $(reboot) `x` "quoted" 你好'
    response = alice_client.post(reverse("quote_page"), studio_fields(alices_voice, text=text), headers=HTMX)
    shown = re.search(r"<code>(curl .*?)</code>", response.content.decode(), re.DOTALL)
    assert shown
    words = shlex.split(html.unescape(shown[1]).replace("\\\n", ""))
    body = json.loads(words[words.index("--data") + 1])
    assert body == {"voice_id": str(alices_voice.pk), "text": text, "job_class": "interactive"}


def test_price_without_scripts_submits_nothing(alice_client: Client, alices_voice: Voice) -> None:
    response = alice_client.post(reverse("studio"), studio_fields(alices_voice, show_price="1"))
    assert response.status_code == 200
    assert "Price ≈" in text_of(response)
    assert "Hello, this is a test.</textarea>" in response.content.decode()
    assert SynthesisJob.objects.count() == 0


def test_studio_shows_the_live_job_again_after_leaving(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    page = alice_client.get(reverse("studio")).content.decode()
    assert f'data-events-url="/jobs/{alices_job.pk}/events"' in page
    assert alices_job.text in page


def test_a_job_that_is_not_there_is_404_in_the_studio(alice_client: Client) -> None:
    for wanted in (str(uuid.uuid4()), "nonsense"):
        assert alice_client.get(reverse("studio"), {"job": wanted}).status_code == 404


def test_say_it_again_is_a_new_job_with_another_seed(alice_client: Client, alices_job: SynthesisJob) -> None:
    finish_job(alices_job)
    fields = {"token": str(uuid.uuid4())}
    first = alice_client.post(reverse("job_repeat", args=[alices_job.pk]), fields)
    second = alice_client.post(reverse("job_repeat", args=[alices_job.pk]), fields)
    assert first["Location"] == second["Location"]
    again = SynthesisJob.objects.exclude(pk=alices_job.pk).get()
    assert (again.text, again.voice_id) == (alices_job.text, alices_job.voice_id)
    assert again.seed != alices_job.seed


def test_a_waiting_job_is_canceled(alice: User, alice_client: Client, alices_job: SynthesisJob) -> None:
    response = alice_client.post(
        reverse("job_cancel", args=[alices_job.pk]), {"next": "https://evil.example/"}
    )
    assert response["Location"] == f"/jobs/{alices_job.pk}/"
    alices_job.refresh_from_db()
    assert alices_job.state == JobState.CANCELED
    assert balance_of(personal_workspace(alice).pk).held_micros == 0


def test_canceling_a_job_that_ended_says_so_and_changes_nothing(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job)
    response = alice_client.post(reverse("job_cancel", args=[alices_job.pk]), follow=True)
    assert "had ended before" in text_of(response)
    alices_job.refresh_from_db()
    assert alices_job.state == JobState.SUCCEEDED


def test_deleting_a_job_takes_text_and_audio_and_keeps_the_row(
    alice_client: Client, alices_job: SynthesisJob, django_capture_on_commit_callbacks: Any
) -> None:
    finish_job(alices_job)
    key = alices_job.audio_key
    with django_capture_on_commit_callbacks(execute=True):
        response = alice_client.post(
            reverse("job_delete", args=[alices_job.pk]), {"next": "/history/?state=succeeded"}
        )
    assert response["Location"] == "/history/?state=succeeded"
    alices_job.refresh_from_db()
    assert alices_job.text == ""
    assert alices_job.deleted_at is not None
    assert not storage.exists(key)
    assert alice_client.get(reverse("job", args=[alices_job.pk])).status_code == 404


def test_job_page_shows_receipt_attempts_and_segments(alice_client: Client, alices_job: SynthesisJob) -> None:
    finish_job(alices_job)
    response = alice_client.get(reverse("job", args=[alices_job.pk]))
    page, shown = response.content.decode(), text_of(response)
    assert "What only Alice may read." in shown
    assert "cpu:0@test" in shown
    assert "100 ms" in shown
    assert "CN¥0.00005" in shown  # 50 micros
    assert 'data-start-ms="0" data-end-ms="1000"' in page
    assert f'src="/jobs/{alices_job.pk}/audio"' in page


def test_the_headlines_length_and_the_players_are_told_apart(
    alice: User,
    alice_client: Client,
    alice_workspace: Workspace,
    alices_voice: Voice,
    alices_job: SynthesisJob,
) -> None:
    finish_job(alices_job)
    one_segment = alice_client.get(reverse("job", args=[alices_job.pk]))
    assert "1.0 s of speech" in text_of(one_segment)
    assert "pauses" not in text_of(one_segment)
    job = make_job(alice_workspace, alice, alices_voice, text="Before.\n# One\nText.\n# Two\nMore.")
    finish_job(job)
    spoken_ms = sum(job.segments.values_list("audio_ms", flat=True))
    SynthesisJob.objects.filter(pk=job.pk).update(audio_ms=spoken_ms)
    page = alice_client.get(reverse("job", args=[job.pk]))
    shown = text_of(page)
    assert f"{spoken_ms / 1000:.1f} s of speech" in shown
    # What the player counts to, of which the pauses are no speech and are not paid.
    player_ms = int(re.findall(r'data-player-time data-duration-ms="(\d+)"', page.content.decode())[0])
    assert player_ms > spoken_ms + 1500
    assert f"With the pauses between its segments the recording lasts {player_ms / 1000:.1f} s." in shown


def test_the_live_part_alone_has_no_frame(alice_client: Client, alices_job: SynthesisJob) -> None:
    for part in ("studio", "job"):
        page = alice_client.get(reverse("job", args=[alices_job.pk]), {"part": part}).content.decode()
        assert "<html" not in page
        assert 'data-live-state="queued"' in page


def test_history_finds_words_and_filters(alice: User, alice_client: Client, alices_voice: Voice) -> None:
    workspace = personal_workspace(alice)
    preset = preset_voices().first()
    assert preset is not None
    make_job(workspace, alice, alices_voice, text="Apples are red.")
    finish_job(make_job(workspace, alice, preset, text="Bananas are yellow."))
    url = reverse("history")
    assert "Apples" in text_of(alice_client.get(url, {"q": "apples"}))
    assert "Bananas" not in text_of(alice_client.get(url, {"q": "apples"}))
    assert "Apples" not in text_of(alice_client.get(url, {"state": "succeeded"}))
    assert "Bananas" not in text_of(alice_client.get(url, {"voice": str(alices_voice.pk)}))
    assert "Nothing matches" in text_of(alice_client.get(url, {"q": "cherries"}))
    # Values that mean nothing filter nothing.
    odd = text_of(alice_client.get(url, {"state": "nonsense", "voice": "x", "page": "zero"}))
    assert "Apples" in odd
    assert "Bananas" in odd


def test_history_has_pages(alice: User, alice_client: Client, alices_voice: Voice, settings: Any) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "QUEUED_JOBS_PER_WORKSPACE": 100}
    for number in range(21):
        make_job(personal_workspace(alice), alice, alices_voice, text=f"Text number {number}.")
    first, second = (text_of(alice_client.get(reverse("history"), {"page": page})) for page in (1, 2))
    assert "1 to 20 of 21" in first
    assert "Text number 0." not in first
    assert "Text number 0." in second


def test_history_is_empty_for_a_newcomer(charlie_client: Client, alices_job: SynthesisJob) -> None:
    page = text_of(charlie_client.get(reverse("history")))
    assert "Nothing was spoken yet" in page
    assert "What only Alice may read." not in page


def foreign_addresses(job: SynthesisJob, voice: Voice) -> list[tuple[str, str]]:
    jobs = [("get", name) for name in ("job", "job_audio_page", "job_events_page", "job_stream_page")]
    jobs += [("post", name) for name in ("job_repeat", "job_cancel", "job_delete")]
    voices = [("get", "voice"), ("get", "voice_audio"), ("post", "voice_rename"), ("post", "voice_delete")]
    return [(method, reverse(name, args=[job.pk])) for method, name in jobs] + [
        (method, reverse(name, args=[voice.pk])) for method, name in voices
    ]


def test_foreign_ids_are_404_like_missing_ones_and_change_nothing(
    alices_job: SynthesisJob, alices_voice: Voice, charlie_client: Client
) -> None:
    finish_job(alices_job)
    fields = {"token": str(uuid.uuid4()), "name": "Mine now"}
    for method, url in foreign_addresses(alices_job, alices_voice):
        missing = re.sub(r"[0-9a-f-]{36}", str(uuid.uuid4()), url)
        answers = [
            getattr(charlie_client, method)(address, fields if method == "post" else None)
            for address in (url, missing)
        ]
        assert [answer.status_code for answer in answers] == [404, 404], url
        assert "Alice" not in text_of(answers[0])
    assert alice_rows(alices_job, alices_voice) == (
        JobState.SUCCEEDED,
        None,
        "Alice's voice",
        VoiceState.READY,
    )
    assert SynthesisJob.objects.count() == 1


def alice_rows(job: SynthesisJob, voice: Voice) -> tuple[Any, ...]:
    job.refresh_from_db()
    voice.refresh_from_db()
    return (job.state, job.deleted_at, voice.name, voice.state)


def test_names_are_escaped_everywhere(alice: User, alice_client: Client, alice_workspace: Workspace) -> None:
    nasty = '<img src=x onerror="alert(1)">'
    voice = make_voice(alice_workspace, alice, name=nasty)
    job = make_job(alice_workspace, alice, voice, text=nasty + " said aloud.")
    finish_job(job)
    addresses = [reverse(name) for name in ("studio", "voices", "history")]
    addresses += [reverse("voice", args=[voice.pk]), reverse("job", args=[job.pk]), f"/studio/?job={job.pk}"]
    for address in addresses:
        page = alice_client.get(address).content.decode()
        assert "<img" not in page, address
        assert "&lt;img" in page, address


def test_an_ended_job_brings_the_new_balance_along(alice_client: Client, alices_job: SynthesisJob) -> None:
    url = reverse("job", args=[alices_job.pk])
    assert "hx-swap-oob" not in alice_client.get(url, {"part": "studio"}, headers=HTMX).content.decode()
    finish_job(alices_job)
    for part in ("studio", "job"):
        page = alice_client.get(url, {"part": part}, headers=HTMX).content.decode()
        assert '<div hx-swap-oob="innerHTML:.balance">' in page
        assert "CN¥" in page


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("  Short\n\ttext. ", "Short text."),
        ("a" * 91, "a" * 90 + "…"),
        ("好" * 90, "好" * 45 + "…"),
        ("", ""),
    ],
)
def test_the_start_of_a_text_has_one_width(text: str, start: str) -> None:
    assert text_start(text) == start
