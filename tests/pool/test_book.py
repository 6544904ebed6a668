"""A small book by the way of the long one (`make bench NAME=book`), and that what is not whole is found."""

from __future__ import annotations

import wave

import pytest
from django.core.files.storage import default_storage

from accounts.models import Workspace
from tests.bench._book import Wrong, book, check_books, check_spoken
from tests.billing.books import grant
from tests.pool.conftest import Submit
from tests.pool.processes import Pool, wait_for
from tts.models import Segment, SynthesisJob
from tts.selectors.devices import ready_device_count
from tts.states import JobState

CHAPTERS = 4
PROMPT = {"real_time": True, "ms_per_character": 1}


def test_a_book_is_whole_and_what_is_not_is_found(pool: Pool, submit: Submit, workspace: Workspace) -> None:
    grant(workspace.pk, 10**12)
    text = book(characters=6_000, chapters=CHAPTERS)
    assert 5_500 < len(text) <= 6_000
    pool.start_node(engine_settings=PROMPT)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit(text, job_class="batch")
    assert (job.segment_count > 50, len(job.chapters)) == (True, CHAPTERS)
    wait_for(
        lambda: SynthesisJob.objects.get(pk=job.pk).state == JobState.SUCCEEDED,
        timeout_s=120,
        what="the book to be spoken",
    )
    job.refresh_from_db()
    check_spoken(job, chapters=CHAPTERS)
    check_books()
    _check_that_faults_are_found(job)


def _check_that_faults_are_found(job: SynthesisJob) -> None:
    with pytest.raises(Wrong, match="chapters"):
        check_spoken(job, chapters=CHAPTERS + 1)
    path = default_storage.path(job.audio_key)
    with wave.open(path) as whole:
        parameters, pcm = whole.getparams(), whole.readframes(whole.getnframes() - 1)
    with wave.open(path, "wb") as shortened:
        shortened.setparams(parameters)
        shortened.writeframes(pcm)
    with pytest.raises(Wrong, match="samples"):
        check_spoken(job, chapters=CHAPTERS)
    Segment.objects.filter(job=job, index=3).delete()
    with pytest.raises(Wrong, match="missing"):
        check_spoken(job, chapters=CHAPTERS)
    SynthesisJob.objects.filter(pk=job.pk).update(charged_micros=0)
    with pytest.raises(Wrong, match="books"):
        check_books()
