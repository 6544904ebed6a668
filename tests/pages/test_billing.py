"""The Billing pages: what there is, what happened to it, the plan, and who may change what."""

from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Role, User, Workspace
from billing.models import (
    BillingProfile,
    CreditAccount,
    GrantKind,
    Plan,
    PlanVersion,
    Subscription,
    TransactionKind,
)
from billing.selectors.plans import current_subscription
from billing.services import debits, grants, holds
from billing.services.plans import add_plan_version, ensure_first_plan, subscribe_to_default
from portal.lib.clock import now
from tests.billing.books import all_books, balance, grant
from tests.cast import api_of, client_of
from tests.factories import make_job
from tests.pages.reading import text_of
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db
MONEY_PAGES = ("billing_settings",)


def member(workspace: Workspace, user: User, role: Role) -> Client:
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = client_of(user)
    client.post(reverse("choose_workspace"), {"workspace": str(workspace.pk)})
    return client


def give(workspace: Workspace, micros: int, **options: Any) -> None:
    grants.grant(
        workspace_id=workspace.pk, amount_micros=micros, idempotency_key=f"test:{uuid.uuid4()}", **options
    )


# -- Balance and credit --------------------------------------------------------------------------------------


def test_the_balance_and_the_credit_it_is_made_of(alice_workspace: Workspace, alice_client: Client) -> None:
    give(alice_workspace, 20_000_000, kind=GrantKind.PAID)
    give(alice_workspace, 5_000_000, kind=GrantKind.VOUCHER, expires_at=now() + timedelta(days=3))
    job_id = uuid.uuid4()
    with transaction.atomic():
        holds.place_hold(workspace_id=alice_workspace.pk, job_id=job_id, amount_micros=1_250_000)
    page = text_of(alice_client.get(reverse("billing")))
    # The welcome credit of the tests is 3.60.
    assert "Available CN¥27.35 Set aside for jobs CN¥1.25" in page
    assert re.search(
        r"Given .* CN¥3\.60 CN¥3\.60 Never Voucher .* CN¥5\.00 CN¥5\.00 .* soon Paid .* CN¥20\.00", page
    )
    assert "Owed" not in page
    assert "Credit limit" not in page


