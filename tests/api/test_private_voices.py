"""Private voices: for whoever made them alone, whichever way another member of the workspace tries."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from billing.models import CreditAccount, Hold
from portal.first_run import first_run_steps
from tests.api.problems import assert_problem
from tests.billing.books import grant
from tests.cast import Api, api_of, client_of
from tests.factories import finish_job, make_device, make_job, make_voice
from tests.pages.reading import text_of
from tts import storage
from tts.models import Segment, SynthesisJob, Voice
from tts.selectors.voices import preset_voices, voices_of
from tts.states import JobState, VoiceState

JOBS, QUOTES, VOICES = "/api/v1/jobs", "/api/v1/quotes", "/api/v1/voices"
SCRIPT = "Alice: Good morning.\nBob: And a good evening."


@pytest.fixture
def private(bob: User, team: Workspace) -> Voice:
    """Bob's voice in the workspace that alice owns; dora is a member of it like bob."""
    grant(team.pk, 10**9)
    voice = make_voice(team, bob, name="Bob alone", transcript="Words of Bob")
    Voice.objects.filter(pk=voice.pk).update(shared=False)
    voice.refresh_from_db()
    return voice


@pytest.fixture
def dora(team: Workspace) -> User:
    dora = User.objects.create_user("dora@example.com", "correct horse battery")
    Membership.objects.create(workspace=team, user=dora, role=Role.MEMBER)
    return dora


def browser(user: User, workspace: Workspace) -> Client:
    client = client_of(user)
    client.post(reverse("choose_workspace"), {"workspace": str(workspace.pk)})
    return client


def rows(workspace: Workspace) -> tuple[object, ...]:
    account = CreditAccount.objects.get(workspace_id=workspace.pk)
    money = (account.available_micros, account.held_micros, Hold.objects.count())
    return (*money, SynthesisJob.objects.count(), Segment.objects.count(), list(Voice.objects.values_list()))


def attempts_to_speak(voice: Voice) -> list[tuple[str, dict[str, object]]]:
    preset = preset_voices()[0]
    script = {"voice_id": str(preset.pk), "text": SCRIPT, "mode": "script"}
    cast = {"Alice": str(voice.pk), "Bob": str(preset.pk)}
    plain = {"voice_id": str(voice.pk), "text": "Hello."}
    return [(address, body) for address in (JOBS, QUOTES) for body in (plain, {**script, "cast": cast})]


@pytest.mark.parametrize("role", [Role.MEMBER, Role.BILLING])
def test_another_members_key_finds_it_nowhere(private: Voice, dora: User, team: Workspace, role: str) -> None:
    Membership.objects.filter(user=dora).update(role=role)
    api, before = api_of(dora, team), rows(team)
    assert str(private.pk) not in {each["id"] for each in api.get(VOICES).json()["results"]}
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/audio", None),
        ("PATCH", "", {"name": "Mine"}),
        ("PATCH", "", {"shared": True}),
        ("DELETE", "", None),
    ):
        hidden = assert_problem(
            api.send(method, f"{VOICES}/{private.pk}{path}", body), 404, "voice_not_found"
        )
        missing = assert_problem(
            api.send(method, f"{VOICES}/{uuid.uuid4()}{path}", body), 404, "voice_not_found"
        )
        assert hidden["detail"] == missing["detail"]
    for address, wish in attempts_to_speak(private):
        assert_problem(api.send("POST", address, wish), 404, "voice_not_found")
    assert rows(team) == before
    assert storage.exists(private.clip_key)


