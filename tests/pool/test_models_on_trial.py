"""Segments go to devices that offer what they need, and a share of the jobs to models on trial."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEntry, User, Workspace
from portal.lib.errors import InvalidInput
from tests.factories import make_voice
from tests.pool.conftest import Submit, make_device
from tts.engine.capabilities import Capabilities
from tts.errors import NotOffered
from tts.models import Attempt, Device, DeviceSlot, FairShareClass, ModelShare, Segment, SynthesisJob
from tts.services.attempts import fail_attempt
from tts.services.bind import bind_next
from tts.services.claiming import claim_attempt
from tts.services.model_shares import drawn_engine, place_of, set_share
from tts.services.node_state import capability_columns
from tts.states import AttemptState, DeviceState, SegmentState

TRIAL = "simulated-b"
LONG = "A sentence that goes on for a while, so that it is cut. " * 14


@pytest.fixture
def operator(customer: User) -> User:
    return User.objects.create_user("operator@example.com", "correct horse battery", is_staff=True)


def device_with(name: str, *, engine: str = "simulated", can: Capabilities | None = None) -> Device:
    device = make_device(name)
    changes = capability_columns(can) if can else {}
    Device.objects.filter(pk=device.pk).update(engine=engine, **changes)
    device.refresh_from_db()
    return device


def put_away(device: Device) -> None:
    Device.objects.filter(pk=device.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))


def bound_to(device: Device) -> Segment | None:
    """What the device's idle slot is given."""
    DeviceSlot.objects.filter(device=device).update(attempt_id=None)
    binding = bind_next(slot=DeviceSlot.objects.get(device=device))
    return Segment.objects.get(attempts__id=binding.attempt_id) if binding else None


def waiting_job(submit: Submit, *, engine: str = "", text: str = "Hello there.") -> SynthesisJob:
    """A job that has drawn a model, or the pool's own, while no device is there to take it."""
    alive = dict(Device.objects.values_list("pk", "heartbeat_at"))
    Device.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=5))
    job = submit(text)
    for pk, heartbeat_at in alive.items():
        Device.objects.filter(pk=pk).update(heartbeat_at=heartbeat_at)
    SynthesisJob.objects.filter(pk=job.pk).update(engine=engine)
    Segment.objects.filter(job=job).update(engine=engine)
    return job


# --- what is needed and offered -----------------------------------------------------------------------------------


def test_a_segment_goes_only_to_a_device_that_offers_what_it_needs(submit: Submit):
    english = device_with("english", can=Capabilities(languages=("en",)))
    both = device_with("both", can=Capabilities(languages=("zh", "en")))
    job = waiting_job(submit, text="你好，世界。")
    assert Segment.objects.get(job=job).needs == ["language:zh", "preset"]
    assert bound_to(english) is None
    taken = bound_to(both)
    assert taken is not None
    assert taken.job_id == job.pk


def test_a_device_that_has_said_nothing_is_given_everything(submit: Submit):
    silent = device_with("silent")
    Device.objects.filter(pk=silent.pk).update(**capability_columns(None))
    waiting_job(submit, text="你好，世界。")
    assert bound_to(silent) is not None


def test_what_no_device_offers_is_refused_and_nothing_is_stored(
    submit: Submit, customer: User, workspace: Workspace
):
    device_with("presets", can=Capabilities(languages=("zh", "en")))
    clone = make_voice(workspace, customer)
    with pytest.raises(NotOffered):
        submit("Hello there.", voice_id=clone.pk)
    assert not SynthesisJob.objects.exists()
    device_with("clones", can=Capabilities(languages=("en",), modes=("preset", "clone")))
    submit("Hello there.", voice_id=clone.pk)
    assert Segment.objects.get().needs == ["clone", "language:en"]


def test_a_retry_does_not_wait_for_a_device_that_may_not_speak_it(submit: Submit):
    both = device_with("both", can=Capabilities(languages=("zh", "en")))
    device_with("english", can=Capabilities(languages=("en",)))
    waiting_job(submit, text="你好，世界。")
    segment = fail_on(both)
    again = bound_to(both)
    assert again is not None
    assert again.pk == segment.pk


def fail_on(device: Device) -> Segment:
    """The device takes a segment and fails it."""
    segment = bound_to(device)
    assert segment is not None
    attempt = Attempt.objects.get(segment=segment, state=AttemptState.BOUND)
    fail_attempt(
        work=claim_attempt(attempt_id=attempt.pk),
        error_code="engine_exception",
        error_detail="",
        gpu_ms=0,
        blame_user=False,
    )
    return segment


