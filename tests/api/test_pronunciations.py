"""Pronunciations over the API: versions under an ETag, refusals with places, and jobs that are spoken by them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import User, Workspace
from tests.api.problems import assert_problem
from tests.cast import Api, api_of
from tests.factories import make_team
from tts.models import PronunciationVersion, SynthesisJob, Voice
from tts.selectors.pronunciations import dictionary
from tts.services import pronunciations as saving
from tts.services.jobs import delete_job
from tts.services.pronunciations import save_pronunciations
from tts.text.pronunciation import Entry

PATH, VERSIONS = "/api/v1/pronunciations", "/api/v1/pronunciations/versions"
CHONGQING = {"word": "重庆", "replacement": "[chóng][qìng]"}
SQL = {"word": "SQL", "replacement": "sequel"}


def put(api: Api, entries: list[dict[str, str]], tag: str | None = "*") -> Any:
    headers = {} if tag is None else {"If-Match": tag}
    return api.send("PUT", PATH, {"entries": entries}, **headers)


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


def test_each_save_is_a_version_under_its_etag(alice_api: Api, alice: User) -> None:
    first = alice_api.get(PATH)
    assert (first.json(), first["ETag"]) == ({"version": 0, "created_at": None, "entries": []}, '"0"')
    made = put(alice_api, [CHONGQING], '"0"')
    assert (made.status_code, made["ETag"], made.json()["entries"]) == (200, '"1"', [CHONGQING])
    assert put(alice_api, [CHONGQING, SQL], '"1"').json()["version"] == 2
    # What changes nothing makes no version.
    assert put(alice_api, [CHONGQING, SQL], '"2"').json()["version"] == 2
    versions = alice_api.get(VERSIONS).json()["versions"]
    assert [(one["version"], one["entry_count"], one["created_by"]) for one in versions] == [
        (2, 2, alice.email),
        (1, 1, alice.email),
    ]
    assert alice_api.get(f"{VERSIONS}/1").json()["entries"] == [CHONGQING]
    assert_problem(alice_api.get(f"{VERSIONS}/3"), 404, "pronunciation_version_unknown")


def test_versions_are_listed_without_reading_their_entries(alice_api: Api) -> None:
    put(alice_api, [CHONGQING, SQL])
    with CaptureQueriesContext(connection) as queries:
        listed = alice_api.get(VERSIONS).json()["versions"]
    assert [one["entry_count"] for one in listed] == [2]
    read = [query["sql"] for query in queries if "tts_pronunciationversion" in query["sql"]]
    assert len(read) == 1
    assert '"entries",' not in read[0]


def test_what_somebody_else_saved_meanwhile_is_not_lost(alice_api: Api) -> None:
    put(alice_api, [CHONGQING], '"0"')
    assert_problem(put(alice_api, [SQL], '"0"'), 412, "pronunciations_changed")
    assert_problem(put(alice_api, [SQL], "nonsense"), 412, "pronunciations_changed")
    assert_problem(put(alice_api, [SQL], None), 428, "if_match_required")
    assert alice_api.get(PATH).json()["entries"] == [CHONGQING]
    assert put(alice_api, [SQL], "*").json()["entries"] == [SQL]


def test_two_that_save_at_the_same_moment_make_one_version(alice: User, alice_workspace: Workspace) -> None:
    """The number is taken by whoever is first; the other one's save changes nothing."""
    entries = [Entry("a", "b")]
    PronunciationVersion.objects.create(workspace=alice_workspace, number=2, entries=[["x", "y"]])
    PronunciationVersion.objects.create(workspace=alice_workspace, number=1, entries=[])
    with pytest.raises(saving.PronunciationsChanged):
        save_pronunciations(workspace=alice_workspace, user=alice, entries=entries, expected_number=1)
    assert PronunciationVersion.objects.count() == 2


@pytest.mark.parametrize(
    ("entries", "code", "mistake"),
    [
        ([SQL, {"word": "好", "replacement": "[hoa4]"}], "pronunciation_invalid", (1, "replacement", "pinyin", 0, 6)),
        ([SQL, {"word": "sql ", "replacement": "x"}, SQL], "pronunciation_invalid", (2, "word", "word_twice", 0, 3)),
        ([{"word": "a", "replacement": "<strong>b"}], "pronunciation_invalid", (0, "replacement", "not_closed", 0, 8)),
        ([{"word": f"w{n}", "replacement": "x"} for n in range(1001)], "pronunciations_full", None),
        ([{"word": "a"}], "invalid_input", None),
        ([{"word": "a", "replacement": 1}], "invalid_input", None),
    ],
)  # fmt: skip
def test_a_refusal_tells_the_place_and_changes_nothing(
    entries: list[dict[str, str]], code: str, mistake: tuple[Any, ...] | None, alice_api: Api
) -> None:
    put(alice_api, [CHONGQING])
    refused = put(alice_api, entries)
    status = 409 if code == "pronunciations_full" else 400
    problem = assert_problem(refused, status, code, field=None if code == "invalid_input" else "entries")
    if mistake is not None:
        found = problem["mistakes"][0]
        assert (found["index"], found["side"], found["problem"], found["start"], found["end"]) == mistake
    assert alice_api.get(PATH).json() == {**alice_api.get(PATH).json(), "version": 1, "entries": [CHONGQING]}


