"""New voice, heard before it is saved: the pages of a draft, and that nobody else finds it."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import ConsentRecord, User, Workspace
from billing.models import Hold
from portal.first_run import first_run_steps
from tests.api.problems import assert_problem
from tests.api.test_private_voices import attempts_to_speak, browser, rows
from tests.audio.clips import speech, wav
from tests.billing.books import all_books, grant
from tests.cast import Api, api_of
from tests.factories import finish_job, make_device, make_job, make_voice
from tests.pages.reading import HTMX, text_of
from tests.pages.test_tts_voice_pages import voice_fields
from tts import storage
from tts.languages import BY_CODE
from tts.models import SynthesisJob, Voice
from tts.selectors.voices import preset_voices
from tts.states import VoiceState

VOICES, JOBS = "/api/v1/voices", "/api/v1/jobs"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def recording() -> bytes:
    return wav(speech(4.0))


@pytest.fixture
def draft(alice: User, alice_workspace: Workspace) -> Voice:
    return make_voice(
        alice_workspace,
        alice,
        name="Heard <first>",
        transcript="Words of the draft.",
        state=VoiceState.DRAFT,
    )


def fields(recording: bytes, **changes: Any) -> dict[str, Any]:
    upload = SimpleUploadedFile("recording.wav", recording, "audio/wav")
    return voice_fields(upload, listen="1", **changes)


def of(name: str, draft: Voice) -> str:
    return reverse(f"voice_draft_{name}" if name else "voice_draft", args=[draft.pk])


def said(text: str, **more: str) -> dict[str, str]:
    return {"text": text, "token": str(uuid.UUID(int=5)), **more}


def test_listen_first_takes_the_same_fields_and_leads_to_the_draft(
    alice: User, alice_client: Client, alice_workspace: Workspace, recording: bytes
) -> None:
    response = alice_client.post(reverse("voice_new"), fields(recording, shared="false"))
    draft = Voice.objects.get(workspace=alice_workspace)
    assert response["Location"] == of("", draft)
    assert (draft.state, draft.shared, draft.transcript) == (VoiceState.DRAFT, False, "A few words.")
    consent = ConsentRecord.objects.get(voice_id=draft.pk)
    assert (consent.user_id, consent.clip_sha256) == (alice.pk, draft.clip_sha256)
    page = alice_client.get(response["Location"])
    assert "Not saved yet" in text_of(page)
    assert "Background noise" in text_of(page)
    assert "Only you" in text_of(page)
    # The price of the first sentence stands there before anything is pressed, without scripts too.
    assert BY_CODE["en"].test in page.content.decode()
    assert re.search(r"About .*; at most .* are set aside\.", text_of(page))
    assert not SynthesisJob.objects.exists()


def test_htmx_is_sent_to_the_draft_as_a_whole_page(alice_client: Client, recording: bytes) -> None:
    response = alice_client.post(reverse("voice_new"), fields(recording), headers=HTMX)
    draft = Voice.objects.get(state=VoiceState.DRAFT)
    assert (response.status_code, response["HX-Redirect"], draft.shared) == (204, of("", draft), True)


@pytest.mark.parametrize("missing", ["consent", "name", "clip"])
def test_listen_first_refuses_what_saving_refuses(
    missing: str, alice_client: Client, recording: bytes, draft: Voice
) -> None:
    wanted, before = fields(recording), list(Voice.objects.values_list())
    del wanted[missing]
    assert alice_client.post(reverse("voice_new"), wanted).status_code == 400
    assert list(Voice.objects.values_list()) == before
    assert ConsentRecord.objects.count() == 1


def test_the_price_follows_the_sentence_and_stores_nothing(alice_client: Client, draft: Voice) -> None:
    books = all_books()
    part = alice_client.post(of("price", draft), said("Good morning."), headers=HTMX)
    assert (part.status_code, "<html" in part.content.decode()) == (200, False)
    assert "are set aside" in text_of(part)
    refused = text_of(alice_client.post(of("price", draft), said("x" * 101), headers=HTMX))
    assert "A test sentence has at most 100 characters; this one has 101." in refused
    without_scripts = alice_client.post(of("speak", draft), said("Another one.", show_price="1"))
    assert "Another one." in without_scripts.content.decode()
    assert (all_books(), SynthesisJob.objects.count()) == (books, 0)


def test_it_speaks_again_and_again_and_the_page_shows_the_last(alice_client: Client, draft: Voice) -> None:
    first = alice_client.post(of("speak", draft), said("Good morning."))
    assert first["Location"] == f"{of('', draft)}#test"
    job = SynthesisJob.objects.get()
    assert (job.voice_id, job.text, job.job_class) == (draft.pk, "Good morning.", "interactive")
    assert Hold.objects.get().amount_micros == job.held_micros > 0
    assert alice_client.post(of("speak", draft), said("Good morning.")).status_code == 302
    assert SynthesisJob.objects.count() == 1
    make_device()
    finish_job(job)
    page = alice_client.get(of("", draft)).content.decode()
    assert "?part=draft" in page
    assert reverse("job_audio_page", args=[job.pk]) in page
    assert reverse("job_repeat", args=[job.pk]) not in page
    alice_client.post(of("speak", draft), said("And good evening."))
    assert SynthesisJob.objects.count() == 2
    page = alice_client.get(of("", draft)).content.decode()
    assert reverse("job_events_page", args=[SynthesisJob.objects.latest("created_at").pk]) in page
    part = alice_client.get(reverse("job", args=[job.pk]), {"part": "draft"}).content.decode()
    assert "<html" not in part
    assert reverse("job_repeat", args=[job.pk]) not in part


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * 101, "at most 100 characters"), ("", "There is no text"), ("…", "nothing in this text")],
)
def test_a_sentence_that_is_refused_stays_and_costs_nothing(
    text: str, why: str, alice_client: Client, draft: Voice
) -> None:
    books = all_books()
    page = alice_client.post(of("speak", draft), said(text))
    assert page.status_code == 400
    assert "Nothing was spoken and nothing was charged." in text_of(page)
    assert why in text_of(page)
    assert f">\n{text}</textarea>" in page.content.decode()
    assert (all_books(), SynthesisJob.objects.count()) == (books, 0)


def test_it_is_saved_and_going_back_finds_the_voice(
    alice_client: Client, alice_workspace: Workspace, draft: Voice
) -> None:
    for _ in range(2):
        assert alice_client.post(of("save", draft))["Location"] == f"/voices/{draft.pk}/?new=1"
    assert alice_client.get(of("", draft))["Location"] == f"/voices/{draft.pk}/"
    assert "The voice is saved." in text_of(alice_client.get(f"/voices/{draft.pk}/?new=1"))
    for name in ("speak", "price", "discard"):
        assert alice_client.post(of(name, draft), said("Hello.")).status_code == 404
    assert Voice.objects.get(workspace=alice_workspace).state == VoiceState.READY
    assert storage.exists(draft.clip_key)


def test_without_room_it_says_so_before_and_stays_a_draft(
    alice_client: Client, alices_voice: Voice, alice_workspace: Workspace, draft: Voice
) -> None:
    assert "as many as it may" not in text_of(alice_client.get(of("", draft)))
    Workspace.objects.filter(pk=alice_workspace.pk).update(voices_limit=1)
    assert "before you save it, delete another" in text_of(alice_client.get(of("", draft))).replace(" .", ".")
    refused = alice_client.post(of("save", draft))
    assert refused.status_code == 409
    assert "The voice is not saved. It is still here." in text_of(refused)
    draft.refresh_from_db()
    assert draft.state == VoiceState.DRAFT


def test_discarding_asks_and_takes_it_away_and_its_jobs_stay(
    alice_client: Client, draft: Voice, django_capture_on_commit_callbacks: Any
) -> None:
    alice_client.post(of("speak", draft), said("Good morning."))
    job = SynthesisJob.objects.get()
    make_device()
    finish_job(job)
    assert "Heard &lt;first&gt; (not saved)" in text_of(alice_client.get(reverse("job", args=[job.pk])))
    for page in (of("", draft), reverse("voices")):
        assert "Discard “Heard &lt;first&gt;”?" in text_of(alice_client.get(page))
    with django_capture_on_commit_callbacks(execute=True):
        for _ in range(2):
            assert alice_client.post(of("discard", draft))["Location"] == reverse("voices")
    assert not storage.exists(draft.clip_key)
    assert ConsentRecord.objects.filter(voice_id=draft.pk).exists()
    assert alice_client.get(of("", draft)).status_code == 404
    assert alice_client.get(of("audio", draft)).status_code == 404
    assert "Heard &lt;first&gt; (deleted)" in text_of(alice_client.get(reverse("job", args=[job.pk])))
    assert "Good morning." in text_of(alice_client.get(reverse("history")))
    assert "is not saved yet" not in text_of(alice_client.get(reverse("voices")))


def test_its_maker_finds_it_on_the_pages_of_voices_and_in_no_list(
    alice: User, alice_client: Client, alice_api: Api, alice_workspace: Workspace, draft: Voice
) -> None:
    for name in ("voices", "voice_new"):
        page = alice_client.get(reverse(name))
        assert "is not saved yet" in text_of(page)
        assert of("", draft) in page.content.decode()
    assert page.context["draft"] == draft
    alice_client.post(of("speak", draft), said("Words of the test."))
    studio = alice_client.get(reverse("studio")).content.decode()
    assert str(draft.pk) not in studio
    assert "Words of the test." not in studio
    assert str(draft.pk) not in alice_api.get(VOICES).content.decode()
    assert "0 of" in text_of(alice_client.get(reverse("voices")))
    steps = {str(step.title): step.done for step in first_run_steps(alice_workspace, alice)}
    assert not steps["Clone your own voice"]
    recording: Any = alice_client.get(of("audio", draft))
    assert b"".join(recording.streaming_content) == storage.read(draft.clip_key)


def test_its_maker_speaks_with_it_in_no_other_way(
    alice_client: Client, alice_api: Api, alice_workspace: Workspace, draft: Voice
) -> None:
    alice_client.post(of("speak", draft), said("Good morning."))
    job = SynthesisJob.objects.get()
    make_device()
    finish_job(job)
    before = rows(alice_workspace)
    for address, wish in attempts_to_speak(draft):
        assert_problem(alice_api.send("POST", address, wish), 404, "voice_not_found")
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/audio", None),
        ("PATCH", "", {"name": "Mine"}),
        ("DELETE", "", None),
    ):
        assert_problem(alice_api.send(method, f"{VOICES}/{draft.pk}{path}", body), 404, "voice_not_found")
    for edit in ({"index": 0, "seed": 3}, {"index": 0, "text": "Other words."}):
        refused = alice_api.send("POST", f"{JOBS}/{job.pk}/revisions", {"segments": [edit]})
        assert_problem(refused, 404, "voice_not_found")
    for name in ("voice", "voice_audio"):
        assert alice_client.get(reverse(name, args=[draft.pk])).status_code == 404
    token = {"token": str(uuid.uuid4())}
    assert alice_client.post(reverse("job_repeat", args=[job.pk]), token).status_code == 404
    wish = {"text": "Hello.", "voice": str(draft.pk), **token}
    assert alice_client.post(reverse("studio"), wish).status_code == 404
    for name in ("voice_rename", "voice_share", "voice_delete"):
        changes = {"name": "Mine", "shared": "true"}
        assert alice_client.post(reverse(name, args=[draft.pk]), changes).status_code == 404
    assert rows(alice_workspace) == before
    # Other jobs of the workspace are said again as ever.
    other = make_job(alice_workspace, job.created_by, preset_voices()[0])
    assert alice_client.post(reverse("job_repeat", args=[other.pk]), token).status_code == 302


def test_nobody_else_finds_it(alice: User, bob: User, charlie: User, team: Workspace) -> None:
    """Bob's draft in the workspace that alice owns; charlie has nothing to do with it."""
    grant(team.pk, 10**9)
    draft = make_voice(team, bob, name="Bob alone", state=VoiceState.DRAFT)
    before = rows(team)
    missing = Voice(pk=uuid.uuid4())
    elsewhere = [browser(alice, team), browser(charlie, team), client_in_his_own_workspace(bob)]
    for client in elsewhere:
        for name in ("voices", "voice_new", "studio", "history"):
            page = client.get(reverse(name)).content.decode()
            assert "Bob alone" not in page
            assert str(draft.pk) not in page
        for name in ("", "audio"):
            assert client.get(of(name, draft)).status_code == 404
        for name in ("price", "speak", "save", "discard"):
            answers = [client.post(of(name, each), said("Hello.")) for each in (draft, missing)]
            assert [answer.status_code for answer in answers] == [404, 404]
    api = api_of(alice, team)
    assert str(draft.pk) not in api.get(VOICES).content.decode()
    assert_problem(api.get(f"{VOICES}/{draft.pk}"), 404, "voice_not_found")
    assert rows(team) == before
    assert storage.exists(draft.clip_key)
    assert browser(bob, team).get(of("", draft)).status_code == 200


def client_in_his_own_workspace(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.mark.parametrize(
    ("voice_language", "read_in", "spoken"), [("en", "zh-hans", "en"), ("", "zh-hans", "zh")]
)
def test_the_first_sentence_is_in_the_voices_language(
    voice_language: str, read_in: str, spoken: str, alice_client: Client, draft: Voice
) -> None:
    Voice.objects.filter(pk=draft.pk).update(language=voice_language)
    page = alice_client.get(of("", draft), headers={"Accept-Language": read_in})
    assert "尚未保存" in text_of(page)
    assert BY_CODE[spoken].test in page.content.decode()
    assert all(0 < len(language.test) <= 100 for language in BY_CODE.values())
