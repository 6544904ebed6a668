"""What a program hears of: jobs, budgets, the balance, invoices, payments. In the fact's own transaction, and once."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User, WebhookDelivery, Workspace
from accounts.services.webhook_endpoints import change_endpoint
from billing.models import BillingAlert, BillingProfile, BudgetScope, Invoice, Payment, PaymentPurpose
from billing.payments.base import PaymentReport, ReportState
from billing.services.alerts import raise_alerts
from billing.services.budgets import set_budget
from billing.services.invoice_run import close_all
from billing.services.payment_settlement import apply_report
from portal.lib.clock import database_now, now
from tests.billing.test_budgets import spent
from tests.factories import make_job
from tests.pages.money import used
from tests.pool.conftest import make_device
from tests.pool.test_attempts import claim_next, spoken
from tests.webhooks.rows import make_endpoint
from tts.models import SynthesisJob, Voice
from tts.services.attempts import Fenced, fail_attempt, finish_attempt
from tts.services.bind import bind_idle_slots
from tts.services.jobs import cancel_job

TEXT = "A private text that is nobody else's business."


def told() -> list[tuple[str, dict[str, Any]]]:
    rows = WebhookDelivery.objects.order_by("created_at", "event_type")
    return [(row.event_type, row.data) for row in rows]


# -- Jobs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def job(transactional_db: None, alice: User, alice_workspace: Workspace, alices_voice: Voice) -> SynthesisJob:
    make_device()
    return make_job(alice_workspace, alice, alices_voice, text=TEXT)


def work() -> Any:
    bind_idle_slots()
    return claim_next()


def test_a_job_that_was_spoken_is_told_with_its_numbers_and_without_its_text(
    job: SynthesisJob, alice_workspace: Workspace
) -> None:
    make_endpoint(alice_workspace)
    mine = work()
    finish_attempt(work=mine, outcome=spoken(mine, gpu_ms=1000, audio_ms=2000))
    job.refresh_from_db()
    ((event_type, data),) = told()
    assert event_type == "job.succeeded"
    assert data == {
        "workspace_id": str(alice_workspace.pk),
        "job_id": str(job.pk),
        "voice_id": str(job.voice_id),
        "state": "succeeded",
        "error_code": "",
        "job_class": job.job_class,
        "characters": job.characters,
        "segment_count": 1,
        "audio_ms": 2000,
        "gpu_ms": 1000,
        "charged_micros": job.charged_micros,
        "created_at": job.created_at.isoformat(),
        "finished_at": job.finished_at.isoformat() if job.finished_at else "",
    }
    assert job.charged_micros > 0
    assert TEXT not in json.dumps(data)


def test_a_job_that_failed_and_one_that_was_canceled_are_told(
    job: SynthesisJob, alice: User, alice_workspace: Workspace, alices_voice: Voice
) -> None:
    make_endpoint(alice_workspace)
    fail_attempt(work=work(), error_code="text_unspeakable", error_detail="", gpu_ms=10, blame_user=True)
    waiting = make_job(alice_workspace, alice, alices_voice)
    cancel_job(workspace=alice_workspace, job_id=waiting.pk)
    assert [
        (event_type, data["job_id"], data["state"], data["error_code"]) for event_type, data in told()
    ] == [
        ("job.failed", str(job.pk), "failed", "text_unspeakable"),
        ("job.canceled", str(waiting.pk), "canceled", ""),
    ]


def settlement(number_of_endpoints: int, workspace: Workspace, events: list[str]) -> list[str]:
    """The statements of one settlement, in a workspace with so many endpoints."""
    for _number in range(number_of_endpoints):
        make_endpoint(workspace, events=events)
    mine = work()
    outcome = spoken(mine)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        finish_attempt(work=mine, outcome=outcome)
    return [query["sql"] for query in queries.captured_queries]


def about_webhooks(statements: list[str]) -> list[str]:
    return [sql for sql in statements if "accounts_webhook" in sql]


def test_who_has_no_endpoint_for_it_pays_no_statement(
    job: SynthesisJob, alice: User, alice_workspace: Workspace, alices_voice: Voice
) -> None:
    without = settlement(0, alice_workspace, [])
    make_job(alice_workspace, alice, alices_voice, text=TEXT)
    for_others = settlement(2, alice_workspace, ["balance.low", "job.failed"])
    assert about_webhooks(without) == about_webhooks(for_others) == []
    assert len(without) == len(for_others)
    assert told() == []


def test_who_has_endpoints_pays_one_statement_however_many_they_are(
    job: SynthesisJob, alice: User, alice_workspace: Workspace, alices_voice: Voice
) -> None:
    without = settlement(0, alice_workspace, [])
    make_job(alice_workspace, alice, alices_voice, text=TEXT)
    with_some = settlement(3, alice_workspace, ["job.succeeded"])
    assert len(about_webhooks(with_some)) == 1
    assert len(with_some) == len(without) + 1
    assert [event_type for event_type, _data in told()] == ["job.succeeded"] * 3


def test_a_settlement_that_is_fenced_tells_nothing(job: SynthesisJob, alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    mine = work()
    outcome = spoken(mine)
    finish_attempt(work=mine, outcome=outcome)
    with pytest.raises(Fenced):
        finish_attempt(work=mine, outcome=outcome)
    assert len(told()) == 1


# -- Money -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_budgets_and_the_balance_are_told_when_people_are_and_as_often(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    budget = set_budget(
        workspace_id=alice_workspace.pk, scope=BudgetScope.WORKSPACE, subject_id=None, monthly_micros=1_000
    )
    spent(alice_workspace.pk, 850)
    assert raise_alerts() == 1
    spent(alice_workspace.pk, 150)
    BillingProfile.objects.create(workspace_id=alice_workspace.pk, low_balance_micros=10**12)
    assert raise_alerts() == 2
    assert raise_alerts() == 0
    events = dict(told())
    assert set(events) == {"budget.soft_reached", "budget.hard_reached", "balance.low"}
    assert len(told()) == BillingAlert.objects.count() == 3
    soft = events["budget.soft_reached"]
    assert (soft["budget_id"], soft["spent_micros"], soft["budget_micros"]) == (str(budget.pk), 850, 1_000)
    assert (soft["threshold_percent"], soft["is_hard"], soft["month"]) == (80, True, f"{now():%Y-%m}")
    assert events["budget.hard_reached"]["spent_micros"] == 1_000
    assert events["balance.low"]["threshold_micros"] == 10**12


def payment_of(workspace_id: uuid.UUID) -> Payment:
    return Payment.objects.create(
        workspace_id=workspace_id,
        provider="test",
        purpose=PaymentPurpose.TOP_UP,
        currency="CNY",
        amount_micros=5_000_000,
        idempotency_key=str(uuid.uuid4()),
    )


@pytest.mark.django_db
def test_payments_are_told_once_however_often_they_are_reported(alice_workspace: Workspace) -> None:
    make_endpoint(alice_workspace)
    paid, refused = payment_of(alice_workspace.pk), payment_of(alice_workspace.pk)
    success = PaymentReport(
        state=ReportState.SUCCEEDED, reference="there-1", amount_micros=5_000_000, currency="CNY"
    )
    for _time in range(2):
        apply_report(payment_id=paid.pk, report=success)
        apply_report(
            payment_id=refused.pk, report=PaymentReport(state=ReportState.FAILED, failure_code="declined")
        )
    events = dict(told())
    assert len(told()) == 2
    assert events["payment.succeeded"]["payment_id"] == str(paid.pk)
    assert events["payment.succeeded"]["amount_micros"] == 5_000_000
    assert events["payment.succeeded"]["state"] == "succeeded"
    assert events["payment.failed"]["payment_id"] == str(refused.pk)
    assert (events["payment.failed"]["state"], events["payment.failed"]["failure_code"]) == (
        "failed",
        "declined",
    )


@pytest.mark.django_db
def test_invoices_are_told_with_their_numbers(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    make_endpoint(alice_workspace)
    day = (now() - timedelta(days=40)).date()
    for workspace in (alice_workspace, charlie_workspace):
        used(workspace.pk, day)
    close_all(month=day.replace(day=1), at=database_now())
    assert Invoice.objects.filter(state="final").count() == 2
    invoice = Invoice.objects.get(workspace_id=alice_workspace.pk)
    ((event_type, data),) = told()
    assert (event_type, data["invoice_id"], data["number"]) == (
        "invoice.finalized",
        str(invoice.pk),
        invoice.number,
    )
    assert (data["total_micros"], data["due_micros"]) == (invoice.total_micros, invoice.due_micros)
    assert "parties" not in data


@pytest.mark.django_db
def test_an_endpoint_that_is_switched_on_later_hears_of_what_comes_then(alice_workspace: Workspace) -> None:
    endpoint, _secret = make_endpoint(alice_workspace)
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=False)
    apply_report(
        payment_id=payment_of(alice_workspace.pk).pk, report=PaymentReport(state=ReportState.EXPIRED)
    )
    assert told() == []
    change_endpoint(workspace=alice_workspace, endpoint_id=endpoint.pk, is_on=True)
    apply_report(
        payment_id=payment_of(alice_workspace.pk).pk, report=PaymentReport(state=ReportState.EXPIRED)
    )
    assert [event_type for event_type, _data in told()] == ["payment.failed"]
