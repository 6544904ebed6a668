"""A voice's recordings over the API: replaced, listed, heard, used again, deleted, and nobody else's affair."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User, Workspace
from tests.api.problems import assert_problem
from tests.api.test_voices import form, upload
from tests.audio import clips
from tests.billing.books import grant
from tests.cast import Api, api_of
from tests.factories import make_device, make_voice
from tests.pool.voice_recordings import everything
from tts import storage
from tts.models import Voice, VoiceVersion
from tts.selectors.voices import preset_voices

VOICES = "/api/v1/voices"


@pytest.fixture(scope="module")
def recording() -> bytes:
    return clips.wav(clips.speech(4.0))


def version_form(recording: bytes, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in form(recording, **changes).items() if name != "name"}


def replace(api: Api, voice: Voice, recording: bytes, **changes: Any) -> dict[str, Any]:
    response = api.post(f"{VOICES}/{voice.pk}/versions", version_form(recording, **changes))
    assert response.status_code == 201, response.content
    answer: dict[str, Any] = response.json()
    return answer


def test_a_recording_is_replaced_listed_heard_used_again_and_deleted(
    alice_api: Api, alice: User, alices_voice: Voice, recording: bytes
) -> None:
    address = f"{VOICES}/{alices_voice.pk}"
    before = alice_api.get(address).json()
    assert before["version"] == 1
    assert (before["consent"]["agreed_by"], before["consent"]["spoken"]) == (alice.email, False)
    replaced = replace(
        alice_api, alices_voice, recording, transcript="Better words.", consent_file=upload(recording)
    )
    assert (replaced["id"], replaced["name"], replaced["version"]) == (before["id"], before["name"], 2)
    assert (replaced["transcript"], replaced["consent"]["spoken"]) == ("Better words.", True)
    assert replaced == alice_api.get(address).json()
    newest, oldest = alice_api.get(f"{address}/versions").json()["versions"]
    assert [(each["number"], each["current"]) for each in (newest, oldest)] == [(2, True), (1, False)]
    assert (newest["transcript"], newest["duration_ms"], newest["created_by"]) == (
        "Better words.",
        4000,
        alice.email,
    )
    assert newest["quality"] == replaced["quality"]
    assert oldest["consent"] == before["consent"]
    for listed in (newest, oldest):
        assert alice_api.get(f"{address}/versions/{listed['number']}").json() == listed
        key = VoiceVersion.objects.get(voice=alices_voice, number=listed["number"]).clip_key
        heard = alice_api.get(listed["audio_url"])
        assert b"".join(heard.streaming_content) == storage.read(key)
    used = alice_api.send("POST", f"{address}/versions/1/use")
    assert (used.status_code, used.json()) == (200, {**before, "version": 1})
    assert alice_api.send("POST", f"{address}/versions/1/use").json() == used.json()
    assert alice_api.delete(f"{address}/versions/2").status_code == 204
    assert [each["number"] for each in alice_api.get(f"{address}/versions").json()["versions"]] == [1]


def test_jobs_and_their_segments_say_the_version(
    alice_api: Api, alices_voice: Voice, recording: bytes
) -> None:
    make_device()
    wanted = {"voice_id": str(alices_voice.pk), "text": "Hello."}
    submitted = [alice_api.send("POST", "/api/v1/jobs", wanted).json()]
    replace(alice_api, alices_voice, recording)
    submitted.append(alice_api.send("POST", "/api/v1/jobs", wanted).json())
    for number, job in enumerate(submitted, start=1):
        detail = alice_api.get(f"/api/v1/jobs/{job['id']}").json()
        assert job["voice"]["version"] == detail["voice"]["version"] == number
        assert [segment["voice_version"] for segment in detail["segments"]] == [number]
    before = everything()
    refused = alice_api.delete(f"{VOICES}/{alices_voice.pk}/versions/1")
    assert_problem(refused, 409, "voice_version_needed")
    assert everything() == before


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"consent": "false"}, "consent_required", "consent"),
        ({"file": None}, "invalid_input", "file"),
        ({"language": "klingon"}, "invalid_input", "language"),
        ({"transcript": "x" * 501}, "invalid_input", "transcript"),
        ({"shared": "true"}, "invalid_input", "shared"),
    ],
)
def test_a_form_that_is_not_right_changes_nothing(
    changes: dict[str, Any], code: str, field: str, alice_api: Api, alices_voice: Voice, recording: bytes
) -> None:
    before = everything()
    answer = alice_api.post(f"{VOICES}/{alices_voice.pk}/versions", version_form(recording, **changes))
    assert_problem(answer, 400, code, field=field)
    assert everything() == before


def test_a_poor_recording_answers_with_its_report_and_changes_nothing(
    alice_api: Api, alices_voice: Voice
) -> None:
    before = everything()
    poor = clips.speech(5.0) + clips.noise(5.0, rms=0.12)
    answer = alice_api.post(f"{VOICES}/{alices_voice.pk}/versions", version_form(clips.wav(poor)))
    assert assert_problem(answer, 400, "clip_quality_rejected", field="file")["quality"]["checks"]
    assert everything() == before


def test_current_unknown_and_preset_ones_are_refused(
    alice_api: Api, alices_voice: Voice, recording: bytes
) -> None:
    before, address = everything(), f"{VOICES}/{alices_voice.pk}/versions"
    assert_problem(alice_api.delete(f"{address}/1"), 409, "voice_version_current")
    for number in (0, 2, 10**30):
        missing = f"{address}/{number}"
        for answer in (
            alice_api.delete(missing),
            alice_api.send("POST", f"{missing}/use"),
            alice_api.get(missing),
            alice_api.get(f"{missing}/audio"),
        ):
            assert_problem(answer, 404, "voice_version_not_found")
    for answer in attempts(alice_api, preset_voices()[0], recording):
        assert_problem(answer, 403, "preset_voice_fixed")
    assert everything() == before


def attempts(api: Api, voice: Voice, recording: bytes) -> list[Any]:
    address = f"{VOICES}/{voice.pk}/versions"
    return [
        api.get(address),
        api.post(address, version_form(recording)),
        api.send("POST", f"{address}/1/use"),
        api.send("POST", f"{address}/2/use"),
        api.get(f"{address}/1"),
        api.get(f"{address}/1/audio"),
        api.delete(f"{address}/1"),
        api.delete(f"{address}/2"),
    ]


def test_another_tenants_versions_are_not_there(
    alice_api: Api, alices_voice: Voice, charlie: User, charlie_workspace: Workspace, recording: bytes
) -> None:
    replace(alice_api, alices_voice, recording)
    stranger = api_of(charlie)
    mine = make_voice(charlie_workspace, charlie)
    before = everything()
    for answer in attempts(stranger, alices_voice, recording):
        assert_problem(answer, 404, "voice_not_found")
    # A number of another voice's version is no number of one's own.
    assert_problem(
        stranger.send("POST", f"{VOICES}/{mine.pk}/versions/2/use"), 404, "voice_version_not_found"
    )
    assert_problem(stranger.delete(f"{VOICES}/{mine.pk}/versions/2"), 404, "voice_version_not_found")
    assert everything() == before


def test_members_arrange_shared_voices_and_nobody_but_its_maker_a_private_one(
    alice: User, bob: User, team: Workspace, recording: bytes
) -> None:
    """Alice runs the team: of what bob keeps private she is told that it is there, not how it sounds."""
    grant(team.pk, 10**9)
    voice = make_voice(team, bob)
    boss, maker = api_of(alice, team), api_of(bob, team)
    assert replace(boss, voice, recording)["version"] == 2
    assert maker.send("PATCH", f"{VOICES}/{voice.pk}", {"shared": False}).status_code == 200
    before = everything()
    for answer in attempts(boss, voice, recording):
        assert_problem(answer, 404, "voice_not_found")
    assert everything() == before
    seen = boss.get(f"{VOICES}/{voice.pk}").json()
    assert (seen["usable"], seen["transcript"], seen["version"]) == (False, "", 2)
    assert maker.send("POST", f"{VOICES}/{voice.pk}/versions/1/use").json()["version"] == 1