# --- models on trial ----------------------------------------------------------------------------------------------


def test_a_share_is_drawn_by_the_jobs_number_alone(customer: User):
    device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    jobs = [uuid.UUID(int=number * 0x9E3779B97F4A7C15) for number in range(4000)]
    drawn = [job for job in jobs if place_of(job) < 500]
    assert 150 <= len(drawn) <= 250  # 5 % of 4000 are 200, with a standard deviation of 14
    others = [job for job in jobs if job not in drawn]
    assert {drawn_engine(job_id=job, needs=["preset"]) for job in drawn[:10]} == {TRIAL}
    assert {drawn_engine(job_id=job, needs=["preset"]) for job in others[:10]} == {""}


def test_shares_of_two_models_lie_side_by_side(customer: User):
    device_with("trial", engine=TRIAL)
    device_with("other", engine="kokoro")
    ModelShare.objects.create(engine=TRIAL, share=3000)
    ModelShare.objects.create(engine="kokoro", share=7000)
    for number in range(40):
        job = uuid.UUID(int=number * 0x9E3779B97F4A7C15)
        expected = "kokoro" if place_of(job) < 7000 else TRIAL
        assert drawn_engine(job_id=job, needs=[]) == expected


def test_a_model_whose_devices_are_away_or_cannot_speak_it_is_not_drawn(customer: User):
    trial = device_with("trial", engine=TRIAL, can=Capabilities(languages=("en",)))
    ModelShare.objects.create(engine=TRIAL, share=10_000)
    job = uuid.uuid4()
    assert drawn_engine(job_id=job, needs=["preset", "language:en"]) == TRIAL
    assert drawn_engine(job_id=job, needs=["clone", "language:en"]) == ""
    put_away(trial)
    assert drawn_engine(job_id=job, needs=["preset", "language:en"]) == ""


def test_a_submitted_job_and_all_its_segments_have_the_model_that_it_drew(submit: Submit):
    device_with("own")
    device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=10_000)
    job = submit(LONG)
    segments = Segment.objects.filter(job=job)
    assert job.engine == TRIAL
    assert segments.count() > 1
    assert set(segments.values_list("engine", flat=True)) == {TRIAL}


def test_each_job_is_spoken_by_the_model_that_it_drew(submit: Submit):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    ordinary = waiting_job(submit, text=LONG)
    on_trial = waiting_job(submit, engine=TRIAL, text=LONG)
    for device, job in ((trial, on_trial), (own, ordinary)):
        count = Segment.objects.filter(job=job).count()
        assert count > 1
        for _ in range(count):
            segment = bound_to(device)
            assert segment is not None
            assert segment.job_id == job.pk
        assert bound_to(device) is None


def test_while_its_devices_are_away_the_pools_own_speak_the_whole_job(submit: Submit):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    job = waiting_job(submit, engine=TRIAL, text=LONG)
    assert bound_to(own) is None
    put_away(trial)
    assert bound_to(own) is not None
    Device.objects.filter(pk=trial.pk).update(heartbeat_at=timezone.now())
    # It is back: what began without it goes on without it.
    assert bound_to(trial) is None
    assert bound_to(own) is not None
    assert set(Segment.objects.filter(job=job).values_list("engine", flat=True)) == {""}


def test_what_a_model_on_trial_fails_the_pools_own_speak(submit: Submit):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    job = waiting_job(submit, engine=TRIAL, text=LONG)
    # Another device may not take it at once: the failure frees the segment for whoever is idle.
    DeviceSlot.objects.filter(device=own).update(ready=False)
    failed = fail_on(trial)
    DeviceSlot.objects.filter(device__in=[own, trial]).update(ready=True, attempt_id=None)
    again = bound_to(own)
    assert again is not None
    assert again.pk == failed.pk
    waiting = Segment.objects.filter(job=job, state=SegmentState.QUEUED)
    assert set(waiting.values_list("engine", flat=True)) <= {""}


def test_a_model_on_trial_speaks_everything_while_no_other_is_ready(submit: Submit):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    waiting_job(submit)
    assert bound_to(trial) is None
    put_away(own)
    assert bound_to(trial) is not None


