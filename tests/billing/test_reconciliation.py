"""Reconciling the books: they add up, and each thing that can go wrong is found by its own check."""

from __future__ import annotations

import uuid
from datetime import UTC, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from billing.errors import DifferenceNotFound
from billing.models import Difference, Reconciliation, UsageRecord
from billing.reconciliation import checks
from billing.reconciliation.checks import CHECKS
from billing.services import holds, reconciliation
from billing.services.reconciliation import explain_difference
from portal.books import reconcile_books, reconcile_yesterday
from portal.lib.clock import now
from tests.billing.books import all_books, at_once, grant
from tts.selectors.reconciliation import CHECKS as POOL_CHECKS

pytestmark = pytest.mark.django_db(transaction=True)


def spoken(workspace_id: uuid.UUID, *, gpu_ms: int = 2_000, rate: int = 50) -> uuid.UUID:
    """A job of one attempt as a settlement leaves it; returns the attempt's id."""
    job_id, attempt_id = uuid.uuid4(), uuid.uuid4()
    amount = gpu_ms * rate // 1000
    with transaction.atomic():
        holds.place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=amount * 2)
        charged = holds.capture(job_id=job_id, attempt_id=attempt_id, amount_micros=amount)
        UsageRecord.objects.create(
            attempt_id=attempt_id,
            job_id=job_id,
            workspace_id=workspace_id,
            voice_id=uuid.uuid4(),
            device_name="cpu:0@here",
            device_class="cpu",
            job_class="standard",
            billable=True,
            gpu_ms=gpu_ms,
            audio_ms=1_000,
            characters=10,
            price_version_id=1,
            gpu_second_micros=rate,
            rated_micros=amount,
            charged_micros=charged,
            started_at=now(),
            finished_at=now(),
        )
        holds.release(job_id=job_id)
    return attempt_id


@pytest.fixture
def books() -> uuid.UUID:
    """A workspace with some speech behind it."""
    workspace_id = uuid.uuid4()
    grant(workspace_id, 10_000)
    for _ in range(3):
        spoken(workspace_id)
    return workspace_id


