"""A verified address opens the account's credit: once, and never half."""

from __future__ import annotations

import pytest
from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import RequestFactory

from accounts.models import User
from billing.errors import NoPrice
from billing.models import CreditAccount, LedgerTransaction
from billing.services.prices import ensure_first_price
from portal.workflows import open_account


@pytest.fixture
def request_of_a_visitor(rf: RequestFactory, db: None) -> HttpRequest:
    request = rf.post("/account/confirm-email/")
    request.session = SessionStore()
    request._messages = CookieStorage(request)  # type: ignore[attr-defined]  # as the middleware does
    return request


@pytest.fixture
def address(db: None) -> EmailAddress:
    """The unverified address of somebody who just signed up."""
    user = User.objects.create_user("dora@example.com", "correct horse battery")
    open_account(user=user)
    address: EmailAddress = EmailAddress.objects.create(user=user, email=user.email, primary=True)
    return address


def confirm(request: HttpRequest, address: EmailAddress) -> bool:
    fresh = EmailAddress.objects.get(pk=address.pk)
    confirmed: bool = get_adapter().confirm_email(request, fresh)
    return confirmed


def test_a_verified_address_brings_the_welcome_credit_once(
    request_of_a_visitor: HttpRequest, address: EmailAddress
) -> None:
    ensure_first_price()
    assert confirm(request_of_a_visitor, address)
    assert EmailAddress.objects.get().verified
    # 300 seconds at 12,000 micros.
    assert [account.available_micros for account in CreditAccount.objects.all()] == [3_600_000]
    confirm(request_of_a_visitor, address)
    assert LedgerTransaction.objects.count() == 1


def test_a_welcome_that_fails_leaves_the_address_to_be_verified_again(
    request_of_a_visitor: HttpRequest, address: EmailAddress
) -> None:
    with pytest.raises(NoPrice):
        confirm(request_of_a_visitor, address)
    assert not EmailAddress.objects.get().verified
    assert CreditAccount.objects.count() == 0
    ensure_first_price()
    assert confirm(request_of_a_visitor, address)
    assert CreditAccount.objects.get().available_micros == 3_600_000
