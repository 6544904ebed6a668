"""The Usage page: one number everywhere, whose it is in words, and budgets that only some may set."""

from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db.models import F, Sum
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from accounts.services.api_keys import create_api_key
from billing.models import Budget, BudgetScope, CreditAccount, UsageDay
from billing.selectors.usage import Dimension, Sums, total_of, usage_by
from billing.selectors.usage_days import Usage, usage_of
from billing.services.budgets import set_budget
from billing.services.profiles import set_time_zone
from portal.lib.display import money_exact
from tests.cast import Api, api_of, client_of
from tests.factories import make_voice
from tests.pages.money import VOICE, today_of, used
from tests.pages.reading import text_of

pytestmark = pytest.mark.django_db
DAYS = [date(2026, 3, day) for day in range(1, 32)]
MARCH = {"period": "days", "first": "2026-03-01", "last": "2026-03-31"}


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    cache.clear()


def march(workspace: Workspace, user: User) -> None:
    """Some speech of every kind, a failed try, and something given back."""
    voice = make_voice(workspace, user, name="Narrator")
    key, _text = create_api_key(workspace=workspace, user=user, name="Website")
    for number in range(40):
        used(
            workspace.pk,
            DAYS[number % 31],
            voice_id=voice.pk if number % 3 else VOICE,
            user_id=user.pk,
            api_key_id=key.pk if number % 2 else None,
            device_class=("h200", "t4", "")[number % 3],
            job_class=("interactive", "standard", "batch")[number % 3],
            charged_micros=1_000_001 + number,
        )
    used(workspace.pk, DAYS[4], billable=False, gpu_ms=77)
    UsageDay.objects.filter(workspace_id=workspace.pk, day=DAYS[2], billable=True).update(
        refunded_micros=500_003
    )


def file_of(response: Any) -> list[dict[str, str]]:
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))


def stored(workspace: Workspace) -> dict[str, int]:
    rows = UsageDay.objects.filter(workspace_id=workspace.pk, day__range=(DAYS[0], DAYS[-1]))
    found = rows.aggregate(
        charged=Sum("charged_micros"),
        refunded=Sum("refunded_micros"),
        net=Sum(F("charged_micros") - F("refunded_micros")),
    )
    quantities = rows.filter(billable=True).aggregate(
        gpu_ms=Sum("gpu_ms"), audio_ms=Sum("audio_ms"), characters=Sum("characters"), segments=Sum("records")
    )
    return {**found, **quantities}


def test_the_page_the_api_the_file_and_the_stored_sums_say_the_same(
    alice: User, alice_workspace: Workspace
) -> None:
    march(alice_workspace, alice)
    wanted = stored(alice_workspace)
    assert wanted["charged"] == sum(1_000_001 + number for number in range(40))
    assert wanted["refunded"] == 500_003 * UsageDay.objects.filter(day=DAYS[2]).count()
    page = text_of(client_of(alice).get(reverse("usage"), MARCH))
    for name in ("charged", "refunded", "net"):
        assert money_exact(wanted[name], "CNY") in page
    assert f"{wanted['gpu_ms']:,} ms" in page
    api = api_of(alice)
    for dimension in Dimension:
        query = {"first_day": "2026-03-01", "last_day": "2026-03-31", "by": dimension.value}
        answer = api.get("/api/v1/usage", query).json()
        groups = answer["groups"]
        for name in ("charged", "refunded", "net"):
            assert answer["total"][name]["amount_micros"] == wanted[name]
            assert sum(group[name]["amount_micros"] for group in groups) == wanted[name]
        for name in ("gpu_ms", "audio_ms", "characters", "segments"):
            assert answer["total"][name] == sum(group[name] for group in groups) == wanted[name]
        assert answer["total"]["unbilled_gpu_ms"] == 77
        by_page = file_of(
            client_of(alice).get(reverse("usage"), {**MARCH, "format": "csv", "by": dimension.value})
        )
        by_api = file_of(api.get("/api/v1/usage", {**query, "format": "csv"}))
        assert by_page == by_api
        assert len(by_page) == len(groups)
        for name in ("charged", "refunded", "net"):
            assert sum(int(row[f"{name}_micros"]) for row in by_page) == wanted[name]
    chart = file_of(
        client_of(alice).get(reverse("usage"), {**MARCH, "format": "csv", "by": "day_and_device_class"})
    )
    assert sum(int(row["charged_micros"]) for row in chart) == wanted["charged"]