def tampered(statement: str, *arguments: object) -> None:
    """Change the tables behind the product's back, its triggers asleep."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table in (
            "billing_ledgerentry",
            "billing_ledgertransaction",
            "billing_usagerecord",
            "billing_grantuse",
        ):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(statement, arguments)
        for table in (
            "billing_ledgerentry",
            "billing_ledgertransaction",
            "billing_usagerecord",
            "billing_grantuse",
        ):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


@pytest.mark.parametrize("day", [None, now().astimezone(UTC).date()])
def test_books_that_add_up_have_no_differences_and_are_left_alone(books: uuid.UUID, day: object) -> None:
    before = all_books()
    run = reconcile_books(day=day)  # type: ignore[arg-type]
    assert list(Difference.objects.values_list("check_name", "subject")) == []
    assert (run.differences, run.counts["usage_is_charged_once"]) == (0, 3)
    assert set(run.counts) == {check.name for check in (*CHECKS, *POOL_CHECKS)}
    assert all_books() == before


def test_a_day_without_anything_adds_up(books: uuid.UUID) -> None:
    run = reconcile_books(day=now().date() - timedelta(days=400))
    assert (run.differences, run.counts["transactions_sum_to_zero"]) == (0, 0)


WRONG: dict[str, str] = {
    "transactions_sum_to_zero": "UPDATE billing_ledgerentry SET amount_micros = amount_micros + 1 WHERE id = "
    "(SELECT id FROM billing_ledgerentry WHERE account = 'promotion' LIMIT 1)",
    "balances_are_the_ledgers": "UPDATE billing_creditaccount SET available_micros = available_micros + 1",
    "credit_is_what_is_left_of_grants": "UPDATE billing_creditaccount SET owed_micros = 7",
    "grants_are_spent_as_noted": "UPDATE billing_grantuse SET amount_micros = 1 WHERE transaction_id = "
    "(SELECT id FROM billing_ledgertransaction WHERE kind = 'capture' LIMIT 1)",
    "held_is_the_open_holds": "UPDATE billing_hold SET state = 'open', captured_micros = 0 WHERE id = "
    "(SELECT id FROM billing_hold LIMIT 1)",
    "holds_are_settled_as_posted": "UPDATE billing_hold SET captured_micros = captured_micros - 1",
    "usage_is_charged_once": "DELETE FROM billing_usagerecord WHERE id = (SELECT MIN(id) FROM billing_usagerecord)",
    "charges_are_usage_times_price": "UPDATE billing_usagerecord SET gpu_ms = gpu_ms + 20 WHERE id = "
    "(SELECT MIN(id) FROM billing_usagerecord)",
    "days_are_the_records": "UPDATE billing_usageday SET charged_micros = charged_micros + 1",
}


@pytest.mark.parametrize("check", WRONG)
def test_what_is_wrong_is_found_by_its_check(books: uuid.UUID, check: str) -> None:
    tampered(WRONG[check])
    run = reconcile_books(day=None)
    found = set(Difference.objects.values_list("check_name", flat=True))
    assert check in found
    assert run.differences >= 1


def test_a_charge_without_a_record_says_what_it_missed(books: uuid.UUID) -> None:
    tampered(WRONG["usage_is_charged_once"])
    reconcile_books(day=None)
    difference = Difference.objects.get(check_name="usage_is_charged_once")
    assert (difference.expected, difference.actual) == (0, 100)
    assert difference.subject.startswith("capture:")


def test_an_open_hold_of_no_job_is_found(books: uuid.UUID) -> None:
    job_id = uuid.uuid4()
    holds.place_hold(workspace_id=books, job_id=job_id, amount_micros=5)
    tampered("UPDATE billing_hold SET created_at = now() - interval '1 hour' WHERE job_id = %s", job_id)
    reconcile_books(day=None)
    assert list(Difference.objects.values_list("check_name", "subject")) == [
        ("open_holds_have_live_jobs", str(job_id))
    ]


def test_the_command_says_so_in_one_screen(books: uuid.UUID) -> None:
    out = StringIO()
    call_command("reconcile", stdout=out)
    assert "The books add up over everything." in out.getvalue()
    assert len(out.getvalue().splitlines()) == len(CHECKS) + len(POOL_CHECKS) + 1
    tampered(WRONG["days_are_the_records"])
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("reconcile", stdout=out)
    assert "differs" in out.getvalue()
    assert len(out.getvalue().splitlines()) <= 40


def test_a_day_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="2026-11-30"):
        call_command("reconcile", day="yesterday")
    assert not Reconciliation.objects.exists()


def test_the_night_looks_at_yesterday_once(books: uuid.UUID) -> None:
    reconcile_yesterday()
    reconcile_yesterday()
    assert [run.day for run in Reconciliation.objects.all()] == [
        now().astimezone(UTC).date() - timedelta(days=1)
    ]


def test_a_difference_is_explained_once(books: uuid.UUID) -> None:
    tampered(WRONG["days_are_the_records"])
    reconcile_books(day=None)
    difference = Difference.objects.order_by("pk").first()
    assert difference is not None
    explain_difference(difference_id=difference.pk, explanation="a test")
    with pytest.raises(DifferenceNotFound):
        explain_difference(difference_id=difference.pk, explanation="again")
    difference.refresh_from_db()
    assert difference.explanation == "a test"


def alerts() -> list[tuple[str, int, int]]:
    standing = Difference.objects.filter(explained_at__isnull=True, gone_at__isnull=True)
    return list(standing.order_by("pk").values_list("check_name", "expected", "actual"))


def too_much(micros: int) -> None:
    """The balance says so much more than the ledger."""
    tampered("UPDATE billing_creditaccount SET available_micros = available_micros + %s", micros)


TOO_MUCH = ("balances_are_the_ledgers", "credit_is_what_is_left_of_grants")


def test_what_stands_is_one_alert_until_it_is_gone(
    books: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    too_much(7)
    first = reconcile_books(day=None)
    found = alerts()
    assert tuple(name for name, _expected, _actual in found) == TOO_MUCH
    assert [actual - expected for _name, expected, actual in found] == [7, 7]
    # Another run, also of another scope: the same differences, and told once.
    again = reconcile_books(day=now().astimezone(UTC).date())
    assert (first.differences, again.differences) == (2, 2)
    assert alerts() == found
    assert Difference.objects.count() == 2
    assert [record.message for record in caplog.records].count("books_differ") == 1
    # A run over another day did not look for it.
    reconcile_books(day=now().date() - timedelta(days=400))
    assert alerts() == found
    too_much(-7)
    reconcile_books(day=None)
    assert alerts() == []
    # Back again it is another one.
    too_much(7)
    reconcile_books(day=None)
    assert alerts() == found
    assert Difference.objects.count() == 4
    assert [record.message for record in caplog.records].count("books_differ") == 2


def test_what_was_explained_stays_so_while_its_numbers_do(books: uuid.UUID) -> None:
    too_much(7)
    reconcile_books(day=None)
    for difference in Difference.objects.all():
        explain_difference(difference_id=difference.pk, explanation="seven micros of a test")
    reconcile_books(day=None)
    assert alerts() == []
    assert Difference.objects.count() == 2
    too_much(1)
    reconcile_books(day=None)
    assert [actual - expected for _name, expected, actual in alerts()] == [8, 8]
    assert set(Difference.objects.values_list("explanation", flat=True)) == {""}


def test_a_difference_that_is_gone_cannot_be_explained(books: uuid.UUID) -> None:
    too_much(7)
    reconcile_books(day=None)
    too_much(-7)
    reconcile_books(day=None)
    with pytest.raises(DifferenceNotFound):
        explain_difference(difference_id=Difference.objects.latest("pk").pk, explanation="late")


def test_of_more_than_are_listed_none_is_taken_for_gone(
    books: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    tampered("UPDATE billing_hold SET captured_micros = captured_micros - 1")
    reconcile_books(day=None)
    before = Difference.objects.filter(check_name="holds_are_settled_as_posted", gone_at=None).count()
    assert before == 3
    monkeypatch.setattr(checks, "LISTED", 1)
    assert reconcile_books(day=None).differences >= 3
    assert Difference.objects.filter(check_name="holds_are_settled_as_posted", gone_at=None).count() == 3


def test_findings_and_the_end_of_a_run_are_one_commit(
    books: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_much(7)

    def breaks(_run: Reconciliation, _outcomes: object) -> None:
        raise RuntimeError("the database was killed")

    monkeypatch.setattr(reconciliation, "_end_those_gone", breaks)
    with pytest.raises(RuntimeError):
        reconcile_books(day=None)
    assert not Difference.objects.exists()
    assert Reconciliation.objects.get().finished_at is None


def test_two_runs_at_once_make_one_alert_of_each_difference(books: uuid.UUID) -> None:
    too_much(7)
    runs = at_once(4, lambda _number: reconcile_books(day=None).differences)
    assert runs == [2, 2, 2, 2]
    assert len(alerts()) == Difference.objects.count() == 2


def test_every_check_of_the_books_has_something_wrong_to_find() -> None:
    elsewhere = {"payments_are_booked", "invoices_are_their_lines"}  # tests of payments and invoices
    assert set(WRONG) | elsewhere == {check.name for check in CHECKS}
