"""Single segments said again after an edit: they alone are spoken and paid, the rest keeps its sound."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import override_settings

from accounts.models import User, Workspace
from billing.models import Hold, UsageRecord
from tests.pool.conftest import Submit, make_device
from tests.pool.spoken_before import samples_of, say, speak_all
from tests.pool.test_attempts import account, assert_books_balance
from tts import storage
from tts.audio.wav import read_wav
from tts.errors import AudioGone, IdempotencyKeyReused, JobNotFound, JobNotSucceeded, RevisionInvalid
from tts.models import Attempt, Device, Segment, SynthesisJob, Voice
from tts.selectors.timeline import timeline_of
from tts.services.jobs import delete_job
from tts.services.revisions import SegmentEdit, quote_revision, revise_job
from tts.services.submit import JobRequest
from tts.states import JobState
from tts.text.errors import TextEmpty

__all__ = ["say"]
TEXT = (
    "The first sentence of the report opens it for all who listen here today. "
    "The second one says how the weather was on the day before, in all of the country.\n\n"
    "The third paragraph is about the price of bread, which has not changed since last year. "
    "The fourth sentence closes the report and wishes a good day to everybody who has listened to it."
)


@pytest.fixture
def source(submit: Submit) -> SynthesisJob:
    """A done job of several segments, with a drawn seed."""
    make_device()
    job = submit(TEXT)
    speak_all()
    job.refresh_from_db()
    assert (job.state, job.segment_count >= 3) == (JobState.SUCCEEDED, True)
    return job


def revise(
    source: SynthesisJob, *edits: SegmentEdit, workspace: Workspace | None = None, key: str | None = None
) -> SynthesisJob:
    return revise_job(
        workspace=workspace or source.workspace,
        user=source.created_by,
        api_key=None,
        job_id=source.pk,
        edits=edits,
        idempotency_key=key,
        client_address="127.0.0.1",
        request_id="test",
    ).job


def segments_of(job: SynthesisJob) -> list[Segment]:
    return list(Segment.objects.filter(job=job).order_by("index", "part"))


def test_only_the_edited_segment_is_spoken_held_for_and_paid(
    source: SynthesisJob, workspace: Workspace, customer: User
) -> None:
    before, old = account(workspace), segments_of(source)
    edit = SegmentEdit(1, "The second one is quite another sentence now.")
    priced = quote_revision(workspace=workspace, user=None, job_id=source.pk, edits=[edit])
    job = revise(source, edit)
    assert (job.revision_of_id, job.state, job.seed) == (source.pk, JobState.QUEUED, source.seed)
    new = segments_of(job)
    assert [each.reused for each in new] == [each.index != 1 for each in new]
    assert (len(new), new[1].text) == (
        len(old),
        "The second one is quite another sentence now." + old[1].text[len(old[1].text.rstrip()) :],
    )
    assert job.held_micros == priced.held_micros == Hold.objects.get(job_id=job.pk).amount_micros
    assert job.held_gpu_ms == new[1].held_gpu_ms
    assert account(workspace) == (before[0] - job.held_micros, before[1] + job.held_micros)
    speak_all()
    job.refresh_from_db()
    assert (job.state, job.charged_micros, job.gpu_ms) == (JobState.SUCCEEDED, 12_000, 1000)
    assert account(workspace) == (before[0] - 12_000, before[1])
    assert UsageRecord.objects.filter(job_id=job.pk).count() == 1
    assert job.audio_ms == 1000 * len(new)
    pcm = read_wav(storage.read(job.audio_key)).pcm
    placed = timeline_of(job)
    for each, place in zip(new, placed, strict=True):
        at = place.start_ms * 48
        assert pcm[at : at + len(samples_of(each.text))] == samples_of(each.text)
    assert job.text == TEXT.replace(old[1].text.strip(), "The second one is quite another sentence now.")
    source.refresh_from_db()
    assert (source.state, source.text, segments_of(source)) == (JobState.SUCCEEDED, TEXT, old)
    assert_books_balance()


def test_the_same_text_is_said_with_another_seed(source: SynthesisJob) -> None:
    job = revise(source, SegmentEdit(0, seed=5))
    assert [each.seed for each in segments_of(job)][:2] == [5, None]
    speak_all()
    assert Attempt.objects.get(job=job).seed == 5
    drawn = revise(source, SegmentEdit(0))
    assert segments_of(drawn)[0].seed not in (None, source.seed)
    # A revision of a revision keeps the seeds that its segments have.
    speak_all()
    third = revise(job, SegmentEdit(1, "Something else is said here, and that is all."))
    assert segments_of(third)[0].seed == 5
    assert segments_of(third)[0].phrase == segments_of(job)[0].phrase


def test_one_segment_becomes_several_or_none(source: SynthesisJob, workspace: Workspace) -> None:
    old = segments_of(source)
    longer = "A sentence that takes the place of the second one and is much longer than it was before. " * 6
    job = revise(source, SegmentEdit(0, "  "), SegmentEdit(1, longer))
    new = segments_of(job)
    assert [each.index for each in new] == list(range(len(new)))
    assert len(new) > len(old)
    assert [each.text for each in new if each.reused] == [each.text for each in old[2:]]
    assert "".join(each.text for each in new if not each.reused).strip() == longer.strip()
    assert new[0].text.startswith("A sentence that takes")
    assert job.text.startswith(longer.strip())


def test_leaving_segments_out_costs_nothing_and_is_done_at_once(
    source: SynthesisJob, workspace: Workspace
) -> None:
    before = account(workspace)
    job = revise(source, SegmentEdit(0, ""))
    assert (job.state, job.charged_micros, job.held_micros) == (JobState.SUCCEEDED, 0, 0)
    assert job.segment_count == source.segment_count - 1
    assert account(workspace) == before
    assert not Hold.objects.filter(job_id=job.pk).exists()
    assert_books_balance()


def test_a_text_that_goes_back_to_what_it_was_is_used_again(source: SynthesisJob) -> None:
    changed = revise(source, SegmentEdit(1, "Something else is said here."))
    speak_all()
    back = revise(changed, SegmentEdit(1, segments_of(source)[1].text))
    assert (back.state, back.charged_micros) == (JobState.SUCCEEDED, 0)


def test_its_own_audio_is_kept_whatever_the_pool_speaks_with_now(source: SynthesisJob) -> None:
    Device.objects.update(engine_version="2")
    job = revise(source, SegmentEdit(0, seed=9))
    assert job.reused_count == source.segment_count - 1


def test_parts_of_a_segment_that_let_urgent_work_pass_stay_together(source: SynthesisJob) -> None:
    rows = segments_of(source)
    Segment.objects.filter(pk=rows[-1].pk).update(index=1, part=1)
    kept = revise(source, SegmentEdit(0, ""))
    assert [(each.index, each.part) for each in segments_of(kept)][:2] == [(0, 0), (0, 1)]
    edited = revise(source, SegmentEdit(1, "Both parts are one now."))
    assert [each.text.strip() for each in segments_of(edited)][:2] == [
        rows[0].text.strip(),
        "Both parts are one now.",
    ]
    assert len(segments_of(edited)) == len(rows) - 1


def test_the_old_job_may_be_deleted_while_the_new_one_is_spoken(
    source: SynthesisJob, workspace: Workspace
) -> None:
    job = revise(source, SegmentEdit(0, seed=5))
    delete_job(workspace=workspace, job_id=source.pk)
    speak_all()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert len(read_wav(storage.read(job.audio_key)).pcm) >= 48_000 * job.segment_count
    delete_job(workspace=workspace, job_id=job.pk)
    assert storage.stored_audio_keys(workspace_id=workspace.pk, job_id=job.pk) == []


def unchanged(workspace: Workspace) -> tuple[Any, ...]:
    files = sorted(Path(default_storage.path(f"workspaces/{workspace.pk}")).rglob("*.wav"))
    return account(workspace), SynthesisJob.objects.count(), Segment.objects.count(), files


def test_every_segment_at_fault_is_named_and_nothing_changes(
    source: SynthesisJob, workspace: Workspace
) -> None:
    before = unchanged(workspace)
    with pytest.raises(RevisionInvalid) as refused:
        revise(
            source,
            SegmentEdit(0, "This is <strong>wrong."),
            SegmentEdit(1, "???"),
            SegmentEdit(2, "One."),
            SegmentEdit(2, "Two."),
            SegmentEdit(77, "Nobody."),
        )
    faults = refused.value.details()["segments"]
    assert [(fault["index"], fault["code"]) for fault in faults] == [
        (0, "annotation_invalid"),
        (1, "text_unspeakable"),
        (2, "segment_twice"),
        (77, "segment_unknown"),
    ]
    assert faults[0]["mistakes"][0]["start"] == 8
    assert "Segment 1" in refused.value.text()
    assert unchanged(workspace) == before


def test_a_job_that_is_not_done_or_failed_or_canceled_is_refused(
    submit: Submit, workspace: Workspace
) -> None:
    make_device()
    job = submit(TEXT)
    for state in ("queued", "running", "failed", "canceled"):
        SynthesisJob.objects.filter(pk=job.pk).update(state=state)
        before = unchanged(workspace)
        with pytest.raises(JobNotSucceeded):
            revise(job, SegmentEdit(0, "Other words."))
        assert unchanged(workspace) == before


def test_audio_that_is_gone_cannot_be_kept(source: SynthesisJob, workspace: Workspace) -> None:
    storage.delete(segments_of(source)[2].audio_key)
    before = unchanged(workspace)
    with pytest.raises(AudioGone):
        revise(source, SegmentEdit(0, "Other words."))
    assert unchanged(workspace) == before
    # The one that is said anew needs none.
    job = revise(source, SegmentEdit(2, "Other words."))
    assert job.reused_count == source.segment_count - 1
    Segment.objects.filter(job=source).update(audio_key="")
    with pytest.raises(AudioGone):
        quote_revision(workspace=workspace, user=None, job_id=source.pk, edits=[SegmentEdit(0, seed=1)])


def test_nothing_left_is_no_text(source: SynthesisJob, workspace: Workspace) -> None:
    before = unchanged(workspace)
    with pytest.raises(TextEmpty):
        revise(source, *(SegmentEdit(each.index, "") for each in segments_of(source)))
    assert unchanged(workspace) == before


def test_another_workspace_finds_no_such_job(source: SynthesisJob, workspace: Workspace) -> None:
    theirs = Workspace.objects.create(name="Theirs", kind="team")
    before = unchanged(workspace)
    with pytest.raises(JobNotFound):
        revise(source, SegmentEdit(0, seed=1), workspace=theirs)
    with pytest.raises(JobNotFound):
        quote_revision(workspace=theirs, user=None, job_id=source.pk, edits=[SegmentEdit(0, seed=1)])
    assert unchanged(workspace) == before


def test_a_deleted_voice_speaks_no_more_but_what_it_spoke_is_kept(source: SynthesisJob, voice: Voice) -> None:
    Voice.objects.filter(pk=voice.pk).update(state="deleted")
    with pytest.raises(RevisionInvalid) as refused:
        revise(source, SegmentEdit(0, "Other words."))
    assert [fault["code"] for fault in refused.value.details()["segments"]] == ["voice_not_found"]
    assert revise(source, SegmentEdit(0, "")).state == JobState.SUCCEEDED


def test_a_key_sent_twice_is_one_revision(source: SynthesisJob, workspace: Workspace) -> None:
    first = revise(source, SegmentEdit(0, seed=5), key="once")
    before = unchanged(workspace)
    assert revise(source, SegmentEdit(0, seed=5), key="once").pk == first.pk
    assert unchanged(workspace) == before


def test_chapters_and_speakers_go_along(source: SynthesisJob) -> None:
    rows = segments_of(source)
    chapters = [{"title": rows[0].text.strip(), "first_index": 0}, {"title": "", "first_index": 2}]
    SynthesisJob.objects.filter(pk=source.pk).update(chapters=chapters)
    Segment.objects.filter(job=source, index__gte=2).update(chapter=1, speaker="Alice")
    job = revise(source, SegmentEdit(1, ""))
    assert job.chapters == [chapters[0], {"title": "", "first_index": 1}]
    assert [(each.chapter, each.speaker) for each in segments_of(job)] == [(0, "")] + [(1, "Alice")] * (
        len(rows) - 2
    )
    gone = revise(source, SegmentEdit(0, ""), SegmentEdit(1, ""))
    assert gone.chapters == [{"title": "", "first_index": 0}]
    assert {each.chapter for each in segments_of(gone)} == {0}


def test_an_edited_title_stays_one_segment(submit: Submit) -> None:
    make_device()
    job = submit(f"Chapter 1\n\n{TEXT}\n\nChapter 2\n\n{TEXT}")
    speak_all()
    job.refresh_from_db()
    second = job.chapters[1]["first_index"]
    old = segments_of(job)
    lines = (
        "The first chapter, in which the report is opened for all.\nAnd in which nobody hurries to close it."
    )
    one_line = lines.replace("\n", " ")
    revised = revise(job, SegmentEdit(0, lines), SegmentEdit(second, lines))
    assert revised.chapters == [
        {"title": one_line, "first_index": 0},
        {"title": one_line, "first_index": second},
    ]
    new = segments_of(revised)
    assert [each.text.strip() for each in new if not each.reused] == [one_line, one_line]
    assert [each.text for each in new if each.reused] == [
        each.text for each in old if each.index not in (0, second)
    ]
    assert revised.text.count(one_line) == 2
    # What is said below a title may be as many segments as it takes.
    assert revise(job, SegmentEdit(1, " ".join([one_line] * 6))).segment_count > len(old)


def test_who_says_his_own_name_keeps_it_before_other_words(submit: Submit, voice: Voice) -> None:
    make_device()
    job = submit(
        "Anna: Anna\nBob: And I am Bob, who speaks after her.\nAnna: Anna",
        mode="script",
        cast={"Anna": voice.pk, "Bob": voice.pk},
    )
    speak_all()
    job.refresh_from_db()
    assert [segment.text.strip() for segment in segments_of(job)][::2] == ["Anna", "Anna"]
    assert revise(job, SegmentEdit(0, "Hello")).text == job.text.replace("Anna\n", "Hello\n")
    assert revise(job, SegmentEdit(2, "Hello")).text == job.text[: -len("Anna")] + "Hello"
    assert revise(job, SegmentEdit(0, "")).text == job.text.removeprefix("Anna:Anna\n").removeprefix(
        "Anna: Anna\n"
    )


def test_a_missing_job_is_not_found(workspace: Workspace) -> None:
    with pytest.raises(JobNotFound):
        quote_revision(workspace=workspace, user=None, job_id=uuid.uuid4(), edits=[SegmentEdit(0, seed=1)])


def test_what_stays_of_a_request_does_not_tell_its_text(source: SynthesisJob) -> None:
    """The digest outlives a deleted job, so that its key stays used: it is keyed, as those of phrases are."""
    job = revise(source, SegmentEdit(0, "Hello."), key="once")
    request = JobRequest(voice_id=source.voice_id, text="Hello.")
    own = request.fingerprint()
    with override_settings(SECRET_KEY="another key of the same length, which is no secret"):
        assert request.fingerprint() != own
        with pytest.raises(IdempotencyKeyReused):
            revise(source, SegmentEdit(0, "Hello."), key="once")
    assert revise(source, SegmentEdit(0, "Hello."), key="once").pk == job.pk
