"""A job's text may be a book: it is read for whoever shows it, and for nobody else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User, Workspace
from tests.cast import Api, api_of, client_of
from tests.factories import finish_job, make_job
from tests.pool.conftest import make_device
from tts import urls as pages
from tts.api import urls as api
from tts.models import SynthesisJob, Voice
from tts.selectors.jobs import lone_job_of
from tts.services.jobs import delete_job
from tts.services.renditions import label_language
from tts.services.revisions import SegmentEdit, revise_job

# The whole text of a job, in a column of what is read: not its beginning alone.
WHOLE_TEXT = re.compile(r'(?<!LEFT\()(?:"tts_synthesisjob"|\bT\d+)\."text"(?=.* FROM )')
# Which show a job's text. All others that are of one job are tried.
SHOW_IT = {"job", "api_job"}
OF_A_JOB = sorted(
    pattern.name
    for pattern in (*pages.urlpatterns, *api.urlpatterns)
    if "job_id" in str(pattern.pattern) and pattern.name not in SHOW_IT
)
LISTS = ("history", "api_jobs", "studio")
CHANGES_OR_ASKS = 405


@pytest.fixture
def revised(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A done job that says another one again."""
    make_device()
    source = make_job(alice_workspace, alice, alices_voice, text="It begins. It goes on, and it ends.")
    finish_job(source)
    job = revise_job(
        workspace=alice_workspace,
        user=alice,
        api_key=None,
        job_id=source.pk,
        edits=[SegmentEdit(0, "It begins again.")],
        idempotency_key=None,
        client_address=None,
        request_id="",
    ).job
    finish_job(job)
    return job


def ask(client: Client, address: str, **query: str) -> tuple[Any, int]:
    """The answer, and how many whole texts of jobs were read for it."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = client.get(address, query, headers={"Range": "bytes=0-9"})
        if answer.streaming:
            b"".join(answer.streaming_content)  # type: ignore[arg-type]
    return answer, sum(len(WHOLE_TEXT.findall(query["sql"])) for query in queries)


@pytest.mark.parametrize("name", OF_A_JOB)
def test_nobody_reads_it_who_does_not_show_it(alice: User, revised: SynthesisJob, name: str) -> None:
    client = api_of(alice) if name.startswith("api_") else client_of(alice)
    answer, texts = ask(client, reverse(name, args=[revised.pk]))
    if answer.status_code != CHANGES_OR_ASKS:
        assert answer.status_code in (200, 206)
    assert texts == 0


@pytest.mark.parametrize("label", ["none", "tone", "spoken"])
@pytest.mark.parametrize("name", ["api_job_audio", "api_job_stream"])
def test_other_forms_of_its_sound_do_without_it(
    alice_api: Api, revised: SynthesisJob, settings: Any, name: str, label: str
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "EXPLICIT_LABEL": label}
    answer, texts = ask(alice_api, reverse(name, args=[revised.pk]), format="mp3")
    assert (answer.status_code in (200, 206), texts) == (True, 0)


@pytest.mark.parametrize(("text", "language"), [("It is late, 夜深了。", "zh"), ("It is late.", "en")])
def test_the_language_of_the_label_is_asked_for(
    alice: User, alice_workspace: Workspace, alices_voice: Voice, text: str, language: str
) -> None:
    job = make_job(alice_workspace, alice, alices_voice, text=text)
    found = lone_job_of(alice_workspace, job.pk)
    assert label_language(found) == language
    assert "text" in found.get_deferred_fields()


@pytest.mark.parametrize("name", LISTS)
def test_lists_read_beginnings(alice: User, revised: SynthesisJob, name: str) -> None:
    client = api_of(alice) if name.startswith("api_") else client_of(alice)
    answer, texts = ask(client, reverse(name))
    assert (answer.status_code, texts) == (200, 0)


def test_a_voices_page_reads_beginnings(
    alice_client: Client, alices_voice: Voice, revised: SynthesisJob
) -> None:
    answer, texts = ask(alice_client, reverse("voice", args=[alices_voice.pk]))
    assert (answer.status_code, texts) == (200, 0)
    assert "It begins again." in answer.content.decode()


@pytest.mark.parametrize("name", sorted(SHOW_IT))
def test_who_shows_a_revision_reads_its_text_alone(
    alice: User, alice_workspace: Workspace, revised: SynthesisJob, name: str
) -> None:
    client = api_of(alice) if name.startswith("api_") else client_of(alice)
    source_id = str(revised.revision_of_id)
    answer, texts = ask(client, reverse(name, args=[revised.pk]))
    assert (answer.status_code, texts) == (200, 1)
    assert source_id in answer.content.decode()
    delete_job(workspace=alice_workspace, job_id=source_id)  # type: ignore[arg-type]
    assert ask(client, reverse(name, args=[revised.pk]))[1] == 1


def test_an_edit_is_priced_without_what_the_segments_took(
    alice_client: Client, revised: SynthesisJob
) -> None:
    edit = {"index": 0, "text": "Another beginning.", "token": str(revised.pk)}
    with CaptureQueriesContext(connection) as queries:
        answer = alice_client.post(
            reverse("job_revise", args=[revised.pk]), edit, headers={"HX-Request": "true"}
        )
    assert answer.status_code == 200
    read = " ".join(query["sql"] for query in queries)
    assert len(WHOLE_TEXT.findall(read)) == 1
    assert '"tts_attempt"' not in read