def test_a_model_on_trial_finds_its_jobs_behind_many_workspaces_without_any(
    submit: Submit, workspace: Workspace
):
    trial = device_with("trial", engine=TRIAL)
    device_with("own")
    ModelShare.objects.create(engine=TRIAL, share=500)
    on_trial = waiting_job(submit, engine=TRIAL)
    job = waiting_job(submit)
    for number in range(60):
        other = Workspace.objects.create(name=f"other {number}")
        Segment.objects.create(
            job=job,
            workspace=other,
            job_class="interactive",
            index=number + 1,
            text="Hello.",
            characters=6,
            estimate_gpu_ms=10,
            held_gpu_ms=100,
        )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tts_fairsharequeue SET start_tag = 1000000 WHERE workspace_id = %s", [workspace.pk]
        )
    taken = bound_to(trial)
    assert taken is not None
    assert taken.job_id == on_trial.pk


def waiting_segments(job: SynthesisJob, count: int, *, job_class: str, needs: Sequence[str] = ()) -> None:
    """So many segments, each of a workspace of its own."""
    first = Segment.objects.count()
    for number in range(first, first + count):
        Segment.objects.create(
            job=job,
            workspace=Workspace.objects.create(name=f"other {number}"),
            job_class=job_class,
            index=number,
            needs=list(needs),
            text="Hello.",
            characters=6,
            estimate_gpu_ms=10,
            held_gpu_ms=100,
        )


@pytest.mark.parametrize("trial_asks", [False, True])
def test_a_model_on_trial_that_finds_nothing_changes_no_class_share(submit: Submit, trial_asks: bool):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    job = waiting_job(submit)
    waiting_segments(job, 40, job_class="interactive")
    waiting_segments(job, 10, job_class="batch")
    taken = []
    for _turn in range(36):
        if trial_asks:
            assert bound_to(trial) is None
        segment = bound_to(own)
        assert segment is not None
        taken.append(segment.job_class)
    # 16 : 1, as without a trial.
    assert taken.count("batch") == 3


@pytest.mark.parametrize("are_overdue", [False, True])
def test_a_device_finds_what_it_may_speak_behind_many_workspaces_that_need_more(
    submit: Submit, are_overdue: bool
):
    english = device_with("english", can=Capabilities(languages=("en",)))
    device_with("both", can=Capabilities(languages=("zh", "en")))
    job = waiting_job(submit, text="你好，世界。")
    waiting_segments(job, 60, job_class="interactive", needs=["language:zh", "preset"])
    waiting_segments(job, 1, job_class="interactive", needs=["language:en", "preset"])
    if are_overdue:
        Segment.objects.update(created_at=timezone.now() - timedelta(minutes=5))
        FairShareClass.objects.update(picks_since_override=3, overdue_at=None)
    taken = bound_to(english)
    assert taken is not None
    assert taken.needs == ["language:en", "preset"]


def test_a_trial_that_ends_makes_the_model_one_of_the_pools_own(submit: Submit, operator: User):
    trial = device_with("trial", engine=TRIAL)
    device_with("own")
    set_share(engine=TRIAL, share=500, changed_by=operator, reason="a new voice")
    waiting_job(submit)
    assert bound_to(trial) is None
    set_share(engine=TRIAL, share=None, changed_by=operator, reason="good enough")
    assert bound_to(trial) is not None
    acts = (
        AuditEntry.objects.filter(act="model.share").order_by("pk").values_list("before", "after", "reason")
    )
    assert list(acts) == [
        ({"share": None}, {"share": 500}, "a new voice"),
        ({"share": 500}, {"share": None}, "good enough"),
    ]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"share": 10_001}, "share"),
        ({"share": -1}, "share"),
        ({"share": 6_001}, "share"),
        ({"reason": "  "}, "reason"),
        ({"engine": "nobody-has-it"}, "engine"),
    ],
)
def test_a_wrong_share_changes_nothing(changes: dict[str, object], field: str, operator: User):
    device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine="kokoro", share=4_000)
    given = {"engine": TRIAL, "share": 100, "changed_by": operator, "reason": "why", **changes}
    with pytest.raises(InvalidInput) as refused:
        set_share(**given)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert dict(ModelShare.objects.values_list("engine", "share")) == {"kokoro": 4_000}
    assert not AuditEntry.objects.filter(act="model.share").exists()


def test_devices_without_a_state_that_takes_work_are_not_waited_for(submit: Submit):
    own, trial = device_with("own"), device_with("trial", engine=TRIAL)
    ModelShare.objects.create(engine=TRIAL, share=500)
    waiting_job(submit, engine=TRIAL)
    Device.objects.filter(pk=trial.pk).update(state=DeviceState.QUARANTINED)
    assert bound_to(own) is not None
