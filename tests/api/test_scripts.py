"""Scripts of several speakers, chapters and subtitles over the API."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from accounts.models import User, Workspace
from billing.models import UsageRecord
from tests.api.problems import assert_problem
from tests.billing.books import all_books
from tests.cast import Api
from tests.factories import finish_job, make_job, make_voice
from tts.models import Segment, SynthesisJob, Voice
from tts.services.jobs import delete_job, repeat_request
from tts.services.submit import JobRequest
from tts.states import JobState

JOBS, QUOTES = "/api/v1/jobs", "/api/v1/quotes"
SCRIPT = (
    "# The box\n\nNarrator: It was dark.\nAlice: Who is there?\nBob: Me, Bob [breath].\n\n# Light\nALICE: Oh."
)


@pytest.fixture
def presets(alice: User) -> list[Voice]:
    return list(Voice.objects.filter(kind="preset").order_by("pk")[:3])


def body(presets: list[Voice], **changes: Any) -> dict[str, Any]:
    return {
        "voice_id": str(presets[0].pk),
        "text": SCRIPT,
        "mode": "script",
        "cast": {"alice": str(presets[1].pk), "Bob": str(presets[2].pk)},
        **changes,
    }


def rows() -> tuple[int, int, object]:
    return SynthesisJob.objects.count(), Segment.objects.count(), all_books()


def test_every_speaker_is_spoken_by_the_voice_that_is_named(alice_api: Api, presets: list[Voice]) -> None:
    response = alice_api.send("POST", JOBS, body(presets))
    assert response.status_code == 202
    job = SynthesisJob.objects.get(pk=response.json()["id"])
    narrator, alices, bobs = presets
    assert [(one.text, one.speaker, one.chapter, one.voice_id) for one in job.segments.order_by("index")] == [
        ("The box", "", 0, None),
        ("It was dark.", "Narrator", 0, None),
        ("Who is there?", "Alice", 0, alices.pk),
        ("Me, Bob [breath].", "Bob", 0, bobs.pk),
        ("Light", "", 1, None),
        ("Oh.", "Alice", 1, alices.pk),
    ]
    assert job.cast == {"Narrator": str(narrator.pk), "Alice": str(alices.pk), "Bob": str(bobs.pk)}
    assert job.chapters == [{"title": "The box", "first_index": 0}, {"title": "Light", "first_index": 4}]
    shown = alice_api.get(f"{JOBS}/{job.pk}").json()
    assert shown["cast"] == job.cast
    assert shown["chapters"][1] == {"title": "Light", "first_index": 4, "start_ms": None, "end_ms": None}
    assert (shown["segments"][2]["voice_id"], shown["segments"][2]["speaker"]) == (str(alices.pk), "Alice")
    assert (shown["segments"][0]["voice_id"], shown["subtitles_url"]) == (str(narrator.pk), None)


def test_a_script_that_is_repeated_is_the_same_script(alice_api: Api, presets: list[Voice]) -> None:
    first = SynthesisJob.objects.get(pk=alice_api.send("POST", JOBS, body(presets)).json()["id"])
    again = repeat_request(first)
    assert isinstance(again, JobRequest)
    second = make_job(
        first.workspace,
        first.created_by,
        first.voice,
        **{k: v for k, v in vars(again).items() if k != "voice_id"},
    )
    columns = ("index", "text", "speaker", "chapter", "voice_id")
    assert list(second.segments.order_by("index").values_list(*columns)) == list(
        first.segments.order_by("index").values_list(*columns)
    )
    assert (second.text, second.cast, second.chapters, second.mode) == (
        first.text,
        first.cast,
        first.chapters,
        "script",
    )


def test_a_clone_and_a_preset_need_what_each_of_them_needs(
    alice_api: Api, alices_voice: Voice, presets: list[Voice]
) -> None:
    made = alice_api.send(
        "POST", JOBS, body(presets, cast={"Alice": str(alices_voice.pk), "Bob": str(presets[1].pk)})
    )
    segments = Segment.objects.filter(job_id=made.json()["id"]).order_by("index")
    assert [("clone" in one.needs, "preset" in one.needs) for one in segments] == [
        (False, True),
        (False, True),
        (True, False),
        (False, True),
        (False, True),
        (True, False),
    ]


def test_a_speaker_without_a_voice_is_refused_by_name(alice_api: Api, presets: list[Voice]) -> None:
    before = rows()
    response = alice_api.send("POST", JOBS, body(presets, cast={"Alice": str(presets[1].pk)}))
    problem = assert_problem(response, 400, "speaker_without_voice")
    assert (problem["speakers"], problem["field"]) == (["Bob"], "cast")
    assert "Bob" in problem["detail"]
    assert rows() == before


def test_another_workspaces_voice_in_a_cast_is_none(
    alice_api: Api, presets: list[Voice], bob: User, bob_workspace: Workspace
) -> None:
    bobs = make_voice(bob_workspace, bob)
    before = rows()
    for voice_id in (bobs.pk, uuid.uuid4()):
        cast = {"Alice": str(voice_id), "Bob": str(presets[1].pk)}
        for address in (JOBS, QUOTES):
            assert_problem(alice_api.send("POST", address, body(presets, cast=cast)), 404, "voice_not_found")
    assert rows() == before


@pytest.mark.parametrize(
    "cast", [None, [], "x", {"Alice": "no id"}, {f"N{n}": str(uuid.uuid4()) for n in range(51)}]
)
def test_a_cast_that_is_none_is_refused(alice_api: Api, presets: list[Voice], cast: object) -> None:
    before = rows()
    assert_problem(alice_api.send("POST", JOBS, body(presets, cast=cast)), 400, "invalid_input")
    assert rows() == before


def test_too_many_speakers_are_refused(alice_api: Api, presets: list[Voice]) -> None:
    text = "\n".join(f"Person{n}: Hello." for n in range(51))
    assert_problem(alice_api.send("POST", QUOTES, body(presets, text=text)), 400, "too_many_speakers")


def test_a_quote_says_which_chapters_and_speakers_there_are(alice_api: Api, presets: list[Voice]) -> None:
    answer = alice_api.send("POST", QUOTES, body(presets, cast={"Bob": str(presets[2].pk)})).json()
    assert answer["chapters"] == [
        {"title": "The box", "first_index": 0},
        {"title": "Light", "first_index": 4},
    ]
    assert [
        (one["name"], one["voice_id"], one["characters"], one["segment_count"]) for one in answer["speakers"]
    ] == [
        ("Narrator", str(presets[0].pk), 12, 1),
        ("Alice", None, 16, 2),
        ("Bob", str(presets[2].pk), 10, 1),
    ]
    plain = alice_api.send("POST", QUOTES, {"voice_id": str(presets[0].pk), "text": "A: b. C: d."}).json()
    assert (plain["chapters"], plain["speakers"]) == ([], [])


def test_long_texts_are_taken_where_nobody_waits_for_them(alice_api: Api, presets: list[Voice]) -> None:
    wanted = {"voice_id": str(presets[0].pk), "text": "Hello there, my friend. " * 300}
    problem = assert_problem(alice_api.send("POST", QUOTES, wanted), 400, "text_too_long")
    assert "Standard or Batch" in problem["detail"]
    for job_class in ("standard", "batch"):
        assert alice_api.send("POST", QUOTES, {**wanted, "job_class": job_class}).status_code == 200
    over = {**wanted, "job_class": "batch", "text": "word " * 40_001}
    assert_problem(alice_api.send("POST", QUOTES, over), 400, "text_too_long")


def test_speech_that_no_file_holds_is_refused(alice_api: Api, presets: list[Voice]) -> None:
    text = "Hello[pause 10s]. " * 7000
    wanted = {"voice_id": str(presets[0].pk), "text": text, "job_class": "batch"}
    assert_problem(alice_api.send("POST", QUOTES, wanted), 400, "speech_too_long")


def finished(alice_api: Api, presets: list[Voice]) -> SynthesisJob:
    job = SynthesisJob.objects.get(pk=alice_api.send("POST", JOBS, body(presets)).json()["id"])
    finish_job(job)
    return job


def test_subtitles_and_chapters_of_a_job_that_has_ended(alice_api: Api, presets: list[Voice]) -> None:
    job = finished(alice_api, presets)
    address = f"{JOBS}/{job.pk}/subtitles"
    shown = alice_api.get(f"{JOBS}/{job.pk}").json()
    assert shown["subtitles_url"] == address
    # Six segments of a second; 0.9 s after a title, 0.45 s to another speaker, 1.5 s to another chapter.
    assert [(one["start_ms"], one["end_ms"]) for one in shown["chapters"]] == [(0, 7300), (7300, 10_200)]
    vtt = alice_api.get(f"{address}?format=vtt")
    assert (vtt.status_code, vtt["Content-Type"]) == (200, "text/vtt; charset=utf-8")
    assert vtt.content.decode() == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nThe box\n\n"
        "00:00:01.900 --> 00:00:02.900\n<v Narrator>It was dark.</v>\n\n"
        "00:00:03.350 --> 00:00:04.350\n<v Alice>Who is there?</v>\n\n"
        "00:00:04.800 --> 00:00:05.800\n<v Bob>Me, Bob.</v>\n\n"
        "00:00:07.300 --> 00:00:08.300\nLight\n\n"
        "00:00:09.200 --> 00:00:10.200\n<v Alice>Oh.</v>\n"
    )
    srt = alice_api.get(f"{address}?format=srt&download")
    assert srt["Content-Type"] == "application/x-subrip; charset=utf-8"
    assert srt["Content-Disposition"].endswith('.srt"')
    assert "3\n00:00:03,350 --> 00:00:04,350\nAlice: Who is there?\n" in srt.content.decode()
    chapters = alice_api.get(f"{address}?format=chapters").content.decode()
    assert chapters == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:07.300\nThe box\n\n00:00:07.300 --> 00:00:10.200\nLight\n"
    )
    assert_problem(alice_api.get(f"{address}?format=doc"), 400, "format_unknown")


def test_subtitles_are_refused_before_the_end_and_to_everybody_else(
    alice_api: Api, bob_api: Api, presets: list[Voice]
) -> None:
    waiting = alice_api.send("POST", JOBS, body(presets)).json()["id"]
    assert_problem(alice_api.get(f"{JOBS}/{waiting}/subtitles"), 409, "subtitles_not_ready")
    failed = SynthesisJob.objects.get(pk=alice_api.send("POST", JOBS, body(presets)).json()["id"])
    finish_job(failed, state=JobState.FAILED)
    assert_problem(alice_api.get(f"{JOBS}/{failed.pk}/subtitles"), 409, "subtitles_not_ready")
    job = finished(alice_api, presets)
    assert_problem(bob_api.get(f"{JOBS}/{job.pk}/subtitles"), 404, "job_not_found")


def test_names_and_titles_go_with_the_text(
    alice_api: Api, alice_workspace: Workspace, presets: list[Voice]
) -> None:
    job = finished(alice_api, presets)
    delete_job(workspace=alice_workspace, job_id=job.pk)
    job.refresh_from_db()
    assert (job.text, job.cast, job.chapters) == ("", {}, [])
    assert set(job.segments.values_list("text", "speaker")) == {("", "")}
    assert_problem(alice_api.get(f"{JOBS}/{job.pk}/subtitles"), 404, "job_not_found")
    assert not UsageRecord.objects.filter(job_id=job.pk).exists()
