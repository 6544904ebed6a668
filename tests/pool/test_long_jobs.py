"""A book, from its submission to its subtitles, on the simulated engine's pool."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from django.db import connection

from accounts.models import User, Workspace
from billing.models import UsageRecord
from tests.billing.books import grant
from tests.factories import make_voice
from tests.pool.conftest import Submit, make_device
from tests.pool.processes import Pool, wait_for
from tests.pool.test_attempts import assert_books_balance, claim_next, spoken
from tests.pool.test_live_audio import STEADY
from tts import storage
from tts.audio.wav import SAMPLE_BYTES, read_wav
from tts.models import Segment, SynthesisJob, Voice
from tts.selectors.timeline import chapters_of, spoken_parts, timeline_of
from tts.services import quotes
from tts.services.attempts import finish_attempt
from tts.services.streams import job_audio, job_events
from tts.services.sweep import sweep
from tts.services.voices import delete_voice
from tts.states import JobState

PLAY = (
    "# One\nNarrator: It was dark. Nobody was there.\nMary: Who is there?\nTom: Me, Tom.\n"
    "# Two\nMary: Oh! That was it."
)


@pytest.fixture
def cast(customer: User) -> dict[str, Any]:
    voices = list(Voice.objects.filter(kind="preset").order_by("pk")[1:3])
    return {"Mary": voices[0].pk, "Tom": voices[1].pk}


def test_a_script_is_spoken_by_its_voices_and_every_place_is_where_it_is_heard(
    submit: Submit, pool: Pool, cast: dict[str, Any], voice: Voice
) -> None:
    job = submit(PLAY, mode="script", cast=cast, job_class="standard")
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    heard = b"".join(job_audio(job))
    wait_for(lambda: SynthesisJob.objects.get(pk=job.pk).state == JobState.SUCCEEDED, what="the job to end")
    job.refresh_from_db()
    audio = read_wav(storage.read(job.audio_key))
    assert audio.pcm == heard
    timeline = timeline_of(job)
    assert [(one.speaker, one.chapter) for one in timeline] == [
        ("", 0),
        ("Narrator", 0),
        ("Mary", 0),
        ("Tom", 0),
        ("", 1),
        ("Mary", 1),
    ]
    # Lengths are whole milliseconds: half of one for each segment at most.
    assert abs(timeline[-1].end_ms - audio.duration_ms) <= len(timeline)
    pauses = [after.start_ms - before.end_ms for before, after in itertools.pairwise(timeline)]
    assert pauses == [900, 450, 450, 1500, 900]
    # Between two segments nothing is heard, and in the middle of one something is.
    for before, after in itertools.pairwise(timeline):
        rest = audio.pcm[_at(before.end_ms + 2) : _at(after.start_ms - 2)]
        assert not rest.strip(b"\0")
    for one in timeline:
        assert audio.pcm[_at(one.start_ms + 2) : _at(one.end_ms - 2)].strip(b"\0")
    assert [chapter.start_ms for chapter in chapters_of(job)] == [0, timeline[4].start_ms]
    assert [part.speaker for part in spoken_parts(job)] == ["", "Narrator", "Mary", "Tom", "", "Mary"]
    used = UsageRecord.objects.filter(job_id=job.pk).values_list("voice_id", flat=True)
    assert sorted(used) == sorted([voice.pk] * 3 + [cast["Mary"]] * 2 + [cast["Tom"]])
    assert_books_balance()


def _at(ms: int) -> int:
    return SAMPLE_BYTES * 24 * ms


def test_a_book_is_stored_once_and_its_followers_are_told_what_changes(
    submit: Submit, workspace: Workspace
) -> None:
    chapter = "The wind came over the hill and nobody knew why it had come so early. " * 60
    grant(workspace.pk, 10**12)
    book = "\n".join(f"Chapter {number}\n{chapter}" for number in range(1, 25))
    job = submit(book, job_class="batch")
    assert job.characters > 100_000
    assert job.segment_count == Segment.objects.filter(job=job).count() > 400
    assert len(job.chapters) == 24
    make_device()
    events = job_events(job)
    assert next(events).kind == "queued"
    for _ in range(3):
        sweep()
        work = claim_next()
        # A worker is not given the whole text with every segment.
        assert "text" in work.job.get_deferred_fields()
        finish_attempt(work=work, outcome=spoken(work))
    SynthesisJob.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    told = [next(events) for _ in range(4)]
    assert [(event.kind, event.data.get("index")) for event in told] == [
        ("running", None),
        ("segment", 0),
        ("segment", 1),
        ("segment", 2),
    ]
    events.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [None, 7])
def test_nobody_waits_while_a_text_is_put_into_words(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    locked: dict[str, list[bool]] = {"spoken_text": [], "phrase_of": []}

    def watch(name: str) -> None:
        act = getattr(quotes, name)

        def watched(*args: Any, **named: Any) -> str:
            locked[name].append(connection.in_atomic_block)
            return act(*args, **named)  # type: ignore[no-any-return]

        monkeypatch.setattr(quotes, name, watched)

    for name in locked:
        watch(name)
    make_device()
    job = submit("It was 5 o'clock. " * 60, seed=seed)
    # Each once for each segment, and without the lock on the credit account.
    assert locked == dict.fromkeys(locked, [False] * job.segment_count)
    assert job.segment_count > 1


def test_a_voice_that_is_deleted_ends_the_jobs_that_it_is_cast_in(
    submit: Submit, workspace: Workspace, customer: User, pool: Pool
) -> None:
    clone = make_voice(workspace, customer)
    job = submit(
        "Mary: Hello there.\nTom: Hello to you.", mode="script", cast={"Mary": clone.pk, "Tom": clone.pk}
    )
    assert set(Segment.objects.filter(job=job).values_list("voice_id", flat=True)) == {clone.pk}
    delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    wait_for(lambda: SynthesisJob.objects.get(pk=job.pk).state == JobState.FAILED, what="the job to end")
    job.refresh_from_db()
    assert (job.error_code, job.charged_micros) == ("voice_deleted", 0)
    assert_books_balance()