def test_another_members_pages_find_it_nowhere(private: Voice, dora: User, team: Workspace) -> None:
    client, before = browser(dora, team), rows(team)
    for name in ("voices", "studio", "history"):
        page = client.get(reverse(name))
        assert page.status_code == 200
        assert "Bob alone" not in page.content.decode()
        assert str(private.pk) not in page.content.decode()
    for name in ("voice", "voice_audio"):
        assert client.get(reverse(name, args=[private.pk])).status_code == 404
    for name in ("voice_rename", "voice_share", "voice_delete"):
        fields = {"name": "Mine", "shared": "true"}
        assert client.post(reverse(name, args=[private.pk]), fields).status_code == 404
    wish = {"text": "Hello.", "voice": str(private.pk), "token": str(uuid.uuid4())}
    assert client.post(reverse("studio"), wish).status_code == 404
    assert "who made it keeps it private" in text_of(client.post(reverse("quote_page"), wish))
    assert rows(team) == before
    steps = {str(step.title): step.done for step in first_run_steps(team, dora)}
    assert not steps["Clone your own voice"]


def test_who_made_it_uses_it_as_before(private: Voice, bob: User, team: Workspace) -> None:
    api, client = api_of(bob, team), browser(bob, team)
    answer = api.get(f"{VOICES}/{private.pk}").json()
    assert (answer["shared"], answer["usable"], answer["transcript"]) == (False, True, "Words of Bob")
    audio: Any = api.get(f"{VOICES}/{private.pk}/audio")
    assert b"".join(audio.streaming_content) == storage.read(private.clip_key)
    for address, wish in attempts_to_speak(private):
        assert api.send("POST", address, wish).status_code in (200, 202)
    assert "Only you" in text_of(client.get(reverse("voice", args=[private.pk])))
    assert "Private" in text_of(client.get(reverse("voices")))
    assert str(private.pk) in client.get(reverse("studio")).content.decode()


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
def test_who_runs_the_workspace_sees_that_there_is_one_and_does_not_hear_it(
    private: Voice, alice: User, team: Workspace, role: str
) -> None:
    Membership.objects.filter(user=alice, workspace=team).update(role=role)
    api, client, before = api_of(alice, team), browser(alice, team), rows(team)
    assert str(private.pk) not in {each["id"] for each in api.get(VOICES).json()["results"]}
    answer = api.get(f"{VOICES}/{private.pk}").json()
    assert (answer["shared"], answer["usable"]) == (False, False)
    assert (answer["transcript"], answer["quality"]) == ("", None)
    assert_problem(api.get(f"{VOICES}/{private.pk}/audio"), 404, "voice_not_found")
    for address, wish in attempts_to_speak(private):
        assert_problem(api.send("POST", address, wish), 404, "voice_not_found")
    assert str(private.pk) not in client.get(reverse("studio")).content.decode()
    assert client.get(reverse("voice_audio", args=[private.pk])).status_code == 404
    listed = text_of(client.get(reverse("voices")))
    assert "Private voices of other members" in listed
    assert "bob@example.com" in listed
    page = client.get(reverse("voice", args=[private.pk]))
    assert "Another member keeps this voice private." in text_of(page)
    assert "Words of Bob" not in page.content.decode()
    assert reverse("voice_audio", args=[private.pk]) not in page.content.decode()
    assert rows(team) == before


def test_a_voice_whose_maker_is_gone_is_still_found_by_who_runs_the_workspace(
    private: Voice, alice: User, dora: User, team: Workspace
) -> None:
    Voice.objects.filter(pk=private.pk).update(created_by=None)
    assert browser(dora, team).get(reverse("voice", args=[private.pk])).status_code == 404
    client = browser(alice, team)
    assert client.get(reverse("voice", args=[private.pk])).status_code == 200
    client.post(reverse("voice_share", args=[private.pk]), {"shared": "true"})
    assert browser(dora, team).get(reverse("voice", args=[private.pk])).status_code == 200


def test_who_runs_the_workspace_deletes_it(private: Voice, alice: User, team: Workspace) -> None:
    response = browser(alice, team).post(reverse("voice_delete", args=[private.pk]))
    assert response["Location"] == reverse("voices")
    private.refresh_from_db()
    assert private.state == VoiceState.DELETED


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_its_maker_and_who_runs_the_workspace_say_who_may_use_it(
    name: str, private: Voice, dora: User, team: Workspace
) -> None:
    api, doras = api_of(User.objects.get(email=f"{name}@example.com"), team), api_of(dora, team)
    address = f"{VOICES}/{private.pk}"
    assert api.send("PATCH", address, {"shared": True}).json()["shared"] is True
    assert doras.get(address).json()["usable"] is True
    changed = api.send("PATCH", address, {"shared": False, "name": "Another"}).json()
    assert (changed["shared"], changed["name"]) == (False, "Another")
    assert_problem(doras.get(address), 404, "voice_not_found")