def test_quotes_and_jobs_say_by_which_version_they_are_spoken(alice_api: Api, preset: Voice) -> None:
    def body(**more: Any) -> dict[str, Any]:
        return {"voice_id": str(preset.pk), "text": "我在重庆学SQL。", **more}

    plain = alice_api.send("POST", "/api/v1/quotes", body()).json()
    assert (plain["spoken"], plain["pronunciation_version"]) == (["我在重庆学SQL。"], None)
    put(alice_api, [CHONGQING, SQL])
    quoted = alice_api.send("POST", "/api/v1/quotes", body()).json()
    assert (quoted["spoken"], quoted["pronunciation_version"]) == (["我在[chóng][qìng]学sequel。"], 1)
    assert (quoted["segments"], quoted["characters"]) == (plain["segments"], plain["characters"])
    first = alice_api.send("POST", "/api/v1/jobs", body()).json()
    put(alice_api, [SQL])
    newest = alice_api.send("POST", "/api/v1/jobs", body()).json()
    again = alice_api.send("POST", "/api/v1/jobs", body(pronunciation_version=1)).json()
    without = alice_api.send("POST", "/api/v1/jobs", body(pronunciation_version=0)).json()
    versions = [job["pronunciation_version"] for job in (first, newest, again, without)]
    assert versions == [1, 2, 1, None]
    jobs = SynthesisJob.objects.count()
    unknown = alice_api.send("POST", "/api/v1/jobs", body(pronunciation_version=9))
    assert_problem(unknown, 404, "pronunciation_version_unknown")
    assert SynthesisJob.objects.count() == jobs


def test_a_text_that_takes_too_long_to_be_said_is_refused(alice_api: Api, preset: Voice) -> None:
    put(alice_api, [{"word": "长", "replacement": "很" * 190}])
    body = {"voice_id": str(preset.pk), "text": "长长长。"}
    assert_problem(alice_api.send("POST", "/api/v1/jobs", body), 422, "pronunciation_too_long", field="text")
    assert not SynthesisJob.objects.exists()
    # One of them is said, and what is set aside is enough for it.
    one = alice_api.send("POST", "/api/v1/quotes", {**body, "text": "长。"}).json()
    bare = alice_api.send("POST", "/api/v1/quotes", {**body, "text": "短。"}).json()
    assert one["held_gpu_ms"] > 3 * bare["held_gpu_ms"]
    assert one["characters"] == bare["characters"]


def test_others_see_and_speak_by_their_own(alice_api: Api, charlie: User, preset: Voice) -> None:
    put(alice_api, [CHONGQING])
    put(alice_api, [CHONGQING, SQL])
    charlies = api_of(charlie)
    assert charlies.get(PATH).json()["entries"] == []
    assert charlies.get(VERSIONS).json() == {"versions": []}
    assert_problem(charlies.get(f"{VERSIONS}/1"), 404, "pronunciation_version_unknown")
    body = {"voice_id": str(preset.pk), "text": "重庆。", "pronunciation_version": 1}
    assert_problem(charlies.send("POST", "/api/v1/quotes", body), 404, "pronunciation_version_unknown")
    put(charlies, [SQL], '"0"')
    assert alice_api.get(PATH).json()["version"] == 2


def test_a_member_may_save_them_too(alice: User, bob: User) -> None:
    team = make_team(alice, bob)
    assert put(api_of(bob, team), [SQL], '"0"').status_code == 200
    assert api_of(alice, team).get(PATH).json()["entries"] == [SQL]
    assert api_of(bob).get(PATH).json()["entries"] == []


def test_a_version_is_never_changed_and_goes_with_the_workspace(alice: User) -> None:
    team = make_team(alice)
    version = save_pronunciations(workspace=team, user=alice, entries=[Entry("a", "b")], expected_number=0)
    assert version is not None
    with pytest.raises(ProgrammingError), transaction.atomic():
        PronunciationVersion.objects.filter(pk=version.pk).update(entries=[])
    PronunciationVersion.objects.filter(pk=version.pk).update(created_by=None)
    team.delete()
    assert not PronunciationVersion.objects.exists()


def test_old_versions_go_unless_a_job_was_spoken_by_them(
    alice: User, alice_workspace: Workspace, alice_api: Api, preset: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "VERSIONS_KEPT", 2)

    def save(word: str) -> None:
        save_pronunciations(
            workspace=alice_workspace, user=alice, entries=[Entry(word, "x")], expected_number=None
        )

    def numbers() -> list[int]:
        return [one["version"] for one in alice_api.get(VERSIONS).json()["versions"]]

    save("a")
    job = alice_api.send("POST", "/api/v1/jobs", {"voice_id": str(preset.pk), "text": "Hello a."}).json()
    for word in "bcd":
        save(word)
    assert numbers() == [4, 3, 1]
    assert dictionary(alice_workspace.pk, 1).apply("a").text == "x"
    delete_job(workspace=alice_workspace, job_id=job["id"])
    save("e")
    assert numbers() == [5, 4]