def test_each_part_of_the_page_adds_up_to_its_total(alice: User, alice_workspace: Workspace) -> None:
    march(alice_workspace, alice)
    usage = usage_of(alice_workspace.pk, DAYS[0], DAYS[-1])
    for dimension in Dimension:
        assert total_of(usage.parts[dimension].values()) == usage.total
        assert usage.parts[dimension] == usage_by(alice_workspace.pk, dimension, DAYS[0], DAYS[-1])
    assert total_of(usage.by_day_and_device_class.values()) == usage.total


def test_voices_members_and_keys_are_called_by_their_names(alice: User, alice_workspace: Workspace) -> None:
    march(alice_workspace, alice)
    page = text_of(client_of(alice).get(reverse("usage"), MARCH))
    for words in (
        "Narrator",
        "alice@example.com",
        "Website (vp_live_",
        "None: from these pages",
        "unclassed",
    ):
        assert words in page
    assert f"A voice that is gone ({str(VOICE)[:8]})" in page
    assert "failed through our fault" in page


def test_names_of_others_never_reach_a_page(alice: User, charlie: User, charlie_workspace: Workspace) -> None:
    """Whatever stands in the sums: a voice or a key of somebody else has no name here."""
    theirs = make_voice(charlie_workspace, charlie, name="Charlie's secret voice")
    key, _text = create_api_key(workspace=charlie_workspace, user=charlie, name="Charlie's key")
    client = client_of(alice)
    workspace = Workspace.objects.get(memberships__user=alice)
    used(workspace.pk, DAYS[0], voice_id=theirs.pk, api_key_id=key.pk)
    page = text_of(client.get(reverse("usage"), MARCH))
    assert "secret" not in page
    assert "Charlie" not in page
    assert "A voice that is gone" in page


def test_the_chart_says_what_it_shows(alice: User, alice_workspace: Workspace) -> None:
    client = client_of(alice)
    assert "Nothing was used in this time" in text_of(client.get(reverse("usage"), MARCH))
    cache.clear()
    used(alice_workspace.pk, DAYS[9], charged_micros=2_000_000)
    used(alice_workspace.pk, DAYS[10], charged_micros=3_000_000, device_class="h200")
    response = client.get(reverse("usage"), MARCH)
    assert "CN¥5.00 charged, most on 11 Mar 2026: CN¥3.00" in text_of(response)
    page = response.content.decode()
    assert 'data-label="11 Mar 2026" data-text="h200 CN¥3.00, cpu CN¥0.00"' in page
    assert page.count('class="chart__column"') == 31
    audio = text_of(client.get(reverse("usage"), {**MARCH, "measure": "audio"}))
    assert "0.0333 min, most on" in audio


def test_days_begin_in_the_workspaces_own_zone(alice: User, alice_workspace: Workspace) -> None:
    set_time_zone(workspace_id=alice_workspace.pk, time_zone="Pacific/Kiritimati")
    at = datetime(2026, 3, 31, 11, 0, tzinfo=UTC)
    used(alice_workspace.pk, DAYS[0], finished_at=at, started_at=at)
    api = api_of(alice)
    answer = api.get("/api/v1/usage", {"first_day": "2026-03-01", "last_day": "2026-04-30"}).json()
    assert [group["key"] for group in answer["groups"]] == ["2026-04-01"]
    assert answer["time_zone"] == "Pacific/Kiritimati"


@pytest.mark.parametrize(
    "query",
    [
        {"first_day": "2026-03-02", "last_day": "2026-03-01"},
        {"first_day": "2024-03-02", "last_day": "2026-03-01"},
        {"first_day": "yesterday"},
        {"first_day": "2026-02-30"},
        {"by": "moon"},
        {"by": ""},
        {"format": "xml"},
        {"workspace": "x"},
    ],
)
def test_the_api_refuses_what_it_cannot_read(alice_api: Api, query: dict[str, str]) -> None:
    answer = alice_api.get("/api/v1/usage", query)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    [
        {"period": "days", "first": "2026-03-02", "last": "2026-03-01"},
        {"period": "days", "first": "0001-01-01", "last": "9999-12-31"},
    ],
)
def test_days_that_cannot_be_shown_are_explained_and_this_month_shown(
    alice_client: Client, alice_workspace: Workspace, query: dict[str, str]
) -> None:
    page = text_of(alice_client.get(reverse("usage"), query))
    assert "The first day has to come before the last one" in page
    assert f"{today_of(alice_workspace.pk).replace(day=1):%-d %b %Y} to" in page


