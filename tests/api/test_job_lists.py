"""Lists of jobs: their order, pages, filters, and what they leave out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User, Workspace
from tests.api.test_jobs import JOBS
from tests.billing.books import grant
from tests.cast import Api, api_of
from tests.factories import finish_job, make_job
from tts.models import SynthesisJob, Voice
from tts.selectors.jobs import LISTED_CHARACTERS


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


def test_jobs_are_listed_newest_first_and_paged(
    alice_api: Api, alice: User, alice_workspace: Workspace, preset: Voice
) -> None:
    made = [str(make_job(alice_workspace, alice, preset, text=f"Number {number}.").pk) for number in range(5)]
    first = alice_api.get(JOBS, {"page_size": 2}).json()
    assert [row["id"] for row in first["results"]] == [made[4], made[3]]
    # A newer job does not shift the pages that follow.
    make_job(alice_workspace, alice, preset, text="Newest.")
    second = alice_api.get(first["next"]).json()
    assert [row["id"] for row in second["results"]] == [made[2], made[1]]
    third = alice_api.get(second["next"]).json()
    assert [row["id"] for row in third["results"]] == [made[0]]
    assert third["next"] is None
    assert [row["id"] for row in alice_api.get(third["previous"]).json()["results"]] == [made[2], made[1]]


def test_lists_are_filtered_by_state_voice_and_words(
    alice_api: Api, alice: User, alice_workspace: Workspace, preset: Voice, alices_job: SynthesisJob
) -> None:
    done = make_job(alice_workspace, alice, preset, text="Something else: 100% true.")
    finish_job(done)

    def ids(**query: Any) -> list[str]:
        return [row["id"] for row in alice_api.get(JOBS, query).json()["results"]]

    assert ids() == [str(done.pk), str(alices_job.pk)]
    assert ids(state="succeeded") == [str(done.pk)]
    assert ids(voice_id=str(alices_job.voice_id)) == [str(alices_job.pk)]
    assert ids(search="only alice") == [str(alices_job.pk)]
    assert ids(search="100%") == [str(done.pk)]
    assert ids(search="%") == [str(done.pk)]
    assert ids(search="") == [str(done.pk), str(alices_job.pk)]
    assert ids(search="nothing") == []


def test_a_members_list_holds_the_teams_jobs_and_no_others(
    alice: User, bob: User, team: Workspace, alices_job: SynthesisJob, preset: Voice
) -> None:
    grant(team.pk, 100_000_000)
    shared = make_job(team, alice, preset)
    assert [row["id"] for row in api_of(bob, team).get(JOBS).json()["results"]] == [str(shared.pk)]
    assert api_of(bob).get(JOBS).json()["results"] == []


def test_a_list_gives_the_beginning_of_a_book_and_reads_no_more(
    alice_api: Api, alices_job: SynthesisJob
) -> None:
    book = "A long sentence. " * 600
    SynthesisJob.objects.filter(pk=alices_job.pk).update(text=book)
    with CaptureQueriesContext(connection) as asked:
        (row,) = alice_api.get(JOBS).json()["results"]
    assert row["text"] == book[:LISTED_CHARACTERS]
    assert len([one for one in asked.captured_queries if '"tts_synthesisjob"."text"' in one["sql"]]) == 1
    assert alice_api.get(f"{JOBS}/{alices_job.pk}").json()["text"] == book
