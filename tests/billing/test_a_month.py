"""A month of simulated life, and then every total that a person can see is the same number."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from prometheus_client.parser import text_string_to_metric_families

from billing.models import (
    BillingProfile,
    Difference,
    GrantKind,
    GrantUse,
    Invoice,
    PlanVersion,
    Reconciliation,
    TransactionKind,
)
from billing.selectors.invoices import name_of
from billing.services.invoice_run import close_due_periods
from billing.services.vouchers import create_batch
from portal.lib.display import money_exact
from tests.billing.books import assert_books_agree
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.month_of_life import YUAN, Life, the_clock_works
from tests.billing.payers import deliver
from tests.billing.speech import plan
from tests.cast import Api, api_of, client_of
from tests.console.rows import somebody
from tests.moved_clock import MovedClock, moved_clock
from tests.pages.reading import text_of
from tts.models import SynthesisJob
from tts.services.attempts import fail_attempt, finish_attempt, stop_attempt
from tts.services.jobs import cancel_job
from tts.states import MAX_ATTEMPTS, JobState

__all__ = ["moved_clock"]
pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "a-token-of-the-tests"
MARCH = {"first_day": "2031-03-01", "last_day": "2031-03-31"}
CENT = 10_000
# A second's welcome, 21 of 31 days of two seconds that are included, and a voucher; all was spent.
GIVEN = 3_000_007 + 2 * 3_000_007 * 21 // 31 + 10 * YUAN
LONG_TEXT = "This is one sentence of a longer text that needs several segments. " * 4


@pytest.fixture
def life(moved_clock: MovedClock, stripe: FakeStripe, settings: Any) -> Life:
    settings.METRICS_TOKEN = TOKEN
    settings.VOICEPOOL = {**settings.VOICEPOOL, "WELCOME_GPU_SECONDS": 1}
    cache.clear()
    return Life(moved_clock, stripe)


# -- The month -----------------------------------------------------------------------------------------------


def signs_up_and_pays(life: Life) -> None:
    client = client_of(life.user)
    client.post(reverse("time_zone_set"), {"time_zone": "Europe/Berlin"})
    BillingProfile.objects.update_or_create(
        pk=life.workspace.pk, defaults={"tax_rate_basis_points": 600, "tax_inclusive": False}
    )
    life.pays()


def takes_a_plan(life: Life, fee: int, *, included_gpu_seconds: int = 0) -> PlanVersion:
    version = plan(fee * YUAN, included_gpu_seconds=included_gpu_seconds)
    page = client_of(life.user).post(
        reverse("plan_change", args=[version.plan.code]),
        {"version": str(version.pk), "begins": "now"},
        follow=True,
    )
    assert f"The plan is “{version.plan.name}” from now on." in text_of(page)
    return version


def speaks(life: Life, gpu_ms: int, device_class: str = "cpu", **options: Any) -> SynthesisJob:
    job_id = life.submits(**options)
    work = life.begins(device_class)
    finish_attempt(work=work, outcome=life.speaks(work, gpu_ms))
    return SynthesisJob.objects.get(pk=job_id)


def cancels(life: Life) -> SynthesisJob:
    job_id = life.submits()
    work = life.begins()
    outcome = life.speaks(work, 777)
    cancel_job(workspace=life.workspace, job_id=job_id)
    stop_attempt(work=work, outcome=outcome, error_code="canceled")
    return SynthesisJob.objects.get(pk=job_id)


def uses_up_what_was_set_aside(life: Life) -> SynthesisJob:
    job_id = life.submits()
    held = SynthesisJob.objects.get(pk=job_id).held_micros
    work = life.begins()
    # The engine stops after the chunk with which it has gone too far.
    gpu_ms = held * 1_000 // work.job.price_version.interactive_gpu_second_micros + 41
    stop_attempt(work=work, outcome=life.speaks(work, gpu_ms), error_code="budget_exhausted")
    return SynthesisJob.objects.get(pk=job_id)


def fails_by_our_fault(life: Life) -> SynthesisJob:
    """Its first segment was spoken and charged; the second never is."""
    job_id = life.submits(text=LONG_TEXT)
    first = life.begins()
    finish_attempt(work=first, outcome=life.speaks(first, 1_111))
    for _ in range(MAX_ATTEMPTS):
        work = life.begins()
        life.speaks(work, 333)
        fail_attempt(work=work, error_code="engine_failed", error_detail="", gpu_ms=333, blame_user=False)
    return SynthesisJob.objects.get(pk=job_id)


def redeems_a_voucher(life: Life) -> None:
    operator = somebody("vouchers@example.com", is_staff=True)
    _batch, (code,) = create_batch(
        name="Spring",
        amount_micros=10 * YUAN,
        currency="CNY",
        count=1,
        expires_at=None,
        credit_days=None,
        created_by_id=operator.pk,
    )
    client_of(life.user).post(reverse("voucher_redeem"), {"code": code})


def is_refunded_by_an_operator(job: SynthesisJob) -> None:
    client = client_of(somebody("refunds@example.com", is_staff=True))
    client.post(
        f"/console/jobs/{job.pk}/refund/",
        {"amount": "0.054321", "reason": "It stuttered", "key": "6f9fd4ab-0f6b-4d3f-8a52-4a8f1c3f3a11"},
    )


def live_through_march(life: Life) -> None:
    signs_up_and_pays(life)
    life.at("2031-03-05T09:00+01:00")
    takes_a_plan(life, 31)
    life.at("2031-03-06T12:00+01:00")
    assert speaks(life, 1_234).state == JobState.SUCCEEDED
    life.at("2031-03-08T12:00+01:00")
    canceled = cancels(life)
    assert (canceled.state, canceled.gpu_ms) == (JobState.CANCELED, 777)
    life.at("2031-03-10T18:00+01:00")
    disputed = life.pays()
    life.at("2031-03-11T09:00+01:00")
    takes_a_plan(life, 62, included_gpu_seconds=2)
    life.at("2031-03-12T12:00+01:00")
    exhausted = uses_up_what_was_set_aside(life)
    assert (exhausted.error_code, exhausted.charged_micros) == ("budget_exhausted", exhausted.held_micros)
    life.at("2031-03-14T12:00+01:00")
    failed = fails_by_our_fault(life)
    assert (failed.state, failed.error_code, failed.charged_micros) == (JobState.FAILED, "engine_failed", 0)
    life.at("2031-03-20T12:00+01:00")
    redeems_a_voucher(life)
    life.at("2031-03-21T23:30+01:00")
    stuttered = speaks(life, 2_345, "h200", job_class="batch")
    life.at("2031-03-22T08:00+01:00")
    is_refunded_by_an_operator(stuttered)
    life.at("2031-03-24T12:00+01:00")
    deliver(life.stripe, "charge.dispute.funds_withdrawn", life.stripe.dispute(disputed.provider_reference))
    # The night in which an hour is missing: before it, after it, and the last minute of a month in summer time.
    for moment in ("2031-03-30T01:59+01:00", "2031-03-30T03:01+02:00", "2031-03-31T23:58+02:00"):
        life.at(moment)
        speaks(life, 1_001, job_class="interactive")
    # A minute after midnight, when it is still March by winter time and by UTC.
    life.at("2031-04-01T00:01+02:00")
    speaks(life, 1_505)


# -- What people see -----------------------------------------------------------------------------------------


def rows_of(response: Any) -> list[dict[str, str]]:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def in_micros(text: str) -> int:
    return int(Decimal(text) * YUAN)


def whole_ledger(api: Api) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    address = "/api/v1/ledger?page_size=10"
    while address:
        answer = api.get(address).json()
        found += answer["results"]
        address = answer["next"]
    return found


def moved_by(ledger: list[dict[str, Any]], *kinds: TransactionKind) -> int:
    """What movements of these kinds did to the balance, in micros."""
    return sum(
        row["available"]["amount_micros"] + row["held"]["amount_micros"]
        for row in ledger
        if row["kind"] in kinds
    )


def scraped(name: str) -> dict[tuple[str, ...], float]:
    page = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.content.decode())
        for sample in family.samples
        if sample.name == name
    }


def test_after_a_month_of_life_every_total_is_the_same_number(
    life: Life, capsys: pytest.CaptureFixture[str]
) -> None:
    live_through_march(life)
    the_month_is_closed_once(life)
    api = api_of(life.user)
    usage = api.get("/api/v1/usage", MARCH).json()["total"]
    the_usage_is_the_same_everywhere(life, api, usage)
    the_ledger_has_moved_it(life, api, usage)
    the_invoice_bills_it(life, usage)
    the_metrics_have_counted_it(life, api)
    the_console_has_earned_it(api)
    assert_books_agree(life.workspace.pk)
    # Every night was looked at, and at last everything.
    assert Reconciliation.objects.filter(finished_at__isnull=False).count() == 28
    call_command("reconcile")
    assert "The books add up over everything." in capsys.readouterr().out
    assert not Difference.objects.exists()


def the_month_is_closed_once(life: Life) -> None:
    life.at("2031-04-01T00:59+02:00")
    assert close_due_periods() == 0
    life.at("2031-04-01T01:01+02:00")
    assert [close_due_periods() for _ in range(3)] == [1, 0, 0]
    life.at("2031-04-01T02:30+02:00")
    the_clock_works()
    assert Invoice.objects.count() == 1


def the_usage_is_the_same_everywhere(life: Life, api: Api, usage: dict[str, Any]) -> None:
    # What the job that failed had cost before it did, and what the operator gave back.
    assert usage["refunded"]["amount_micros"] == 3_333_008 + 54_321
    net = usage["charged"]["amount_micros"] - usage["refunded"]["amount_micros"]
    assert net == usage["net"]["amount_micros"] > 0
    client = client_of(life.user)
    asked = {"period": "days", "first": MARCH["first_day"], "last": MARCH["last_day"]}
    page = text_of(client.get(reverse("usage"), asked))
    figures = re.search(r"Charged (\S+) Given back (\S+) Net (\S+) GPU time ([\d,]+) ms", page)
    assert figures is not None
    assert figures.groups() == (
        *(money_exact(usage[name]["amount_micros"], "CNY") for name in ("charged", "refunded", "net")),
        f"{usage['gpu_ms']:,}",
    )
    for by in ("day", "voice", "member", "key", "device_class", "job_class", "day_and_device_class"):
        of_page = rows_of(client.get(reverse("usage"), {**asked, "by": by, "format": "csv"}))
        assert sum(int(row["net_micros"]) for row in of_page) == net
        assert sum(int(row["gpu_ms"]) for row in of_page) == usage["gpu_ms"]
        if by != "day_and_device_class":
            assert rows_of(api.get("/api/v1/usage", {**MARCH, "by": by, "format": "csv"})) == of_page
    april = api.get("/api/v1/usage", {"first_day": "2031-04-01", "last_day": "2031-04-01"}).json()["total"]
    assert april["gpu_ms"] == 1_505
    assert (
        april["gpu_ms"] + usage["gpu_ms"] + april["unbilled_gpu_ms"] + usage["unbilled_gpu_ms"]
        == life.measured_gpu_ms
    )
    assert usage["unbilled_gpu_ms"] == 333 * MAX_ATTEMPTS


def the_ledger_has_moved_it(life: Life, api: Api, usage: dict[str, Any]) -> None:
    ledger = whole_ledger(api)
    april = api.get("/api/v1/usage", {"first_day": "2031-04-01", "last_day": "2031-04-01"}).json()["total"]
    charged = usage["charged"]["amount_micros"] + april["charged"]["amount_micros"]
    assert moved_by(ledger, TransactionKind.CAPTURE) == -charged
    assert moved_by(ledger, TransactionKind.REFUND) == usage["refunded"]["amount_micros"]
    # Paid twice, and the bank took one of them back.
    assert moved_by(ledger, TransactionKind.TOP_UP) == 100 * YUAN
    assert moved_by(ledger, TransactionKind.DISPUTE) == -50 * YUAN
    rows = rows_of(client_of(life.user).get(reverse("ledger"), {"format": "csv"}))
    assert [(row["id"], int(row["available_micros"]), int(row["held_micros"])) for row in rows] == [
        (row["id"], row["available"]["amount_micros"], row["held"]["amount_micros"]) for row in ledger
    ]
    balance = api.get("/api/v1/account").json()["balance"]
    assert sum(row["available"]["amount_micros"] for row in ledger) == balance["available"]["amount_micros"]
    assert sum(row["held"]["amount_micros"] for row in ledger) == balance["held"]["amount_micros"] == 0
    page = text_of(client_of(life.user).get(reverse("billing")))
    assert money_exact(balance["available"]["amount_micros"], "CNY") in page


def the_invoice_bills_it(life: Life, usage: dict[str, Any]) -> None:
    invoice = Invoice.objects.get()
    net = usage["net"]["amount_micros"]
    # Six days of 31 yuan a month, and 21 of 62.
    assert (invoice.fee_micros, invoice.usage_micros) == (48 * YUAN, net)
    given = GrantUse.objects.filter(
        transaction__job_id__isnull=False, transaction__created_at__lt="2031-03-31T22:00Z"
    ).exclude(grant__kind=GrantKind.PAID)
    discount = given.aggregate(total=Sum("amount_micros"))["total"]
    taxed = 48 * YUAN + net - discount
    assert discount == GIVEN
    tax = (taxed * 6 // 100 + CENT // 2) // CENT * CENT
    total = taxed + tax
    client = client_of(life.user)
    page = text_of(client.get(reverse("invoices")))
    assert f"{name_of(invoice)} " in page
    assert f" {money_exact(total, 'CNY')} " in page
    annex = rows_of(client.get(reverse("invoice_receipts", args=[invoice.pk])))
    assert sum(in_micros(row["charged"]) for row in annex) == net
    assert sum(int(row["gpu_ms"]) for row in annex if row["kind"] == "speech") == usage["gpu_ms"]
    # The fee was more than what the bank had left: that is owed, and due on this invoice alone. What April includes
    # pays no debt.
    account = api_of(life.user).get("/api/v1/account").json()["balance"]
    assert invoice.due_micros == 2 * 3_000_007 - account["available"]["amount_micros"] > 0
    assert f" {money_exact(invoice.due_micros, 'CNY')} " in page
    ledger = whole_ledger(api_of(life.user))
    assert moved_by(ledger, TransactionKind.FEE, TransactionKind.TAX) == -(48 * YUAN + tax)


def the_metrics_have_counted_it(life: Life, api: Api) -> None:
    # The clock stood still but for the speaking: what devices were in hand for is what they measured.
    seconds = scraped("voicepool_device_seconds_total")
    assert round(sum(seconds.values()) * 1000) == life.measured_gpu_ms
    assert scraped("voicepool_holds_open_amount") == {(): 0.0}
    ended = scraped("voicepool_jobs_total")
    assert sum(ended.values()) == SynthesisJob.objects.count() == 9


def the_console_has_earned_it(api: Api) -> None:
    client = client_of(somebody("books@example.com", is_staff=True))
    days = rows_of(client.get("/console/money/", {"csv": "revenue"}))
    columns = list(days[0])
    speech, fees, back = (sum(in_micros(day[column]) for day in days) for column in columns[1:4])
    both = api.get("/api/v1/usage", {**MARCH, "last_day": "2031-04-01"}).json()["total"]
    assert (speech, back) == (both["charged"]["amount_micros"], both["refunded"]["amount_micros"])
    assert fees == 48 * YUAN
