"""The Job page: what happened, and one segment edited and said again with its price beforehand."""

from __future__ import annotations

import uuid

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User, Workspace
from billing.models import CreditAccount, Hold
from portal.service_state import CACHE_KEY
from tests.factories import finish_job, make_job
from tts.models import Segment, SynthesisJob, Voice

TEXT = "This sentence is long enough to be one of the segments of a job that is said again. " * 8


@pytest.fixture
def done(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    job = make_job(alice_workspace, alice, alices_voice, text=TEXT)
    finish_job(job)
    return job


def edit(**changes: object) -> dict[str, object]:
    return {"index": 1, "text": "Other words are said here.", "token": str(uuid.uuid4()), **changes}


def balance(workspace: Workspace) -> tuple[int, int]:
    row = CreditAccount.objects.get(workspace_id=workspace.pk)
    return row.available_micros, row.held_micros


def test_the_page_tells_what_happened_and_how_it_is_labelled(
    alice_client: Client, done: SynthesisJob
) -> None:
    page = alice_client.get(reverse("job", args=[done.pk])).content.decode()
    for words in ("It was submitted", "Given to the device cpu:0@test", "The first sound was there", "Done"):
        assert words in page
    assert "ProduceID" in page
    assert f'href="{reverse("job", args=[done.pk])}?edit=1"' in page
    assert 'id="segment-editor-2"' not in page


def test_a_segment_is_edited_with_its_price_and_said_again(
    alice_client: Client, done: SynthesisJob, alice_workspace: Workspace
) -> None:
    address, before = reverse("job_revise", args=[done.pk]), balance(alice_workspace)
    editor = alice_client.get(reverse("job", args=[done.pk]), {"edit": "1"}).content.decode()
    assert 'id="segment-editor-2"' in editor
    assert Segment.objects.get(job=done, index=1).text.strip() in editor
    price = alice_client.post(address, edit(), headers={"HX-Request": "true"})
    assert (price.status_code, b"are set aside" in price.content) == (200, True)
    without_scripts = alice_client.post(address, edit(show_price="1"))
    assert (without_scripts.status_code, b"are set aside" in without_scripts.content) == (200, True)
    assert (balance(alice_workspace), SynthesisJob.objects.count()) == (before, 1)
    sent = edit()
    made = alice_client.post(address, sent)
    job = SynthesisJob.objects.get(revision_of=done)
    assert made["Location"] == reverse("job", args=[job.pk])
    assert alice_client.post(address, sent)["Location"] == made["Location"]
    assert SynthesisJob.objects.count() == 2
    changed = Segment.objects.get(job=job, reused=False)
    assert (changed.index, changed.text.strip()) == (1, "Other words are said here.")
    held = Hold.objects.get(job_id=job.pk).amount_micros
    assert balance(alice_workspace) == (before[0] - held, before[1] + held)
    page = alice_client.get(made["Location"]).content.decode()
    assert reverse("job", args=[done.pk]) in page
    assert "used again" in page


def test_another_seed_alone_says_the_same_words(alice_client: Client, done: SynthesisJob) -> None:
    text = Segment.objects.get(job=done, index=1).text
    alice_client.post(reverse("job_revise", args=[done.pk]), edit(text=text.strip(), another_seed="on"))
    changed = Segment.objects.get(job__revision_of=done, reused=False)
    assert changed.text == text
    assert changed.seed not in (None, done.seed)


def test_a_text_that_cannot_be_spoken_is_told_beside_the_editor_and_changes_nothing(
    alice_client: Client, done: SynthesisJob, alice_workspace: Workspace
) -> None:
    before = balance(alice_workspace)
    refused = alice_client.post(reverse("job_revise", args=[done.pk]), edit(text="No <strong>end."))
    assert refused.status_code == 400
    page = refused.content.decode()
    assert "Segment 2 cannot be said like this" in page
    assert "No &lt;strong&gt;end." in page
    assert (balance(alice_workspace), SynthesisJob.objects.count()) == (before, 1)


def test_a_long_job_takes_no_more_queries(alice_client: Client, done: SynthesisJob) -> None:
    def queries() -> int:
        # The state of the service is remembered for seconds only: it is read anew each time, however slow this is.
        cache.delete_many([CACHE_KEY, "pool-pace"])
        with CaptureQueriesContext(
            connection,
        ) as seen:
            assert alice_client.get(reverse("job", args=[done.pk])).status_code == 200
        return len(seen)

    queries()  # what is remembered from the first time on
    few, last = queries(), Segment.objects.filter(job=done).latest("index")
    Segment.objects.bulk_create(
        Segment(
            job=done,
            workspace_id=done.workspace_id,
            job_class=done.job_class,
            index=last.index + number,
            text="More of it. ",
            characters=12,
            state="succeeded",
            estimate_gpu_ms=0,
            held_gpu_ms=0,
            audio_ms=100,
            reused=True,
            voice=done.voice,
        )
        for number in range(1, 200)
    )
    assert queries() == few
