"""Customers as operators find and see them, and what they do to them: each act with its reason, once, or not at all."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client

from accounts.models import AuditEntry, User, Workspace
from accounts.services.api_keys import create_api_key
from billing.models import CreditAccount, LedgerTransaction, PendingAct, Plan, PlanVersion
from billing.selectors.plans import current_subscription
from billing.services.plans import add_plan_version
from portal.lib.clock import now
from tests.billing.books import assert_books_agree
from tests.cast import Api
from tests.console.money_rows import YUAN, available, everything
from tts.models import SynthesisJob

pytestmark = pytest.mark.django_db


def address(workspace: Workspace, act: str = "") -> str:
    return f"/console/customers/{workspace.pk}/" + (f"{act}/" if act else "")


def send(client: Client, workspace: Workspace, act: str, **values: object) -> int:
    answer = client.post(
        address(workspace, act), {"reason": "It was agreed", "key": str(uuid.uuid4()), **values}
    )
    return answer.status_code


@pytest.mark.parametrize("words", ["alice@example", "ALICE", "vp_live", "{id}", "{job}"])
def test_a_customer_is_found_by_what_an_operator_was_told(
    operator_client: Client,
    alice: User,
    alice_workspace: Workspace,
    bob_workspace: Workspace,
    alices_job: SynthesisJob,
    words: str,
) -> None:
    key, _secret = create_api_key(workspace=alice_workspace, user=alice, name="Laptop")
    query = {"{id}": str(alice_workspace.pk), "{job}": str(alices_job.pk), "vp_live": key.prefix}.get(
        words, words
    )
    page = operator_client.get("/console/customers/", {"q": query}).content.decode()
    assert str(alice_workspace.pk) in page
    assert str(bob_workspace.pk) not in page


@pytest.mark.parametrize("words", ["nobody at all", "\x00", "x" * 300, "' OR 1=1 --"])
def test_words_that_mean_nobody_find_nobody(
    operator_client: Client, alice_workspace: Workspace, words: str
) -> None:
    page = operator_client.get("/console/customers/", {"q": words}).content.decode()
    assert "No customer is like that." in page
    assert str(alice_workspace.pk) not in page


def test_the_list_filters_by_state_and_plan(
    operator_client: Client, alice_workspace: Workspace, bob_workspace: Workspace
) -> None:
    Workspace.objects.filter(pk=bob_workspace.pk).update(suspended_at=now())
    for filters, shown, hidden in [
        ({"state": "suspended"}, bob_workspace, alice_workspace),
        ({"state": "active"}, alice_workspace, bob_workspace),
    ]:
        page = operator_client.get("/console/customers/", filters).content.decode()
        assert str(shown.pk) in page
        assert str(hidden.pk) not in page
    assert (
        "No customer is like that."
        in operator_client.get("/console/customers/", {"state": "owing"}).content.decode()
    )
    # A value that is not known filters nothing.
    assert str(bob_workspace.pk) in operator_client.get("/console/customers/?plan=gone").content.decode()


def test_the_number_of_queries_does_not_depend_on_how_many_customers_there_are(
    operator_client: Client,
    alice_workspace: Workspace,
    django_assert_max_num_queries: pytest.FixtureRequest,
) -> None:
    for number in range(30):
        Workspace.objects.create(name=f"Team {number}")
    with django_assert_max_num_queries(14):  # type: ignore[operator]
        operator_client.get("/console/customers/")


def test_a_customers_page_shows_members_and_keys_and_never_a_secret(
    operator_client: Client, alice: User, alice_workspace: Workspace, alices_job: SynthesisJob
) -> None:
    key, secret = create_api_key(workspace=alice_workspace, user=alice, name="Laptop")
    page = operator_client.get(address(alice_workspace)).content.decode()
    for shown in ("alice@example.com", "Laptop", f"{key.prefix}…", str(alices_job.pk), "Set aside for a job"):
        assert shown in page
    for hidden in (secret, key.secret_sha256, "What only Alice may read"):
        assert hidden not in page
    assert operator_client.get(f"/console/customers/{uuid.uuid4()}/").status_code == 404


def test_a_suspended_customer_is_refused_until_the_suspension_ends(
    operator: User, operator_client: Client, alice_api: Api, alice_workspace: Workspace
) -> None:
    assert send(operator_client, alice_workspace, "suspend") == 302
    assert alice_api.send("GET", "/api/v1/voices").status_code == 403
    # It is suspended: a second time changes nothing, not even the moment.
    before = everything()
    assert send(operator_client, alice_workspace, "suspend") == 409
    assert everything() == before
    assert send(operator_client, alice_workspace, "unsuspend") == 302
    assert alice_api.send("GET", "/api/v1/voices").status_code == 200
    entries = AuditEntry.objects.order_by("pk")
    assert [(entry.act, entry.actor, entry.reason) for entry in entries] == [
        ("customer.suspend", operator, "It was agreed"),
        ("customer.unsuspend", operator, "It was agreed"),
    ]


def test_credit_is_added_and_taken_back_with_a_reason_in_the_ledger(
    operator_client: Client, alice_workspace: Workspace
) -> None:
    before = available(alice_workspace)
    assert send(operator_client, alice_workspace, "credit", amount="12.345678") == 302
    assert available(alice_workspace) == before + 12_345_678
    assert send(operator_client, alice_workspace, "debit", amount="2") == 302
    assert available(alice_workspace) == before + 10_345_678
    posted = LedgerTransaction.objects.filter(kind="adjustment").order_by("created_at")
    assert [one.reason for one in posted] == ["It was agreed", "It was agreed"]
    assert_books_agree(alice_workspace.pk)
    entry = AuditEntry.objects.order_by("pk").first()
    assert entry is not None
    assert (entry.before, entry.after) == (
        {"available_micros": before},
        {"available_micros": before + 12_345_678},
    )
    page = operator_client.get(address(alice_workspace)).content.decode()
    assert "Adjusted by the operator" in page
    assert "CN¥12.345678" in page


def test_a_form_that_is_sent_twice_acts_once(operator_client: Client, alice_workspace: Workspace) -> None:
    key = str(uuid.uuid4())
    send(operator_client, alice_workspace, "credit", amount="5", key=key)
    before = everything()
    send(operator_client, alice_workspace, "credit", amount="5", key=key)
    assert everything() == before


@pytest.mark.parametrize("act", ["credit", "debit"])
@pytest.mark.parametrize(
    "amount", ["", "0", "-5", "0.0000001", "1e400", "NaN", "Infinity", "9" * 30, "five", "1,5", "100000001"]
)
def test_an_amount_that_is_none_changes_nothing(
    operator_client: Client, alice_workspace: Workspace, act: str, amount: str
) -> None:
    before = everything()
    assert send(operator_client, alice_workspace, act, amount=amount) == 200
    assert everything() == before


@pytest.mark.parametrize("act", ["credit", "suspend", "credit-limit", "plan"])
def test_nothing_is_done_without_a_reason(
    operator_client: Client, alice_workspace: Workspace, act: str
) -> None:
    before = everything()
    assert send(operator_client, alice_workspace, act, amount="1", reason=" ") == 200
    assert everything() == before


def test_no_more_is_taken_back_than_there_is(operator_client: Client, alice_workspace: Workspace) -> None:
    before = everything()
    assert send(operator_client, alice_workspace, "debit", amount="99") == 200
    assert everything() == before


def test_a_credit_limit_is_set_and_lowered_by_one_operator(
    operator_client: Client, alice_workspace: Workspace
) -> None:
    def limit() -> int:
        return CreditAccount.objects.get(pk=alice_workspace.pk).credit_limit_micros

    assert send(operator_client, alice_workspace, "credit-limit", amount="40") == 302
    assert limit() == 40 * YUAN
    # Above what one may do alone: nothing yet.
    assert send(operator_client, alice_workspace, "credit-limit", amount="5000") == 302
    assert limit() == 40 * YUAN
    assert PendingAct.objects.get(state="open").amount_micros == 5000 * YUAN
    assert send(operator_client, alice_workspace, "credit-limit", amount="0") == 302
    assert limit() == 0


def test_a_plan_is_changed_with_its_limits(operator_client: Client, alice_workspace: Workspace) -> None:
    plan = Plan.objects.create(code="studio", name="Studio")
    version = add_plan_version(version=PlanVersion(plan=plan, voices=7, queued_jobs=3, effective_at=now()))
    assert send(operator_client, alice_workspace, "plan", version=str(version.pk)) == 302
    alice_workspace.refresh_from_db()
    assert (alice_workspace.voices_limit, alice_workspace.queued_jobs_limit) == (7, 3)
    subscription = current_subscription(alice_workspace.pk)
    assert subscription is not None
    assert subscription.plan_version_id == version.pk
    assert AuditEntry.objects.get().after == {"plan": "studio #1"}
    # The same again is no act, and a version that is not offered is no choice.
    before = everything()
    send(operator_client, alice_workspace, "plan", version=str(version.pk))
    assert send(operator_client, alice_workspace, "plan", version="999999") == 200
    assert everything() == before


@pytest.mark.parametrize("act", ["", "credit", "debit", "credit-limit", "plan", "suspend", "unsuspend"])
def test_to_customers_none_of_it_exists(
    alice_client: Client, client: Client, alice_workspace: Workspace, act: str
) -> None:
    before = everything()
    assert alice_client.get(address(alice_workspace, act)).status_code == 404
    values = {"reason": "Mine", "amount": "50", "key": str(uuid.uuid4())}
    if act:
        assert alice_client.post(address(alice_workspace, act), values).status_code == 404
        assert client.post(address(alice_workspace, act), values).status_code == 302
    assert everything() == before


def test_there_is_no_other_act(operator_client: Client, alice_workspace: Workspace) -> None:
    assert operator_client.get(address(alice_workspace, "delete")).status_code == 404
