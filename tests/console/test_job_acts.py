"""What operators find out about a job and do to it, with the money and the audit log that belong to it."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User, Workspace
from billing.models import CreditAccount, Hold, LedgerTransaction
from billing.services import holds
from portal.console.job_acts import refund_for_operator
from portal.lib.errors import Conflict
from tests.factories import finish_job, make_job
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db


def available(workspace: Workspace) -> int:
    return CreditAccount.objects.get(workspace_id=workspace.pk).available_micros


@pytest.fixture
def paid_job(alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    """A job that ended and cost 1,000 micros."""
    job = make_job(alice_workspace, alice, alices_voice, text="What only Alice may hear.")
    finish_job(job)
    attempt = job.attempts.get()
    holds.capture(job_id=job.pk, attempt_id=attempt.pk, amount_micros=1_000)
    holds.release(job_id=job.pk)
    SynthesisJob.objects.filter(pk=job.pk).update(charged_micros=1_000)
    job.refresh_from_db()
    return job


def test_a_waiting_job_is_canceled_with_a_reason(
    operator: User, operator_client: Client, alices_job: SynthesisJob, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    address = f"/console/jobs/{alices_job.pk}/cancel/"
    assert "What is being spoken stops" in operator_client.get(address).content.decode()
    answer = operator_client.post(address, {"reason": "It was sent by mistake"})
    assert answer["Location"] == f"/console/jobs/{alices_job.pk}/"
    alices_job.refresh_from_db()
    assert alices_job.state == "canceled"
    assert available(alice_workspace) == before + alices_job.held_micros
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.object_id, entry.actor) == ("job.cancel", str(alices_job.pk), operator)
    assert (entry.before, entry.after) == ({"state": "queued"}, {"state": "canceled"})
    page = operator_client.get(answer["Location"]).content.decode()
    assert "It was sent by mistake" in page
    assert "job-cancel" not in page


def test_no_job_is_canceled_without_a_reason(operator_client: Client, alices_job: SynthesisJob) -> None:
    operator_client.post(f"/console/jobs/{alices_job.pk}/cancel/", {"reason": " "})
    alices_job.refresh_from_db()
    assert alices_job.state == "queued"
    assert AuditEntry.objects.count() == 0


def test_a_job_that_ended_is_not_canceled(operator_client: Client, paid_job: SynthesisJob) -> None:
    answer = operator_client.post(f"/console/jobs/{paid_job.pk}/cancel/", {"reason": "Too late"})
    assert answer.status_code == 409
    paid_job.refresh_from_db()
    assert paid_job.state == "succeeded"
    assert AuditEntry.objects.count() == 0


def test_a_refund_gives_everything_back_once(
    operator_client: Client, paid_job: SynthesisJob, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    address = f"/console/jobs/{paid_job.pk}/refund/"
    assert "CN¥0.001" in operator_client.get(address).content.decode()
    operator_client.post(address, {"reason": "It stuttered"})
    assert available(alice_workspace) == before + 1_000
    paid_job.refresh_from_db()
    assert (paid_job.state, paid_job.charged_micros) == ("succeeded", 0)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.reason) == ("job.refund", "It stuttered")
    assert (entry.before, entry.after) == (
        {"charged_micros": 1_000},
        {"charged_micros": 0, "refunded_micros": 1_000},
    )
    assert operator_client.post(address, {"reason": "Once more"}).status_code == 409
    assert available(alice_workspace) == before + 1_000
    assert AuditEntry.objects.count() == 1


def test_two_refunds_at_once_give_it_back_once(operator: User, paid_job: SynthesisJob) -> None:
    assert refund_for_operator(job_id=paid_job.pk, actor=operator, reason="First") == 1_000
    with pytest.raises(Conflict):
        refund_for_operator(job_id=paid_job.pk, actor=operator, reason="Second")
    assert LedgerTransaction.objects.filter(kind="refund").count() == 1
    assert AuditEntry.objects.count() == 1


def test_a_live_job_is_not_refunded(
    operator: User, operator_client: Client, alices_job: SynthesisJob
) -> None:
    answer = operator_client.post(f"/console/jobs/{alices_job.pk}/refund/", {"reason": "Early"})
    assert answer.status_code == 409
    with pytest.raises(Conflict):
        refund_for_operator(job_id=alices_job.pk, actor=operator, reason="Early")
    assert Hold.objects.get().state == "open"
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("act", ["cancel", "refund"])
def test_a_customer_does_neither(
    alice_client: Client, alices_job: SynthesisJob, paid_job: SynthesisJob, act: str
) -> None:
    for job in (alices_job, paid_job):
        assert alice_client.post(f"/console/jobs/{job.pk}/{act}/", {"reason": "Mine"}).status_code == 404
    assert AuditEntry.objects.count() == 0
    assert LedgerTransaction.objects.filter(kind="refund").count() == 0


def test_a_jobs_page_shows_its_attempts_and_its_money_and_not_its_words(
    operator_client: Client, paid_job: SynthesisJob
) -> None:
    paid_job.attempts.update(error_code="gpu_oom", error_detail="out of memory in speak")
    page = operator_client.get(f"/console/jobs/{paid_job.pk}/").content.decode()
    for shown in (
        str(paid_job.pk),
        "alice@example.com",
        "gpu_oom",
        "out of memory in speak",
        "cpu:0@test",
        "Set aside for a job",
        "Charged for speech",
        "Set free again",
    ):
        assert shown in page
    assert "only Alice may" not in page
    assert "Alice&#x27;s voice" not in page


def test_there_is_no_page_of_a_job_that_never_was(operator_client: Client, alices_job: SynthesisJob) -> None:
    assert operator_client.get(reverse("console_job", args=[uuid.uuid4()])).status_code == 404
    assert operator_client.get(f"/console/jobs/{alices_job.pk}/explode/").status_code == 404
