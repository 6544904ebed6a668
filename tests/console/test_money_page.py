"""The Money page: whether the books balance, and that every total on it is the ledger's own."""

from __future__ import annotations

import csv
import uuid
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from billing.models import (
    CreditAccount,
    Difference,
    Dispute,
    GrantKind,
    LedgerAccount,
    LedgerEntry,
    Payment,
    PaymentState,
    Reconciliation,
    Refund,
    TransactionKind,
)
from billing.services import grants, holds, refunds
from billing.services.debits import debit
from portal.console.books_acts import explain_for_operator
from portal.console.money_page import grant_rows, receivable_rows
from portal.console.overview import read_overview
from portal.console.revenue import RevenueDay, revenue_by_day, revenue_today
from portal.lib.clock import now
from tests.billing.books import at_once, grant, total
from tests.console.money_rows import YUAN, everything

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    cache.clear()


def charge(workspace_id: uuid.UUID, micros: int) -> uuid.UUID:
    """A job that was charged so much; its id."""
    job_id = uuid.uuid4()
    with transaction.atomic():
        holds.place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=micros)
        holds.capture(job_id=job_id, attempt_id=uuid.uuid4(), amount_micros=micros)
        holds.release(job_id=job_id)
    return job_id


def dated_back(kind: str, days: int) -> None:
    """Date the movements of a kind so many days back, as no code can."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE billing_ledgertransaction DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE billing_ledgertransaction SET created_at = created_at - %s WHERE kind = %s",
            [timedelta(days=days), kind],
        )
        cursor.execute("ALTER TABLE billing_ledgertransaction ENABLE TRIGGER USER")


def fee(workspace_id: uuid.UUID, micros: int, *, may_owe: bool = False) -> None:
    debit(
        workspace_id=workspace_id,
        amount_micros=micros,
        kind=TransactionKind.FEE,
        idempotency_key=str(uuid.uuid4()),
        may_owe=may_owe,
    )


def test_revenue_is_what_the_ledger_says_by_day(operator_client: Client) -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 100 * YUAN)
    charge(workspace_id, 7 * YUAN)
    dated_back("capture", 3)
    job_id = charge(workspace_id, 5 * YUAN)
    fee(workspace_id, 2 * YUAN)
    refunds.refund_part(job_id=job_id, amount_micros=YUAN, idempotency_key="part", reason="It stuttered")
    days = revenue_by_day(now=now())
    today = now().date()
    assert len(days) == 30
    assert days[-1] == RevenueDay(today, 5 * YUAN, 2 * YUAN, YUAN)
    assert days[-4] == RevenueDay(today - timedelta(days=3), 7 * YUAN, 0, 0)
    assert sum(day.net_micros for day in days) == total(workspace_id, LedgerAccount.REVENUE)
    page = operator_client.get("/console/money/").content.decode()
    assert "Revenue of the last 30 days: CN¥13.00, after CN¥1.00 was given back" in page
    assert "It stuttered" in page
    # The file and the overview say the same.
    rows = list(csv.reader(operator_client.get("/console/money/?csv=revenue").content.decode().splitlines()))
    assert rows[0] == ["\ufeffday", "speech", "fees", "given back"]
    assert rows[-1] == [today.isoformat(), "5.0", "2.0", "1.0"]
    assert len(rows) == 31
    assert read_overview().revenue_today_micros == revenue_today(now=now()).net_micros == 6 * YUAN
    assert "CN¥6.00" in operator_client.get("/console/").content.decode()


def test_receivables_are_aged_by_what_was_spent_last(operator_client: Client) -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 10 * YUAN)
    for kind_days, micros in ((100, 30 * YUAN), (70, 20 * YUAN), (40, 10 * YUAN), (0, 5 * YUAN)):
        before = set(LedgerEntry.objects.values_list("transaction_id", flat=True))
        fee(workspace_id, micros, may_owe=True)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE billing_ledgertransaction DISABLE TRIGGER USER")
            cursor.execute(
                "UPDATE billing_ledgertransaction SET created_at = created_at - %s WHERE NOT id = ANY(%s)",
                [timedelta(days=kind_days), list(before)],
            )
            cursor.execute("ALTER TABLE billing_ledgertransaction ENABLE TRIGGER USER")
    # 65 were spent, 10 there were: 55 are owed, and of the oldest 30 only 20 are.
    (row,) = receivable_rows(now=now())
    assert row.owed_micros == CreditAccount.objects.get(pk=workspace_id).owed_micros == 55 * YUAN
    assert row.ages == [5 * YUAN, 10 * YUAN, 20 * YUAN, 20 * YUAN]
    # What comes in pays the oldest.
    grant(workspace_id, 25 * YUAN)
    (row,) = receivable_rows(now=now())
    assert row.ages == [5 * YUAN, 10 * YUAN, 15 * YUAN, 0]
    assert sum(row.ages) == row.owed_micros == 30 * YUAN
    assert "CN¥30.00" in operator_client.get("/console/money/").content.decode()


def test_credit_is_listed_by_kind_with_what_ends_soon(operator_client: Client) -> None:
    workspace_id = uuid.uuid4()
    for kind, micros, days in (
        (GrantKind.PROMOTIONAL, 10 * YUAN, None),
        (GrantKind.PROMOTIONAL, 4 * YUAN, 3),
        (GrantKind.PAID, 50 * YUAN, None),
        (GrantKind.VOUCHER, 8 * YUAN, 30),
    ):
        grants.grant(
            workspace_id=workspace_id,
            amount_micros=micros,
            idempotency_key=str(uuid.uuid4()),
            kind=kind,
            expires_at=now() + timedelta(days=days) if days else None,
        )
    found = {row.label: (row.grants, row.remaining_micros, row.soon_micros) for row in grant_rows(now=now())}
    assert found == {
        "Included in the plan": (0, 0, 0),
        "Given": (2, 14 * YUAN, 4 * YUAN),
        "Voucher": (1, 8 * YUAN, 0),
        "Paid": (1, 50 * YUAN, 0),
    }
    holds.place_hold(workspace_id=workspace_id, job_id=uuid.uuid4(), amount_micros=3 * YUAN)
    page = operator_client.get("/console/money/").content.decode()
    assert "in 1 hold" in page


def test_a_payment_whose_end_is_not_known_is_listed(
    operator_client: Client, alice_workspace: Workspace
) -> None:
    for state, reference in ((PaymentState.UNKNOWN, "pi_unknown"), (PaymentState.FAILED, "pi_failed")):
        Payment.objects.create(
            workspace_id=alice_workspace.pk,
            provider="stripe",
            purpose="top_up",
            state=state,
            currency="CNY",
            amount_micros=YUAN,
            idempotency_key=reference,
            provider_reference=reference,
        )
    unknown = Payment.objects.get(provider_reference="pi_unknown")
    Dispute.objects.create(payment=unknown, provider_reference="dp_open", amount_micros=YUAN)
    for state, key in ((PaymentState.UNKNOWN, "a"), (PaymentState.FAILED, "b")):
        amount = 7 * YUAN if state == PaymentState.UNKNOWN else 9 * YUAN
        Refund.objects.create(
            payment=unknown, state=state, amount_micros=amount, reason="", idempotency_key=key
        )
    page = operator_client.get("/console/money/").content.decode()
    assert "dp_open" in page
    assert "CN¥7.00" in page
    assert "CN¥9.00" not in page
    assert "Every message of the providers was worked on." in page
    assert "pi_unknown" in page
    assert "pi_failed" not in page


@pytest.mark.django_db(transaction=True)
def test_the_books_are_reconciled_now_and_a_difference_is_explained(
    operator: User, operator_client: Client
) -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, YUAN)
    today = now().date().isoformat()
    operator_client.post("/console/money/reconcile/", {"day": today, "reason": "A customer asked"})
    run = Reconciliation.objects.get()
    assert (run.day.isoformat() if run.day else "", run.differences) == (today, 0)
    assert "The books balance." in operator_client.get("/console/money/").content.decode()
    CreditAccount.objects.filter(pk=workspace_id).update(available_micros=YUAN + 7)
    operator_client.post("/console/money/reconcile/", {"day": today, "reason": "Once more"})
    # An alert with a link to the page, until all of it is explained.
    found = list(Difference.objects.order_by("pk"))
    assert found
    overview = operator_client.get("/console/").content.decode()
    assert "nobody has explained" in overview
    assert "/console/money/#books" in overview
    page = operator_client.get("/console/money/").content.decode()
    assert "What is available and held is what the ledger says" in page
    assert str(workspace_id) in page
    for difference in found:
        operator_client.post(f"/console/money/differences/{difference.pk}/", {"reason": "A drill"})
    assert "nobody has explained" not in operator_client.get("/console/").content.decode()
    assert {row.explanation for row in Difference.objects.all()} == {"A drill"}
    acts = list(AuditEntry.objects.order_by("pk").values_list("act", "actor", "reason"))
    assert acts[:2] == [
        ("books.reconcile", operator.pk, "A customer asked"),
        ("books.reconcile", operator.pk, "Once more"),
    ]
    assert acts[2:] == [("books.explain", operator.pk, "A drill")] * len(found)


@pytest.mark.parametrize("day", ["", "yesterday", "2999-01-01", "0000-00-00"])
def test_no_day_no_reconciliation(operator_client: Client, day: str) -> None:
    answer = operator_client.post("/console/money/reconcile/", {"day": day, "reason": "Why not"})
    assert answer.status_code == 200
    assert not Reconciliation.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.fixture
def difference(db: None) -> Difference:
    run = Reconciliation.objects.create(started_at=now(), finished_at=now(), differences=1)
    return Difference.objects.create(
        reconciliation=run, check_name="balances_are_the_ledgers", subject="x", expected=1, actual=2
    )


def test_a_difference_is_explained_once_and_with_a_reason(
    operator_client: Client, difference: Difference
) -> None:
    address = f"/console/money/differences/{difference.pk}/"
    operator_client.post(address, {"reason": "  "})
    difference.refresh_from_db()
    assert difference.explained_at is None
    operator_client.post(address, {"reason": "The first"})
    operator_client.post(address, {"reason": "The second"})
    difference.refresh_from_db()
    assert difference.explanation == "The first"
    assert AuditEntry.objects.count() == 1
    assert operator_client.get("/console/money/differences/999999/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_of_many_who_explain_at_once_one_does(operator: User, difference: Difference) -> None:
    def explain(number: int) -> int:
        explain_for_operator(difference_id=difference.pk, actor=operator, reason=str(number))
        return number

    (won,) = [one for one in at_once(5, explain) if isinstance(one, int)]
    difference.refresh_from_db()
    assert difference.explanation == str(won)
    assert AuditEntry.objects.get().reason == str(won)


@pytest.mark.parametrize(
    "place",
    [
        "/console/customers/",
        "/console/money/",
        "/console/money/reconcile/",
        "/console/money/pending/",
        "/console/prices/",
        "/console/prices/new/",
        "/console/plans/",
        "/console/plans/new/",
    ],
)
def test_every_page_of_money_is_the_operators_alone(
    operator_client: Client, alice_client: Client, client: Client, place: str
) -> None:
    before = everything()
    assert operator_client.get(place).status_code == 200
    assert operator_client.get(place, headers={"Accept-Language": "zh-hans"}).status_code == 200
    assert alice_client.get(place).status_code == 404
    assert client.get(place).status_code == 302
    assert everything() == before