@pytest.mark.parametrize("query", [{"period": "moon"}, {"first": "x"}, {"measure": "x"}, {"budget": "x"}])
def test_an_old_link_still_opens(alice_client: Client, query: dict[str, str]) -> None:
    assert alice_client.get(reverse("usage"), query).status_code == 200
    assert alice_client.get(reverse("usage"), {**query, "format": "csv", "by": "moon"}).status_code == 200


# -- What is remembered of days that are over -----------------------------------------------------------------


def everything(workspace: Workspace) -> Usage:
    today = today_of(workspace.pk)
    return usage_of(workspace.pk, today - timedelta(days=20), today)


def test_a_remembered_day_is_read_once_and_is_the_same(alice_workspace: Workspace) -> None:
    today = today_of(alice_workspace.pk)
    for ago in (0, 1, 2, 3, 10):
        used(alice_workspace.pk, today - timedelta(days=ago), charged_micros=10**ago)
    first = everything(alice_workspace)
    assert first.total.charged_micros == sum(10**ago for ago in (0, 1, 2, 3, 10))
    assert everything(alice_workspace) == first
    assert (
        len(
            cache.get_many([f"usage-day:{alice_workspace.pk}:{today - timedelta(days=n)}" for n in range(21)])
        )
        == 18
    )


def test_what_arrives_late_for_a_day_that_is_over_is_seen_at_once(
    alice: User, alice_workspace: Workspace
) -> None:
    day = today_of(alice_workspace.pk) - timedelta(days=10)
    used(alice_workspace.pk, day)
    assert everything(alice_workspace).total.charged_micros == 1_000
    assert everything(alice_workspace).total.charged_micros == 1_000
    used(alice_workspace.pk, day, charged_micros=5)
    assert everything(alice_workspace).total.charged_micros == 1_005
    used(alice_workspace.pk, day - timedelta(days=1), charged_micros=6)
    assert everything(alice_workspace).total.charged_micros == 1_011


