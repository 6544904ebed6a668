"""Monthly budgets of a workspace, its members and its keys, and who is told when they run out."""

from __future__ import annotations

import smtplib
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import transaction

from accounts.models import Membership, Role, User, Workspace
from billing.errors import BudgetInvalid, BudgetNotFound, BudgetReached
from billing.models import AlertKind, BillingAlert, BillingProfile, Budget, BudgetScope, UsageRecord
from billing.selectors.budgets import budgets_of
from billing.services import holds
from billing.services.alerts import mail_alerts, raise_alerts
from billing.services.budgets import remove_budget, set_budget
from portal.lib.clock import now
from tests.billing.books import all_books, at_once, grant

pytestmark = pytest.mark.django_db


def spent(
    workspace_id: uuid.UUID,
    micros: int,
    *,
    user_id: uuid.UUID | None = None,
    api_key_id: uuid.UUID | None = None,
    at: datetime | None = None,
) -> None:
    """A record of speech that cost so much."""
    UsageRecord.objects.create(
        attempt_id=uuid.uuid4(),
        job_id=uuid.uuid4(),
        workspace_id=workspace_id,
        voice_id=uuid.uuid4(),
        user_id=user_id,
        api_key_id=api_key_id,
        device_name="cpu:0@here",
        device_class="cpu",
        job_class="standard",
        billable=True,
        gpu_ms=1,
        audio_ms=1,
        characters=1,
        charged_micros=micros,
        rated_micros=micros,
        started_at=at or now(),
        finished_at=at or now(),
    )


def hold(workspace_id: uuid.UUID, micros: int, **whose: uuid.UUID) -> uuid.UUID:
    job_id = uuid.uuid4()
    with transaction.atomic():
        holds.place_hold(workspace_id=workspace_id, job_id=job_id, amount_micros=micros, **whose)
    return job_id


def workspace_budget(workspace_id: uuid.UUID, micros: int, **more: object) -> Budget:
    return set_budget(
        workspace_id=workspace_id,
        scope=BudgetScope.WORKSPACE,
        subject_id=None,
        monthly_micros=micros,
        **more,  # type: ignore[arg-type]
    )


def test_a_hard_budget_refuses_what_would_overrun_it_and_changes_nothing(workspace_id: uuid.UUID) -> None:
    workspace_budget(workspace_id, 500)
    spent(workspace_id, 300)
    hold(workspace_id, 150)
    before = all_books()
    with pytest.raises(BudgetReached) as refused:
        hold(workspace_id, 51)
    assert refused.value.code == "budget_reached"
    assert all_books() == before
    hold(workspace_id, 50)


def test_a_soft_budget_refuses_nothing(workspace_id: uuid.UUID) -> None:
    workspace_budget(workspace_id, 10, is_hard=False)
    hold(workspace_id, 500)
    assert budgets_of(workspace_id)[0].held_micros == 500


@pytest.mark.parametrize("scope", [BudgetScope.MEMBER, BudgetScope.API_KEY])
def test_a_budget_of_one_counts_only_that_one(workspace_id: uuid.UUID, scope: BudgetScope) -> None:
    one, other = uuid.uuid4(), uuid.uuid4()
    column = "user_id" if scope == BudgetScope.MEMBER else "api_key_id"
    set_budget(workspace_id=workspace_id, scope=scope, subject_id=one, monthly_micros=100)
    spent(workspace_id, 1_000, **{column: other})
    spent(workspace_id, 60, **{column: one})
    hold(workspace_id, 200, **{column: other})
    hold(workspace_id, 200)
    with pytest.raises(BudgetReached):
        hold(workspace_id, 41, **{column: one})
    hold(workspace_id, 40, **{column: one})


def test_last_month_does_not_count(workspace_id: uuid.UUID) -> None:
    workspace_budget(workspace_id, 100)
    spent(workspace_id, 99, at=now() - timedelta(days=32))
    hold(workspace_id, 100)


def test_what_a_hold_gave_back_counts_no_more(workspace_id: uuid.UUID) -> None:
    workspace_budget(workspace_id, 100)
    holds.release(job_id=hold(workspace_id, 100))
    hold(workspace_id, 100)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_never_overrun_a_budget() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 10_000)
    workspace_budget(workspace_id, 1_000)
    outcomes = at_once(30, lambda _: hold(workspace_id, 100))
    assert sum(isinstance(outcome, uuid.UUID) for outcome in outcomes) == 10
    assert sum(isinstance(outcome, BudgetReached) for outcome in outcomes) == 20