def test_another_member_does_not_say_who_may_use_a_shared_voice(
    bob: User, dora: User, team: Workspace
) -> None:
    voice = make_voice(team, bob)
    assert voice.shared
    before = list(Voice.objects.values_list())
    refused = api_of(dora, team).send("PATCH", f"{VOICES}/{voice.pk}", {"shared": False, "name": "Mine"})
    assert_problem(refused, 403, "voice_not_yours")
    client = browser(dora, team)
    assert client.post(reverse("voice_share", args=[voice.pk]), {"shared": "false"}).status_code == 403
    assert (
        reverse("voice_share", args=[voice.pk])
        not in client.get(reverse("voice", args=[voice.pk])).content.decode()
    )
    assert list(Voice.objects.values_list()) == before


def test_a_preset_is_everybodys(alice_api: Api) -> None:
    preset = preset_voices()[0]
    assert_problem(
        alice_api.send("PATCH", f"{VOICES}/{preset.pk}", {"shared": False}), 403, "preset_voice_fixed"
    )
    preset.refresh_from_db()
    assert preset.shared


def test_jobs_that_wait_go_on_and_are_not_said_again_by_others(
    private: Voice, bob: User, dora: User, team: Workspace
) -> None:
    Voice.objects.filter(pk=private.pk).update(shared=True)
    make_device()
    waiting, done = (make_job(team, dora, private, text=text) for text in ("This one waits.", "Done."))
    finish_job(done)
    assert api_of(bob, team).send("PATCH", f"{VOICES}/{private.pk}", {"shared": False}).status_code == 200
    waiting.refresh_from_db()
    assert waiting.state == JobState.QUEUED
    api, client, before = api_of(dora, team), browser(dora, team), rows(team)
    # The job itself is the workspace's, as its receipt is.
    assert api.get(f"{JOBS}/{done.pk}").json()["voice"]["id"] == str(private.pk)
    for edit in ({"index": 0, "seed": 3}, {"index": 0, "text": "Other words."}):
        for path in ("revisions", "revisions/quote"):
            refused = api.send("POST", f"{JOBS}/{done.pk}/{path}", {"segments": [edit]})
            assert "keeps it private" in assert_problem(refused, 404, "voice_not_found")["detail"]
    again = client.post(reverse("job_repeat", args=[done.pk]), {"token": str(uuid.uuid4())})
    assert again.status_code == 404
    assert "keeps it private" in text_of(again)
    assert rows(team) == before
    bobs = api_of(bob, team).send(
        "POST", f"{JOBS}/{done.pk}/revisions", {"segments": [{"index": 0, "seed": 3}]}
    )
    assert bobs.status_code == 202


def test_the_question_before_a_deletion_counts_scripts_too(
    alice: User, alice_workspace: Workspace, alices_voice: Voice, alice_client: Client
) -> None:
    preset = preset_voices()[0]
    cast = {"Alice": alices_voice.pk, "Bob": preset.pk}
    make_job(alice_workspace, alice, alices_voice)
    make_job(alice_workspace, alice, preset, text=SCRIPT * 2, mode="script", cast=cast)
    make_job(alice_workspace, alice, alices_voice, text=SCRIPT, mode="script", cast=cast)
    make_job(alice_workspace, alice, preset)
    assert voices_of(alice_workspace, alice).get(pk=alices_voice.pk).job_count == 3
    page = text_of(alice_client.get(reverse("voice", args=[alices_voice.pk])))
    assert "what engines computed from them are deleted for good. 3 jobs used it" in page
    listed = alice_client.get(reverse("history"), {"voice": str(alices_voice.pk)})
    assert len(listed.context["rows"]) == 3