def test_nothing_is_remembered_for_another_workspace(
    alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    used(alice_workspace.pk, today_of(alice_workspace.pk) - timedelta(days=10))
    assert everything(alice_workspace).total.charged_micros == 1_000
    assert everything(charlie_workspace).total == Sums()


# -- Budgets --------------------------------------------------------------------------------------------------


def member(workspace: Workspace, user: User, role: Role) -> Client:
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = client_of(user)
    client.post(reverse("choose_workspace"), {"workspace": str(workspace.pk)})
    return client


def budget_fields(**changes: str) -> dict[str, str]:
    return {
        "whose": "workspace:",
        "monthly": "12.50",
        "at_the_end": "refuse",
        "warn_percent": "75",
        **changes,
    }


def test_a_budget_is_set_changed_and_removed(
    alice: User, alice_workspace: Workspace, alice_client: Client
) -> None:
    used(alice_workspace.pk, today_of(alice_workspace.pk), charged_micros=10_000_000)
    answer = alice_client.post(reverse("budget_set"), budget_fields())
    assert answer["Location"] == f"{reverse('usage')}#budgets"
    budget = Budget.objects.get()
    assert (budget.scope, budget.monthly_micros, budget.is_hard, budget.warn_percent) == (
        "workspace",
        12_500_000,
        True,
        75,
    )
    page = alice_client.get(reverse("usage"))
    assert "CN¥10.00 of CN¥12.50 used (80 %), CN¥2.50 left" in text_of(page)
    assert 'class="progress progress--warn" value="80"' in page.content.decode()
    alice_client.post(reverse("budget_set"), budget_fields(monthly="20", at_the_end="tell"))
    budget.refresh_from_db()
    assert (budget.monthly_micros, budget.is_hard, Budget.objects.count()) == (20_000_000, False, 1)
    changing = alice_client.get(reverse("usage"), {"budget": str(budget.pk)}).content.decode()
    assert 'name="monthly" value="20.00"' in changing
    assert f'id="remove-{budget.pk}"' in changing
    alice_client.post(reverse("budget_remove", args=[budget.pk]))
    assert Budget.objects.count() == 0
    assert alice_client.post(reverse("budget_remove", args=[budget.pk])).status_code == 404


def test_members_and_keys_have_budgets_of_their_own(alice: User, bob: User, team: Workspace) -> None:
    client = client_of(alice)
    client.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
    key, _text = create_api_key(workspace=team, user=bob, name="Robot")
    client.post(reverse("budget_set"), budget_fields(whose=f"member:{bob.pk}"))
    client.post(reverse("budget_set"), budget_fields(whose=f"api_key:{key.pk}", monthly="0"))
    found = {(row.scope, row.subject_id, row.monthly_micros) for row in Budget.objects.all()}
    assert found == {("member", bob.pk, 12_500_000), ("api_key", key.pk, 0)}
    assert "bob@example.com" in text_of(client.get(reverse("usage")))


@pytest.mark.parametrize(
    "changes",
    [
        {"monthly": "-1"},
        {"monthly": "1.005"},
        {"monthly": "1e30"},
        {"monthly": "NaN"},
        {"monthly": ""},
        {"warn_percent": "0"},
        {"warn_percent": "101"},
        {"whose": "member:" + str(uuid.UUID(int=1))},
        {"whose": "api_key:x"},
        {"whose": ""},
        {"at_the_end": "2"},
    ],
)
def test_a_budget_that_cannot_be_is_explained_beside_its_field(
    alice_client: Client, changes: dict[str, str]
) -> None:
    answer = alice_client.post(reverse("budget_set"), budget_fields(**changes))
    assert answer.status_code == 422
    assert "field__error" in answer.content.decode()
    assert Budget.objects.count() == 0


def test_the_member_and_the_key_of_another_workspace_take_no_budget(
    alice_client: Client, charlie: User, charlie_workspace: Workspace
) -> None:
    key, _text = create_api_key(workspace=charlie_workspace, user=charlie, name="Theirs")
    for whose in (f"member:{charlie.pk}", f"api_key:{key.pk}"):
        assert alice_client.post(reverse("budget_set"), budget_fields(whose=whose)).status_code == 422
    assert Budget.objects.count() == 0


@pytest.mark.parametrize(("role", "status"), [(Role.BILLING, 302), (Role.ADMIN, 403), (Role.MEMBER, 403)])
def test_owners_and_the_billing_role_set_budgets_and_everybody_sees_them(
    alice: User, charlie: User, team: Workspace, role: Role, status: int
) -> None:
    client = member(team, charlie, role)
    budget = set_budget(
        workspace_id=team.pk, scope=BudgetScope.WORKSPACE, subject_id=None, monthly_micros=9_000_000
    )
    page = client.get(reverse("usage"))
    assert page.status_code == 200
    assert "CN¥0.00 of CN¥9.00 used" in text_of(page)
    may = status == 302
    assert (reverse("budget_set") in page.content.decode()) == may
    assert client.post(reverse("budget_set"), budget_fields()).status_code == status
    budget.refresh_from_db()
    assert budget.monthly_micros == (12_500_000 if may else 9_000_000)
    assert client.post(reverse("budget_remove", args=[budget.pk])).status_code == status
    assert Budget.objects.exists() != may


def test_a_budget_of_others_cannot_be_removed_or_read(
    alice_workspace: Workspace, charlie_client: Client
) -> None:
    budget = set_budget(
        workspace_id=alice_workspace.pk,
        scope=BudgetScope.WORKSPACE,
        subject_id=None,
        monthly_micros=777_000_000,
    )
    assert charlie_client.post(reverse("budget_remove", args=[budget.pk])).status_code == 404
    assert "777" not in charlie_client.get(reverse("usage"), {"budget": str(budget.pk)}).content.decode()
    assert Budget.objects.count() == 1


def test_usage_is_in_chinese_too(alice: User, alice_workspace: Workspace) -> None:
    march(alice_workspace, alice)
    page = text_of(client_of(alice).get(reverse("usage"), MARCH, headers={"Accept-Language": "zh-CN"}))
    assert "用量" in page
    assert not re.findall(r"Nothing was used|most on|Given back", page)


def test_visitors_are_asked_to_sign_in(client: Client) -> None:
    for name in ("usage", "billing", "ledger", "plans", "billing_settings"):
        assert client.get(reverse(name))["Location"] == f"{reverse('account_login')}?next={reverse(name)}"
    assert CreditAccount.objects.count() == 0