@pytest.mark.parametrize(
    ("scope", "subject", "micros", "percent"),
    [
        (BudgetScope.WORKSPACE, None, -1, 80),
        (BudgetScope.WORKSPACE, None, 10**18, 80),
        (BudgetScope.WORKSPACE, None, 1, 0),
        (BudgetScope.WORKSPACE, None, 1, 101),
        (BudgetScope.WORKSPACE, uuid.uuid4(), 1, 80),
        (BudgetScope.MEMBER, None, 1, 80),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    workspace_id: uuid.UUID, scope: BudgetScope, subject: uuid.UUID | None, micros: int, percent: int
) -> None:
    with pytest.raises(BudgetInvalid):
        set_budget(
            workspace_id=workspace_id,
            scope=scope,
            subject_id=subject,
            monthly_micros=micros,
            warn_percent=percent,
        )
    assert not Budget.objects.exists()


def test_a_budget_is_removed_by_its_own_workspace_alone(workspace_id: uuid.UUID) -> None:
    budget = workspace_budget(workspace_id, 100)
    with pytest.raises(BudgetNotFound):
        remove_budget(workspace_id=uuid.uuid4(), budget_id=budget.pk)
    assert Budget.objects.exists()
    remove_budget(workspace_id=workspace_id, budget_id=budget.pk)
    assert not Budget.objects.exists()


# -- Being told ----------------------------------------------------------------------------------------------


def member(workspace: Workspace, email: str, role: Role, locale: str = "en") -> User:
    user = User.objects.create_user(email, "a password of some length", locale=locale)
    Membership.objects.create(workspace=workspace, user=user, role=role)
    return user


@pytest.fixture
def workspace(db: None) -> Workspace:
    workspace = Workspace.objects.create(name="w")
    grant(workspace.pk, 10_000_000)
    member(workspace, "owner@example.com", Role.OWNER, "zh-hans")
    member(workspace, "bills@example.com", Role.BILLING)
    member(workspace, "member@example.com", Role.MEMBER)
    return workspace


def test_people_are_told_once_at_each_threshold(workspace: Workspace) -> None:
    workspace_budget(workspace.pk, 10_000_000, warn_percent=50)
    spent(workspace.pk, 4_990_000)
    assert (raise_alerts(), mail_alerts()) == (0, 0)
    spent(workspace.pk, 10_000)
    assert (raise_alerts(), mail_alerts()) == (1, 1)
    assert (raise_alerts(), mail_alerts()) == (0, 0)
    spent(workspace.pk, 5_000_000)
    assert (raise_alerts(), mail_alerts()) == (1, 1)
    kinds = BillingAlert.objects.order_by("created_at").values_list("kind", flat=True)
    assert list(kinds) == [AlertKind.BUDGET_WARNING, AlertKind.BUDGET_REACHED]


def test_owners_and_payers_are_told_in_their_own_language(workspace: Workspace) -> None:
    workspace_budget(workspace.pk, 10_000_000, warn_percent=50)
    spent(workspace.pk, 5_000_000)
    raise_alerts()
    mail_alerts()
    subjects = {message.to[0]: message.subject for message in mail.outbox}
    assert subjects == {
        "owner@example.com": "月度预算 ¥10.00 已使用 ¥5.00",
        "bills@example.com": "CN¥5.00 of the monthly budget of CN¥10.00 is spent",
    }
    assert all("/billing/" in str(message.body) for message in mail.outbox)


def test_a_low_balance_is_told_once_until_credit_comes_in(workspace: Workspace) -> None:
    BillingProfile.objects.create(workspace_id=workspace.pk, low_balance_micros=20_000_000)
    assert (raise_alerts(), raise_alerts()) == (1, 0)
    grant(workspace.pk, 5_000_000)
    assert (raise_alerts(), raise_alerts()) == (1, 0)
    grant(workspace.pk, 5_000_000)
    assert raise_alerts() == 0


def test_months_begin_in_the_workspaces_own_time_zone() -> None:
    workspace_id = uuid.uuid4()
    grant(workspace_id, 1_000)
    from billing.models import CreditAccount, UsageDay

    CreditAccount.objects.filter(pk=workspace_id).update(time_zone="Asia/Shanghai")
    spent(workspace_id, 5, at=datetime(2026, 3, 31, 16, 0, tzinfo=UTC))
    spent(workspace_id, 7, at=datetime(2026, 3, 31, 15, 59, tzinfo=UTC))
    days = UsageDay.objects.filter(workspace_id=workspace_id).order_by("day")
    assert [(str(row.day), row.charged_micros) for row in days] == [("2026-03-31", 7), ("2026-04-01", 5)]


def test_an_address_that_is_refused_keeps_nobody_from_being_told_and_is_not_tried_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "owner@example.com"
    tried: list[str] = []

    def send(subject: str, body: str, sender: object, recipients: list[str]) -> None:
        tried.extend(recipients)
        if refused in recipients:
            raise smtplib.SMTPRecipientsRefused({refused: (550, b"no such user")})

    monkeypatch.setattr("billing.services.alerts.send_mail", send)
    workspace_budget(workspace.pk, 1)
    spent(workspace.pk, 1)
    raise_alerts()
    assert (mail_alerts(), mail_alerts()) == (1, 0)
    assert tried == ["owner@example.com", "bills@example.com"]


def test_a_mail_that_the_server_will_not_carry_keeps_no_other_waiting(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def send(subject: str, body: str, sender: object, recipients: list[str]) -> None:
        tried.append(subject)
        if len(tried) == 1:
            raise smtplib.SMTPDataError(554, b"5.7.1 message refused")

    monkeypatch.setattr("billing.services.alerts.send_mail", send)
    workspace_budget(workspace.pk, 1)
    BillingProfile.objects.create(workspace_id=workspace.pk, low_balance_micros=20_000_000)
    spent(workspace.pk, 1)
    assert raise_alerts() == 2
    assert (mail_alerts(), mail_alerts()) == (2, 0)
    # Two alerts for two people who pay, the refused one included, each once.
    assert len(tried) == 4


def test_a_mail_server_that_is_away_is_asked_once_a_round_and_the_mail_is_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def away(subject: str, body: str, sender: object, recipients: list[str]) -> None:
        tried.extend(recipients)
        raise ConnectionRefusedError

    workspace_budget(workspace.pk, 1)
    BillingProfile.objects.create(workspace_id=workspace.pk, low_balance_micros=20_000_000)
    spent(workspace.pk, 1)
    assert raise_alerts() == 2
    with monkeypatch.context() as patched:
        patched.setattr("billing.services.alerts.send_mail", away)
        assert mail_alerts() == 0
    assert tried == ["owner@example.com"]
    assert mail_alerts() == 2
