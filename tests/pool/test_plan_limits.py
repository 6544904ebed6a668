"""What a plan allows is kept where work is taken in, and refused without a trace."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from accounts.models import Workspace
from billing.services.profiles import set_time_zone
from portal.lib.clock import now
from portal.lib.errors import DomainError
from tests.billing.books import all_books
from tests.pool.conftest import Submit, make_device
from tts.errors import DailyCharactersReached, JobTooLong, StorageFull
from tts.models import Segment, SynthesisJob
from tts.services.attempts import Outcome, finish_attempt
from tts.services.claiming import claim_attempt
from tts.services.retention import delete_expired_jobs
from tts.services.stored import BYTES_PER_MS, stored_bytes
from tts.services.sweep import sweep
from tts.states import JobState

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "Twenty-one characters"


def limit(workspace: Workspace, **limits: int) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(**limits)
    workspace.refresh_from_db()


def refused(act: Callable[[], object], error: type[DomainError]) -> DomainError:
    before = (all_books(), SynthesisJob.objects.count(), Segment.objects.count())
    with pytest.raises(error) as raised:
        act()
    assert (all_books(), SynthesisJob.objects.count(), Segment.objects.count()) == before
    return raised.value


def spoken(submit: Submit, *, audio_ms: int = 1_000) -> SynthesisJob:
    job = submit(TEXT)
    sweep()
    attempt = job.attempts.get()
    finish_attempt(
        work=claim_attempt(attempt_id=attempt.pk),
        outcome=Outcome(gpu_ms=100, audio_ms=audio_ms, audio_key=f"workspaces/test/{attempt.pk}.wav"),
    )
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    return job


def test_a_job_longer_than_the_plan_allows_is_refused(submit: Submit, workspace: Workspace) -> None:
    limit(workspace, longest_job_characters_limit=len(TEXT) - 1)
    refused(lambda: submit(TEXT), JobTooLong)
    limit(workspace, longest_job_characters_limit=len(TEXT))
    submit(TEXT)


def made_ago(job: SynthesisJob, age: timedelta) -> None:
    SynthesisJob.objects.filter(pk=job.pk).update(created_at=now() - age)


def test_a_days_characters_are_those_of_the_last_24_hours(submit: Submit, workspace: Workspace) -> None:
    limit(workspace, characters_per_day_limit=2 * len(TEXT))
    for age in (timedelta(hours=24), timedelta(hours=23)):
        made_ago(submit(TEXT), age)
    submit(TEXT)
    error = refused(lambda: submit(TEXT), DailyCharactersReached)
    assert (error.code, error.status) == ("daily_characters_reached", 429)
    # The hour until the second of them is a day old, less what this test took.
    assert error.retry_after_s is not None
    assert 3_000 < error.retry_after_s <= 3_600
    made_ago(SynthesisJob.objects.order_by("created_at")[1], timedelta(hours=24))
    submit(TEXT)


def test_more_than_the_plan_allows_in_a_day_is_not_promised_for_later(
    submit: Submit, workspace: Workspace
) -> None:
    limit(workspace, characters_per_day_limit=len(TEXT) - 1)
    assert refused(lambda: submit(TEXT), DailyCharactersReached).retry_after_s is None


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"])
def test_another_time_zone_gives_no_second_days_characters(
    submit: Submit, workspace: Workspace, zone: str
) -> None:
    limit(workspace, characters_per_day_limit=len(TEXT))
    # Long enough ago for it to be yesterday in one of these zones.
    made_ago(submit(TEXT), timedelta(hours=23, minutes=50))
    set_time_zone(workspace_id=workspace.pk, time_zone=zone)
    refused(lambda: submit(TEXT), DailyCharactersReached)


def test_storage_is_what_is_kept(submit: Submit, workspace: Workspace) -> None:
    make_device()
    spoken(submit, audio_ms=1_000)
    assert stored_bytes(workspace.pk) == 1_000 * BYTES_PER_MS
    limit(workspace, storage_bytes_limit=1_000 * BYTES_PER_MS)
    refused(lambda: submit(TEXT), StorageFull)


def test_jobs_are_kept_for_as_long_as_the_plan_says(submit: Submit, workspace: Workspace) -> None:
    make_device()
    old, young = spoken(submit), spoken(submit)
    SynthesisJob.objects.filter(pk=old.pk).update(finished_at=now() - timedelta(days=8))
    assert delete_expired_jobs() == 0
    limit(workspace, retention_days=7)
    before = all_books()
    assert (delete_expired_jobs(), delete_expired_jobs()) == (1, 0)
    old.refresh_from_db()
    young.refresh_from_db()
    assert old.deleted_at is not None
    assert (old.text, old.charged_micros) == ("", young.charged_micros)
    assert young.deleted_at is None
    assert all_books() == before
