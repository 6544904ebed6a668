"""A worker says words as the version says that its job was submitted with, whatever is saved afterwards."""

from __future__ import annotations

import pytest

from accounts.models import User, Workspace
from tests.pool.conftest import Submit, make_device
from tts.engine.process import EngineProcess
from tts.models import Attempt, SynthesisJob
from tts.services.claiming import claim_attempt
from tts.services.pronunciations import save_pronunciations
from tts.services.sweep import sweep
from tts.speaking import Speaking
from tts.text.estimate import estimate_audio_ms
from tts.text.pronunciation import Entry

pytestmark = pytest.mark.django_db(transaction=True)


def asked_of(engine: str, job: SynthesisJob) -> tuple[str, Speaking]:
    """The text that an engine of this name would be sent for the job's only segment. The engine is never started."""
    make_device()
    sweep()
    work = claim_attempt(attempt_id=Attempt.objects.get(job=job).pk)
    speaking = Speaking(work, EngineProcess(None, engine, {}, {}), wanted=lambda: False, on_sent=lambda: None)
    return speaking._request(0, work.segment.text).text, speaking


def test_a_worker_says_the_version_of_its_job(workspace: Workspace, customer: User, submit: Submit) -> None:
    save_pronunciations(
        workspace=workspace, user=customer, entries=[Entry("SQL", "sequel 2")], expected_number=0
    )
    job = submit("We speak SQL.")
    save_pronunciations(
        workspace=workspace, user=customer, entries=[Entry("SQL", "other")], expected_number=1
    )
    text, speaking = asked_of("kokoro", job)
    assert text == "We speak sequel two."
    assert speaking.work.segment.text == "We speak SQL."


def test_an_engine_that_reads_as_written_is_given_what_was_written(
    workspace: Workspace, customer: User, submit: Submit
) -> None:
    save_pronunciations(
        workspace=workspace, user=customer, entries=[Entry("SQL", "sequel")], expected_number=0
    )
    text, _ = asked_of("simulated", submit("We speak SQL."))
    assert text == "We speak SQL."


def test_the_segment_has_time_for_what_is_said(workspace: Workspace, customer: User, submit: Submit) -> None:
    said = "a very long saying " * 10
    before = submit("We speak SQL.").segments.get()
    save_pronunciations(workspace=workspace, user=customer, entries=[Entry("SQL", said)], expected_number=0)
    after = submit("We speak SQL.").segments.get()
    factor = estimate_audio_ms(f"We speak {said.strip()}.") / estimate_audio_ms("We speak SQL.")
    assert after.estimate_gpu_ms == pytest.approx(factor * before.estimate_gpu_ms, rel=0.02)
    assert after.characters == before.characters
