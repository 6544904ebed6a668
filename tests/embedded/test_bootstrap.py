"""What must be there before the first visitor is made once, and what people changed since is left alone."""

from __future__ import annotations

import json

import pytest
from allauth.account.models import EmailAddress
from django.core.management import call_command

from accounts.models import ApiKey, Membership, User
from accounts.services.api_keys import find_active_key, revoke_api_key
from billing.models import PriceVersion, Subscription
from billing.selectors.balances import balance_of
from billing.services.plans import ensure_first_plan
from billing.services.prices import ensure_first_price
from portal.management.commands.bootstrap import make_accounts
from tts.engine.catalogue import PRESET_VOICES
from tts.models import Voice

pytestmark = pytest.mark.django_db

OPERATOR = {
    "VOICEPOOL_OPERATOR_EMAIL": "operator@example.com",
    "VOICEPOOL_OPERATOR_PASSWORD": "an operator's password",
}
BOTH = {
    **OPERATOR,
    "VOICEPOOL_DEMONSTRATION_EMAIL": "Customer@Example.com",
    "VOICEPOOL_DEMONSTRATION_PASSWORD": "a customer's password",
}


@pytest.fixture(autouse=True)
def _price(db: None) -> None:
    ensure_first_price()


def test_it_makes_an_operator_and_a_customer_who_can_sign_in_and_speak():
    key = make_accounts(BOTH)
    assert key is not None
    operator, customer = User.objects.get(is_staff=True), User.objects.get(is_staff=False)
    assert (operator.email, operator.is_superuser) == ("operator@example.com", True)
    assert operator.check_password("an operator's password")
    assert (customer.email, customer.is_superuser) == ("customer@example.com", False)
    assert customer.check_password("a customer's password")
    assert set(EmailAddress.objects.values_list("email", "verified", "primary")) == {
        ("operator@example.com", True, True),
        ("customer@example.com", True, True),
    }
    row = find_active_key(key)
    assert row is not None
    assert row.created_by == customer
    assert Membership.objects.get(user=customer).workspace_id == row.workspace_id
    assert balance_of(row.workspace_id).affordable_gpu_ms == 300_000


def test_a_second_time_changes_nothing(settings):
    key = make_accounts(BOTH)
    customer = User.objects.get(is_staff=False)
    workspace_id = Membership.objects.get(user=customer).workspace_id
    before = balance_of(workspace_id)
    assert make_accounts({**BOTH, "VOICEPOOL_DEMONSTRATION_API_KEY": key or ""}) is None
    assert User.objects.count() == 2
    assert Membership.objects.count() == 2
    assert EmailAddress.objects.count() == 2
    assert ApiKey.objects.count() == 1
    assert balance_of(workspace_id) == before


def test_a_password_that_a_person_changed_and_rights_that_were_taken_stay_so():
    make_accounts(OPERATOR)
    operator = User.objects.get()
    operator.set_password("another password")
    operator.is_staff = False
    operator.save(update_fields=["password", "is_staff"])
    make_accounts(OPERATOR)
    operator.refresh_from_db()
    assert operator.check_password("another password")
    assert operator.is_staff is False


@pytest.mark.parametrize("known", ["", "vp_live_not_a_key"])
def test_a_lost_key_is_replaced(known):
    first = make_accounts(BOTH)
    second = make_accounts({**BOTH, "VOICEPOOL_DEMONSTRATION_API_KEY": known})
    assert second is not None
    assert second != first
    assert find_active_key(second) is not None


def test_a_revoked_key_is_replaced():
    first = make_accounts(BOTH)
    row = find_active_key(first or "")
    assert row is not None
    revoke_api_key(workspace=row.workspace, key_id=row.pk)
    second = make_accounts({**BOTH, "VOICEPOOL_DEMONSTRATION_API_KEY": first or ""})
    assert second is not None
    assert find_active_key(second) is not None


def test_without_a_demonstration_there_is_no_customer():
    assert make_accounts(OPERATOR) is None
    assert User.objects.count() == 1
    assert ApiKey.objects.count() == 0


def test_the_command_answers_with_one_line(monkeypatch, capsys):
    for name, value in OPERATOR.items():
        monkeypatch.setenv(name, value)
    call_command("bootstrap")
    assert json.loads(capsys.readouterr().out) == {"demonstration_api_key": None}
    assert PriceVersion.objects.count() == 1
    assert set(Voice.objects.values_list("preset_key", flat=True)) == {voice.key for voice in PRESET_VOICES}


def test_a_price_that_the_operator_set_is_not_joined_by_ours():
    PriceVersion.objects.update(number=7)
    ensure_first_price()
    assert list(PriceVersion.objects.values_list("number", flat=True)) == [7]


def test_new_workspaces_begin_with_the_first_plan():
    ensure_first_plan()
    make_accounts(BOTH)
    customer = User.objects.get(is_staff=False)
    subscription = Subscription.objects.get(workspace_id=Membership.objects.get(user=customer).workspace_id)
    assert subscription.plan_version.plan.code == "standard"
    make_accounts(BOTH)
    assert Subscription.objects.filter(workspace_id=subscription.workspace_id).count() == 1