def test_what_is_owed_and_the_credit_limit_stand_there_where_there_are_any(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    CreditAccount.objects.filter(pk=alice_workspace.pk).update(credit_limit_micros=50_000_000)
    debits.debit(
        workspace_id=alice_workspace.pk,
        amount_micros=10_000_000,
        kind=TransactionKind.FEE,
        idempotency_key="fee",
        may_owe=True,
    )
    page = text_of(alice_client.get(reverse("billing")))
    assert "Available −CN¥6.40 Set aside for jobs CN¥0.00 Owed CN¥6.40 Credit limit CN¥50.00" in page
    assert "of speech" not in page


def test_the_place_is_called_alike_everywhere_in_chinese(alice_client: Client) -> None:
    page = alice_client.get(reverse("billing"), headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "<h1>账单</h1>" in page
    for place in ("rail__link", "bottombar__link"):
        current = re.findall(rf'<a class="{place}"[^>]*aria-current="page">.*?</svg>([^<]+)</a>', page)
        assert current == ["账单"]


def test_a_phone_reaches_usage_and_billing_from_its_bar_and_developers_from_the_menu(
    alice_client: Client,
) -> None:
    page = alice_client.get(reverse("studio")).content.decode()
    names = re.findall(r'<a class="bottombar__link"[^>]*>.*?</svg>([^<]+)</a>', page)
    assert names == ["Studio", "Voices", "History", "Usage", "Billing"]
    assert re.search(rf'<a class="menu__item" href="{reverse("developers")}">', page)


def test_the_balance_in_the_frame_leads_to_billing(alice_client: Client) -> None:
    page = alice_client.get(reverse("billing")).content.decode()
    assert f'<a class="balance" href="{reverse("billing")}"' in page
    assert re.findall(r'<a class="rail__link"[^>]*aria-current="page">.*?</svg>([^<]+)</a>', page) == [
        "Billing"
    ]


# -- Ledger --------------------------------------------------------------------------------------------------


def file_of(response: Any) -> list[dict[str, str]]:
    content = b"".join(response.streaming_content)
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def test_every_movement_stands_there_in_words_with_its_job(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    response = alice_client.get(reverse("ledger"))
    page = text_of(response)
    held = alices_job.held_micros / 1_000_000
    assert re.search(rf"Set aside for a job {str(alices_job.pk)[:8]} −CN¥{held:.6f}".rstrip("0"), page)
    assert "Credit granted – +CN¥3.60 – +CN¥3.60" in page
    assert f'href="{reverse("job", args=[alices_job.pk])}"' in response.content.decode()
    SynthesisJob.objects.filter(pk=alices_job.pk).update(deleted_at=now())
    gone = alice_client.get(reverse("ledger")).content.decode()
    assert f'href="{reverse("job", args=[alices_job.pk])}"' not in gone
    assert str(alices_job.pk)[:8] in gone


def test_the_ledgers_file_and_its_api_add_up_to_the_balance(
    alice: User, alice_workspace: Workspace, alice_client: Client, alices_voice: Voice
) -> None:
    for number in range(3):
        make_job(alice_workspace, alice, alices_voice, text=f"Sentence {number}.")
    give(alice_workspace, 1_000_001)
    available, held = balance(alice_workspace.pk)
    lines = file_of(alice_client.get(reverse("ledger"), {"format": "csv"}))
    assert sum(int(line["available_micros"]) for line in lines) == available
    assert sum(int(line["held_micros"]) for line in lines) == held
    api, address = api_of(alice), "/api/v1/ledger?page_size=2"
    entries = []
    while address:
        answer = api.get(address).json()
        entries += answer["results"]
        address = (answer["next"] or "").removeprefix("http://testserver")
    assert [entry["id"] for entry in entries] == [line["id"] for line in lines]
    assert sum(entry["available"]["amount_micros"] for entry in entries) == available
    assert sum(entry["held"]["amount_micros"] for entry in entries) == held
    granted = api.get("/api/v1/ledger", {"kind": "grant"}).json()["results"]
    assert {entry["kind"] for entry in granted} == {"grant"}
    assert api.get("/api/v1/ledger", {"until": "2020-01-01T00:00:00Z"}).json()["results"] == []
    assert api.get("/api/v1/ledger", {"kind": "gift"}).status_code == 400


def test_long_ledgers_have_pages(alice_workspace: Workspace, alice_client: Client) -> None:
    for _ in range(60):
        give(alice_workspace, 1)
    first = alice_client.get(reverse("ledger"))
    older = re.search(r'rel="next" href="([^"]+)"', first.content.decode())
    assert older
    second = alice_client.get(reverse("ledger") + older[1].replace("&amp;", "&"))
    assert first.content.decode().count("<tr>") + second.content.decode().count("<tr>") == 61 + 2


def test_the_ledger_can_be_narrowed(alice_client: Client, alices_job: SynthesisJob) -> None:
    page = text_of(alice_client.get(reverse("ledger"), {"show": "grant"}))
    assert "+CN¥3.60" in page
    assert str(alices_job.pk)[:8] not in page
    assert alice_client.get(reverse("ledger"), {"show": "moon", "before": "x"}).status_code == 200


def test_no_ledger_tells_of_others(alices_job: SynthesisJob, charlie_client: Client, charlie: User) -> None:
    for address in (reverse("ledger"), reverse("billing")):
        assert str(alices_job.pk)[:8] not in charlie_client.get(address).content.decode()
    jobs = [entry["job_id"] for entry in api_of(charlie).get("/api/v1/ledger").json()["results"]]
    assert jobs == [None]


# -- Plan ----------------------------------------------------------------------------------------------------


def offer(code: str, **fields: Any) -> PlanVersion:
    plan = Plan.objects.create(code=code, name=code.title(), is_offered=fields.pop("is_offered", True))
    return add_plan_version(version=PlanVersion(plan=plan, effective_at=now() - timedelta(days=1), **fields))


@pytest.fixture
def on_standard(alice_workspace: Workspace) -> None:
    ensure_first_plan()
    subscribe_to_default(workspace_id=alice_workspace.pk)


@pytest.mark.usefixtures("on_standard")
def test_a_plan_is_changed_after_a_question_that_says_what_changes(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    pro = offer("pro", monthly_fee_micros=99_000_000, voices=500, included_gpu_seconds=3600)
    grant(alice_workspace.pk, 99_000_000)
    page = alice_client.get(reverse("plans"))
    assert "You are on “Standard”" in text_of(page)
    address = reverse("plan_change", args=["pro"])
    assert f'href="{address}"' in page.content.decode()
    question = text_of(alice_client.get(address))
    assert "Change to “Pro”?" in question
    assert "Monthly fee none CN¥99.00" in question
    assert "Cloned voices 50 500" in question
    assert "divided by days" in question
    assert current_subscription(alice_workspace.pk).plan_version.plan.code == "standard"  # type: ignore[union-attr]
    for _ in range(2):
        answer = alice_client.post(address, {"version": str(pro.pk), "begins": "now"})
        assert answer["Location"] == reverse("plans")
    assert Subscription.objects.filter(workspace_id=alice_workspace.pk).count() == 2
    assert current_subscription(alice_workspace.pk).plan_version == pro  # type: ignore[union-attr]
    alice_workspace.refresh_from_db()
    assert alice_workspace.voices_limit == 500
    assert "You are on “Pro”" in text_of(alice_client.get(reverse("plans")))
    assert alice_client.get(address)["Location"] == reverse("plans")


@pytest.mark.usefixtures("on_standard")
def test_the_yes_to_another_version_than_the_one_shown_changes_nothing(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    old = offer("pro", monthly_fee_micros=1_000_000)
    add_plan_version(
        version=PlanVersion(
            plan=old.plan, effective_at=now() - timedelta(seconds=1), monthly_fee_micros=900_000_000
        )
    )
    for version in (str(old.pk), "", "x"):
        answer = alice_client.post(
            reverse("plan_change", args=["pro"]), {"version": version, "begins": "now"}
        )
        assert answer.status_code == 409
    assert Subscription.objects.filter(workspace_id=alice_workspace.pk).count() == 1


@pytest.mark.usefixtures("on_standard")
def test_a_plan_that_is_not_offered_cannot_be_chosen(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    hidden = offer("hidden", is_offered=False)
    assert "Hidden" not in alice_client.get(reverse("plans")).content.decode()
    for code in ("hidden", "nothing"):
        address = reverse("plan_change", args=[code])
        assert alice_client.get(address).status_code == 404
        assert alice_client.post(address, {"version": str(hidden.pk)}).status_code == 404
    assert Subscription.objects.filter(workspace_id=alice_workspace.pk).count() == 1


# -- Settings ------------------------------------------------------------------------------------------------

PARTY = {
    "name": "Alice 有限公司",
    "address": "1 Road\nTown",
    "tax_number": "91310000",
    "email": "bills@example.com",
}


def test_who_is_billed_the_notice_and_the_zone_are_kept_apart(
    alice_workspace: Workspace, alice_client: Client
) -> None:
    BillingProfile.objects.create(workspace_id=alice_workspace.pk, tax_rate_basis_points=600)
    assert alice_client.post(reverse("billed_party_set"), PARTY).status_code == 302
    assert alice_client.post(reverse("low_balance_set"), {"below": "5"}).status_code == 302
    assert alice_client.post(reverse("time_zone_set"), {"time_zone": "Asia/Tokyo"}).status_code == 302
    profile = BillingProfile.objects.get()
    assert (profile.name, profile.tax_number, profile.email) == (
        "Alice 有限公司",
        "91310000",
        "bills@example.com",
    )
    assert (profile.low_balance_micros, profile.tax_rate_basis_points) == (5_000_000, 600)
    assert CreditAccount.objects.get(pk=alice_workspace.pk).time_zone == "Asia/Tokyo"
    page = alice_client.get(reverse("billing_settings")).content.decode()
    for stored in ('value="Alice 有限公司"', 'value="5.00"', '<option value="Asia/Tokyo" selected>'):
        assert stored in page
    alice_client.post(reverse("low_balance_set"), {"below": ""})
    profile.refresh_from_db()
    assert (profile.low_balance_micros, profile.name) == (None, "Alice 有限公司")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("billed_party_set", {**PARTY, "email": "nobody"}),
        ("billed_party_set", {**PARTY, "name": "x" * 201}),
        ("low_balance_set", {"below": "-1"}),
        ("low_balance_set", {"below": "much"}),
        ("time_zone_set", {"time_zone": "Mars/Olympus"}),
        ("time_zone_set", {"time_zone": ""}),
        ("time_zone_set", {"time_zone": "localtime"}),
    ],
)
def test_settings_that_cannot_be_are_explained_and_not_kept(
    alice_workspace: Workspace, alice_client: Client, name: str, fields: dict[str, str]
) -> None:
    zone = CreditAccount.objects.get(pk=alice_workspace.pk).time_zone
    answer = alice_client.post(reverse(name), fields)
    assert answer.status_code == 422
    assert "field__error" in answer.content.decode()
    assert BillingProfile.objects.count() == 0
    assert CreditAccount.objects.get(pk=alice_workspace.pk).time_zone == zone


# -- Roles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "may"), [(Role.BILLING, True), (Role.ADMIN, False), (Role.MEMBER, False)])
def test_who_looks_after_the_money_may_arrange_it_and_others_see_the_balance(
    alice: User, charlie: User, team: Workspace, role: Role, may: bool
) -> None:
    ensure_first_plan()
    give(team, 7_000_000)
    pro = offer("pro", monthly_fee_micros=1_000_000)
    client = member(team, charlie, role)
    books = all_books()
    for name in ("billing", "ledger", "plans"):
        assert client.get(reverse(name)).status_code == 200
    assert "Available CN¥7.00" in text_of(client.get(reverse("billing")))
    assert client.get(reverse("billing_settings")).status_code == (200 if may else 403)
    plan = reverse("plan_change", args=["pro"])
    assert client.get(plan).status_code == (200 if may else 403)
    acts = [
        (reverse("billed_party_set"), PARTY),
        (reverse("low_balance_set"), {"below": "5"}),
        (reverse("time_zone_set"), {"time_zone": "Asia/Tokyo"}),
        (plan, {"version": str(pro.pk), "begins": "now"}),
    ]
    for address, fields in acts:
        answer = client.post(address, fields)
        assert answer.status_code == (302 if may else 403), address
        assert may or "Nothing was changed" in text_of(answer)
    assert BillingProfile.objects.exists() == may
    assert (current_subscription(team.pk) is not None) == may
    if not may:
        assert all_books() == books
        page = client.get(reverse("billing")).content.decode()
        assert reverse("billing_settings") not in page


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("name", ["usage", "billing", "ledger", "plans", "billing_settings"])
def test_the_pages_are_whole_without_scripts_in_both_languages(
    alice_client: Client, alices_job: SynthesisJob, name: str, language: str
) -> None:
    page = alice_client.get(reverse(name), headers={"Accept-Language": language}).content.decode()
    assert f'<html lang="{language}"' in page
    assert len(re.findall(r"<h1[\s>]", page)) == 1
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert not re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page)
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert sorted(ids) == sorted(set(ids))
