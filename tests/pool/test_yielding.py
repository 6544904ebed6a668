"""Batch work lets urgent work pass between two sentences, and what it says in the end is the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.models import Workspace
from billing.models import UsageRecord
from tests.pool.conftest import Submit, make_device
from tests.pool.fair_pool import assert_counters_are_true
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import WELCOME_MICROS, account, assert_books_balance, claim_next, spoken
from tts import storage
from tts.audio.wav import read_wav
from tts.models import Attempt, Segment, SynthesisJob
from tts.services.attempts import Fenced, Outcome, finish_attempt
from tts.services.streams import job_audio
from tts.services.sweep import sweep
from tts.services.yielding import may_stop_before, pieces_of, yield_attempt
from tts.states import AttemptState, JobState, SegmentState

SENTENCES = [f"这是第{number}句话，用来讲一个很长很长的故事给大家听。" for number in "一二三四五六"]
BOOK = "".join(SENTENCES[:4])
SLOW_ENGINE: dict[str, object] = {"real_time": True, "ms_per_character": 30, "chunk_ms": 400}


def parts_of(job: SynthesisJob) -> list[tuple[int, int, str]]:
    return list(
        Segment.objects.filter(job=job).order_by("index", "part").values_list("index", "part", "state")
    )


def test_the_rest_of_a_batch_segment_waits_and_what_was_spoken_is_paid(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(BOOK, job_class="batch")
    work = claim_next()
    text = work.segment.text
    done, rest = text[:10], text[10:]
    estimate, segments = work.segment.estimate_gpu_ms, job.segment_count
    yield_attempt(work=work, outcome=spoken(work, gpu_ms=500, audio_ms=1000), spoken=done, rest=rest)

    job.refresh_from_db()
    assert (job.state, job.segments_done, job.segment_count) == (JobState.RUNNING, 1, segments + 1)
    first, second = Segment.objects.filter(job=job, index=work.segment.index).order_by("part")
    assert (first.part, first.text, first.state) == (0, done, SegmentState.SUCCEEDED)
    assert (second.part, second.text, second.state) == (1, rest, SegmentState.QUEUED)
    assert second.pk == work.segment.pk  # so it stays the next of its queue
    assert first.estimate_gpu_ms + second.estimate_gpu_ms == estimate
    attempt = Attempt.objects.get(pk=work.attempt.pk)
    assert (attempt.state, attempt.segment_id) == (AttemptState.SUCCEEDED, first.pk)
    usage = UsageRecord.objects.get(attempt_id=attempt.pk)
    assert (usage.billable, usage.gpu_ms, usage.characters) == (True, 500, len(done))
    assert job.charged_micros == attempt.charged_micros > 0
    assert_counters_are_true()

    with pytest.raises(Fenced):
        finish_attempt(work=work, outcome=Outcome(gpu_ms=1, audio_ms=1))
    sweep()
    later = claim_next()
    assert (later.segment.pk, later.attempt.attempt_number) == (second.pk, work.attempt.attempt_number + 1)
    finish_attempt(work=later, outcome=spoken(later, gpu_ms=700, audio_ms=1000))
    while job.state == JobState.RUNNING:
        sweep()
        job.refresh_from_db()
        if job.state == JobState.RUNNING:
            more = claim_next()
            finish_attempt(work=more, outcome=spoken(more, gpu_ms=100, audio_ms=1000))
            job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert account(workspace) == (WELCOME_MICROS - job.charged_micros, 0)
    assert_books_balance()


def test_a_fenced_attempt_hands_nothing_back(submit: Submit) -> None:
    make_device()
    job = submit(BOOK, job_class="batch")
    work = claim_next()
    Segment.objects.filter(pk=work.segment.pk).update(attempt_number=7)
    before = (parts_of(job), UsageRecord.objects.count())
    with pytest.raises(Fenced):
        yield_attempt(
            work=work, outcome=spoken(work), spoken=work.segment.text[:5], rest=work.segment.text[5:]
        )
    assert (parts_of(job), UsageRecord.objects.count()) == before
    assert_books_balance()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from([*SENTENCES, "好。", "Well, yes. ", "And so on, and on! ", "\n"]), max_size=12
    ).map("".join)
)
def test_pieces_are_the_text_and_a_rest_is_cut_as_the_whole_was(text: str) -> None:
    pieces = pieces_of(text, job_class="batch")
    assert "".join(pieces) == text
    assert pieces_of(text, job_class="interactive") == [text]
    assert not may_stop_before(pieces, 0)
    assert not may_stop_before(pieces, len(pieces))
    for index in range(1, len(pieces)):
        if may_stop_before(pieces, index):
            assert pieces_of("".join(pieces[index:]), job_class="batch") == pieces[index:]


def test_interactive_work_passes_a_book_and_the_book_sounds_the_same(pool: Pool, submit: Submit) -> None:
    pool.start_clock()
    pool.start_node(engine_settings=SLOW_ENGINE)
    seed = 7
    undisturbed = submit(BOOK, job_class="batch", seed=seed)
    wait_for(lambda: SynthesisJob.objects.filter(pk=undisturbed.pk, state=JobState.SUCCEEDED).exists())
    undisturbed.refresh_from_db()
    # The same words by the same seed are to be spoken, not used again.
    Segment.objects.filter(job=undisturbed).update(phrase="")

    book = submit(BOOK, job_class="batch", seed=seed)
    # The first segment is one short sentence; the second has several.
    wait_for(Attempt.objects.filter(job=book, segment__index=1, first_chunk_at__isnull=False).exists)
    urgent = submit("请先说这一句。")
    listened = b"".join(job_audio(SynthesisJob.objects.get(pk=book.pk)))
    wait_for(lambda: SynthesisJob.objects.filter(pk=book.pk, state=JobState.SUCCEEDED).exists())
    book.refresh_from_db()
    urgent.refresh_from_db()

    assert urgent.state == JobState.SUCCEEDED
    assert urgent.finished_at is not None
    assert book.finished_at is not None
    assert urgent.finished_at < book.finished_at
    assert book.segment_count > undisturbed.segment_count  # it was stopped
    heard = read_wav(storage.read(book.audio_key)).pcm
    assert heard == read_wav(storage.read(undisturbed.audio_key)).pcm
    assert listened == heard
    assert book.gpu_ms == undisturbed.gpu_ms
    assert book.charged_micros == pytest.approx(undisturbed.charged_micros, abs=book.segment_count)
    assert_books_balance()
    assert_counters_are_true()
