"""Signing up, in and out, passwords and addresses: what people see, what is mailed, what strangers cannot learn."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import mail
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, User, Workspace
from billing.selectors.balances import balance_of
from billing.services.prices import ensure_first_price
from tests.factories import PASSWORD, personal_workspace

pytestmark = pytest.mark.django_db

GOOD_PASSWORD = "a pool of many voices"
LINK = re.compile(rf"{re.escape(settings.BASE_URL)}(/account/\S+)")


@pytest.fixture(autouse=True)
def fresh_limits(db: None) -> None:
    """Rate limits count in the cache, across tests. And there is a price, as in every installation."""
    cache.clear()
    ensure_first_price()


@pytest.fixture
def verified_alice(alice: User) -> User:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    return alice


def sign_up(client: Client, email: str, password: str = GOOD_PASSWORD, **extra: Any) -> Any:
    return client.post(reverse("account_signup"), {"email": email, "password1": password}, **extra)


def link_in(message: EmailMessage) -> str:
    found = LINK.search(str(message.body))
    assert found, message.body
    return found.group(1)


def visible(response: Any) -> str:
    """The page without what differs from request to request."""
    page = response.content.decode()
    page = re.sub(r'value="[A-Za-z0-9]{64}"|"X-CSRFToken": "\w+"', "", page)
    return re.sub(r"<code>[0-9a-f]{16}</code>", "", page)


def test_sign_up_leads_to_a_verified_account_with_credit(client: Client) -> None:
    response = sign_up(client, "Wen@Example.com")
    assert (response.status_code, response["Location"]) == (302, "/account/confirm-email/")
    user = User.objects.get(email="wen@example.com")
    workspace = personal_workspace(user)
    assert balance_of(workspace.pk).available_micros == 0

    [message] = mail.outbox
    assert message.to == ["wen@example.com"]
    link = link_in(message)
    page = client.get(link)
    assert "wen@example.com" in page.content.decode()
    # Mail scanners open links: looking is not confirming.
    assert not EmailAddress.objects.get(user=user).verified

    confirmed = client.post(link)
    assert (confirmed.status_code, confirmed["Location"]) == (302, reverse("studio"))
    assert EmailAddress.objects.get(user=user).verified
    assert balance_of(workspace.pk).available_micros > 0
    assert client.get(reverse("account_settings")).status_code == 200


def test_an_address_that_is_verified_twice_is_welcomed_once(client: Client) -> None:
    sign_up(client, "wen@example.com")
    link = link_in(mail.outbox[0])
    client.post(link)
    workspace = personal_workspace(User.objects.get(email="wen@example.com"))
    available = balance_of(workspace.pk).available_micros
    Client().post(link)
    assert balance_of(workspace.pk).available_micros == available > 0


@pytest.mark.parametrize(
    "password",
    ["xq7%zk", "1234567890123", "wen.zhang@example", "qwertyuiop"],
    ids=["short", "digits", "like-the-address", "common"],
)
def test_weak_passwords_are_refused_and_nothing_is_made(client: Client, password: str) -> None:
    response = sign_up(client, "wen.zhang@example.com", password)
    assert response.status_code == 200
    page = response.content.decode()
    assert 'aria-invalid="true"' in page
    assert f'value="{password}"' not in page
    assert (User.objects.count(), Workspace.objects.count(), len(mail.outbox)) == (0, 0, 0)


def test_the_browser_gets_the_rules_that_the_server_has(client: Client) -> None:
    page = client.get(reverse("account_signup")).content.decode()
    assert 'data-minimum="10"' in page
    address = re.search(r'data-list="([^"]+)"', page)
    assert address
    common = client.get(address.group(1)).json()["passwords"]
    assert "qwertyuiop" in common
    assert min(len(password) for password in common) == 10


def test_signing_up_tells_nobody_who_has_an_account(verified_alice: User) -> None:
    strangers, owners = Client(), Client()
    unknown = sign_up(strangers, "unknown@example.com")
    known = sign_up(owners, verified_alice.email)
    assert (unknown.status_code, unknown["Location"]) == (known.status_code, known["Location"])
    assert set(unknown.cookies) == set(known.cookies)
    assert visible(strangers.get(unknown["Location"])) == visible(owners.get(known["Location"]))
    assert [message.to for message in mail.outbox] == [["unknown@example.com"], [verified_alice.email]]
    assert "confirm-email" in mail.outbox[0].body
    assert "confirm-email" not in mail.outbox[1].body
    assert reverse("account_reset_password") in mail.outbox[1].body
    assert User.objects.filter(email=verified_alice.email).count() == 1
    assert verified_alice.check_password(PASSWORD)


def test_asking_for_a_password_tells_nobody_who_has_an_account(verified_alice: User) -> None:
    strangers, owners = Client(), Client()
    unknown = strangers.post(reverse("account_reset_password"), {"email": "unknown@example.com"})
    known = owners.post(reverse("account_reset_password"), {"email": verified_alice.email})
    assert (unknown.status_code, unknown["Location"]) == (known.status_code, known["Location"])
    assert set(unknown.cookies) == set(known.cookies)
    assert visible(strangers.get(unknown["Location"])) == visible(owners.get(known["Location"]))
    assert [message.to for message in mail.outbox] == [["unknown@example.com"], [verified_alice.email]]


def test_signing_in_tells_nobody_who_has_an_account(verified_alice: User) -> None:
    attempt = {"login": "nobody@example.com", "password": "wrong wrong wrong"}
    unknown = Client().post(reverse("account_login"), attempt)
    known = Client().post(reverse("account_login"), {**attempt, "login": verified_alice.email})
    assert unknown.status_code == known.status_code == 200
    there = visible(unknown).replace("nobody@example.com", "")
    assert there == visible(known).replace(verified_alice.email, "")
    assert "do not belong together" in there
    assert mail.outbox == []


def test_changing_to_an_address_tells_nobody_who_has_it(verified_alice: User, bob: User) -> None:
    answers = []
    for email in ("unknown@example.com", verified_alice.email):
        cache.clear()
        EmailAddress.objects.filter(user=bob).delete()
        EmailAddress.objects.create(user=bob, email=bob.email, verified=True, primary=True)
        client = signed_in(bob)
        reauthenticate(client)
        response = client.post(reverse("account_email"), {"action_add": "1", "email": email})
        page = client.get(response["Location"])
        answers.append((response.status_code, response["Location"], visible(page).replace(email, "")))
    assert answers[0] == answers[1]
    bob.refresh_from_db()
    assert bob.email == "bob@example.com"


def signed_in(user: User, password: str = PASSWORD) -> Client:
    client = Client()
    response = client.post(reverse("account_login"), {"login": user.email, "password": password})
    assert (response.status_code, response["Location"]) == (302, reverse("studio"))
    return client


def reauthenticate(client: Client) -> None:
    response = client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert response.status_code == 302


def test_an_unverified_address_cannot_sign_in_and_gets_the_link_again(client: Client) -> None:
    sign_up(client, "wen@example.com")
    cache.clear()  # the link is sent at most every three minutes
    other = Client()
    response = other.post(reverse("account_login"), {"login": "wen@example.com", "password": GOOD_PASSWORD})
    assert response["Location"] == reverse("account_email_verification_sent")
    assert other.get(reverse("account_settings")).status_code == 302
    assert len(mail.outbox) == 2
    assert "confirm-email" in mail.outbox[1].body


def test_a_reset_changes_the_password_once_and_is_told(verified_alice: User, client: Client) -> None:
    client.post(reverse("account_reset_password"), {"email": verified_alice.email})
    link = link_in(mail.outbox[0])
    form_at = client.get(link)["Location"]
    page = client.get(form_at).content.decode()
    assert 'autocomplete="new-password"' in page
    assert f'value="{verified_alice.email}" autocomplete="username"' in page
    done = client.post(form_at, {"password1": GOOD_PASSWORD})
    assert done["Location"] == reverse("account_reset_password_from_key_done")
    verified_alice.refresh_from_db()
    assert verified_alice.check_password(GOOD_PASSWORD)
    assert [message.to for message in mail.outbox] == [[verified_alice.email]] * 2
    assert GOOD_PASSWORD not in mail.outbox[1].body

    again = Client().get(link)
    assert again.status_code == 200
    assert "password1" not in again.content.decode()


def test_changing_the_password_needs_the_old_one(verified_alice: User) -> None:
    client = signed_in(verified_alice)
    address = reverse("account_change_password")
    refused = client.post(address, {"oldpassword": "not it at all", "password1": GOOD_PASSWORD})
    assert refused.status_code == 200
    verified_alice.refresh_from_db()
    assert verified_alice.check_password(PASSWORD)
    changed = client.post(address, {"oldpassword": PASSWORD, "password1": GOOD_PASSWORD})
    assert changed["Location"] == reverse("account_settings")
    verified_alice.refresh_from_db()
    assert verified_alice.check_password(GOOD_PASSWORD)
    assert [message.to for message in mail.outbox] == [[verified_alice.email]]


def test_a_new_address_counts_once_it_is_verified(verified_alice: User) -> None:
    client = signed_in(verified_alice)
    address = reverse("account_email")
    asked = client.post(address, {"action_add": "1", "email": "new@example.com"})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert mail.outbox == []
    client.post(asked["Location"], {"password": PASSWORD})
    [message] = mail.outbox
    assert message.to == ["new@example.com"]
    verified_alice.refresh_from_db()
    assert verified_alice.email == "alice@example.com"
    client.post(link_in(message))
    verified_alice.refresh_from_db()
    assert verified_alice.email == "new@example.com"
    assert [row.email for row in EmailAddress.objects.filter(user=verified_alice)] == ["new@example.com"]
    # The old address is told, so that its owner notices.
    assert mail.outbox[1].to == ["alice@example.com"]


def test_signing_out_takes_a_post(verified_alice: User) -> None:
    client = signed_in(verified_alice)
    assert client.get(reverse("account_logout")).status_code == 200
    assert client.get(reverse("account_settings")).status_code == 200
    assert client.post(reverse("account_logout"))["Location"] == reverse("landing")
    assert client.get(reverse("account_settings")).status_code == 302


def test_five_wrong_passwords_close_the_door_also_to_the_right_one(verified_alice: User) -> None:
    client = Client()
    address = reverse("account_login")
    for _ in range(5):
        client.post(address, {"login": verified_alice.email, "password": "wrong wrong wrong"})
    response = client.post(address, {"login": verified_alice.email, "password": PASSWORD})
    assert response.status_code == 200
    assert "Too many attempts" in response.content.decode()
    assert client.get(reverse("account_settings")).status_code == 302


def test_too_many_sign_ups_from_one_address_are_answered_in_our_words(client: Client) -> None:
    for number in range(20):
        assert sign_up(client, f"person{number}@example.com", "weak").status_code == 200
    response = sign_up(client, "person21@example.com")
    assert (response.status_code, response["Retry-After"]) == (429, "60")
    page = response.content.decode()
    assert "rate_limited" in page
    assert 'class="topbar"' in page
    assert User.objects.count() == 0


@pytest.mark.parametrize(
    "path",
    [
        "login/code/",
        "login/code/confirm/",
        "reauthenticate/code/",
        "reauthenticate/code/confirm/",
        "password/set/",
        "password/reset/confirm/",
        "phone/verify/",
        "phone/change/",
        "signup/passkey/",
        "2fa/",
        "social/signup/",
    ],
)
def test_ways_that_are_not_in_use_have_no_address(alice_client: Client, client: Client, path: str) -> None:
    assert client.get(f"/account/{path}").status_code == 404
    assert alice_client.get(f"/account/{path}").status_code == 404


VISITOR_PAGES = ["login", "signup", "confirm-email", "password/reset", "password/reset/done", "inactive"]
VISITOR_PAGES += ["password/reset/key/done", "password/reset/key/1-bad-key", "confirm-email/bad"]
MEMBER_PAGES = ["logout", "email", "password/change", "reauthenticate"]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_stands_in_our_frame(client: Client, alice_client: Client, language: str) -> None:
    pages = [(client, path) for path in VISITOR_PAGES] + [(alice_client, path) for path in MEMBER_PAGES]
    for browser, path in pages:
        page = browser.get(f"/account/{path}/", headers={"Accept-Language": language}).content.decode()
        assert f'<html lang="{language}"' in page, path
        assert '<main class="content content--column" id="content"' in page, path
        assert len(re.findall(r"<h1[\s>]", page)) == 1, path
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), path
        assert not re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page), path


def test_fields_say_what_they_are_to_password_managers(client: Client) -> None:
    sign_in = client.get(reverse("account_login")).content.decode()
    sign_up_page = client.get(reverse("account_signup")).content.decode()
    assert re.search(r'<input[^>]*name="login"[^>]*autocomplete="username"', sign_in)
    assert re.search(r'<input[^>]*name="password"[^>]*autocomplete="current-password"', sign_in)
    assert re.search(r'<input[^>]*name="email"[^>]*autocomplete="email"', sign_up_page)
    assert re.search(r'<input[^>]*name="password1"[^>]*autocomplete="new-password"', sign_up_page)
    assert "password2" not in sign_up_page


def test_the_language_chosen_at_sign_up_comes_along_to_another_browser(client: Client) -> None:
    sign_up(client, "wen@example.com", headers={"Accept-Language": "zh-hans"})
    user = User.objects.get(email="wen@example.com")
    assert user.locale == "zh-hans"
    EmailAddress.objects.filter(user=user).update(verified=True)
    other = Client()
    other.post(
        reverse("account_login"),
        {"login": "wen@example.com", "password": GOOD_PASSWORD},
        headers={"Accept-Language": "en"},
    )
    page = other.get(reverse("account_settings"), headers={"Accept-Language": "en"}).content.decode()
    assert '<html lang="zh-hans"' in page


def test_a_membership_is_made_with_the_account(client: Client) -> None:
    sign_up(client, "wen@example.com")
    [membership] = Membership.objects.all()
    assert (membership.user.email, membership.role, membership.workspace.name) == (
        "wen@example.com",
        "owner",
        "wen",
    )
