"""What is mailed: plain text, in the language of whoever asked, with links that work and nothing escaped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.conf import LazySettings, settings
from django.core import mail
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.test import Client
from django.urls import reverse

from accounts.models import User
from billing.services.prices import ensure_first_price
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db

LINK = re.compile(rf"{re.escape(settings.BASE_URL)}(/\S+)")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
USER_AGENT = 'Odd <Browser> & "friends\'"'
NEW_PASSWORD = "a pool of many voices"


class Visitor:
    """A browser that asks for one language. Addresses hold what a template could escape by mistake."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.client = Client(headers={"Accept-Language": language, "User-Agent": USER_AGENT})

    def post(self, name: str, **fields: str) -> Any:
        # As a switch of the language would have set it: signing in must not bring another one along.
        self.client.cookies["django_language"] = self.language
        return self.client.post(reverse(name), fields)


@pytest.fixture(autouse=True)
def fresh_limits(db: None) -> None:
    cache.clear()
    ensure_first_price()


@pytest.fixture
def olive(db: None) -> User:
    user = User.objects.create_user("o'hara+a&b@example.com", PASSWORD)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def sign_up(visitor: Visitor, olive: User) -> None:
    visitor.post("account_signup", email="new+a&b@example.com", password1=NEW_PASSWORD)


def sign_up_again(visitor: Visitor, olive: User) -> None:
    visitor.post("account_signup", email=olive.email, password1=NEW_PASSWORD)


def reset(visitor: Visitor, olive: User) -> None:
    visitor.post("account_reset_password", email=olive.email)


def reset_unknown(visitor: Visitor, olive: User) -> None:
    visitor.post("account_reset_password", email="un&known@example.com")


def change_password(visitor: Visitor, olive: User) -> None:
    visitor.post("account_login", login=olive.email, password=PASSWORD)
    visitor.post("account_change_password", oldpassword=PASSWORD, password1=NEW_PASSWORD)


def change_address(visitor: Visitor, olive: User) -> None:
    visitor.post("account_login", login=olive.email, password=PASSWORD)
    visitor.post("account_reauthenticate", password=PASSWORD)
    visitor.post("account_email", email="other&one@example.com", action_add="1")


Occasion = Callable[[Visitor, User], None]
OCCASIONS: list[tuple[Occasion, str, str | None]] = [
    (sign_up, "new+a&b@example.com", "/account/confirm-email/"),
    (sign_up_again, "o'hara+a&b@example.com", "/account/password/reset/"),
    (reset, "o'hara+a&b@example.com", "/account/password/reset/key/"),
    (reset_unknown, "un&known@example.com", "/account/signup/"),
    (change_password, "o'hara+a&b@example.com", None),
    (change_address, "other&one@example.com", "/account/confirm-email/"),
]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize(
    ("occasion", "to", "link"), OCCASIONS, ids=lambda value: getattr(value, "__name__", "")
)
def test_mails_are_plain_and_in_the_readers_language(
    olive: User, language: str, occasion: Occasion, to: str, link: str | None
) -> None:
    visitor = Visitor(language)
    occasion(visitor, olive)
    [message] = mail.outbox
    assert message.to == [to]
    assert message.subject
    assert "\n" not in message.subject
    body = str(message.body)
    assert bool(CHINESE.search(message.subject)) == (language == "zh-hans")
    assert bool(CHINESE.search(body)) == (language == "zh-hans")
    assert getattr(message, "alternatives", []) == []
    assert isinstance(message, EmailMessage)
    assert not re.search(r"&(amp|lt|gt|quot|#x?\w+);|%\(|{{", message.subject + body)
    assert to in body
    links = LINK.findall(body)
    if link is None:
        assert links == []
        assert USER_AGENT in body
        assert "127.0.0.1" in body
    else:
        [found] = links
        assert found.startswith(link)
        assert visitor.client.get(found).status_code in (200, 302)
    assert NEW_PASSWORD not in body


def test_who_lost_an_address_is_told_at_the_old_one(olive: User) -> None:
    visitor = Visitor("en")
    change_address(visitor, olive)
    [link] = LINK.findall(str(mail.outbox[0].body))
    visitor.client.post(link)
    told = mail.outbox[1]
    assert told.to == ["o'hara+a&b@example.com"]
    assert "other&one@example.com" in told.body


def test_a_link_leads_here_whatever_host_the_request_named(olive: User, settings: LazySettings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    settings.BASE_URL = "https://speech.example"
    visitor = Visitor("en")
    visitor.client.post(
        reverse("account_reset_password"), {"email": olive.email}, headers={"Host": "evil.example"}
    )
    [message] = mail.outbox
    assert "evil.example" not in str(message.body)
    assert re.search(
        r"^https://speech\.example/account/password/reset/key/\S+$", str(message.body), re.MULTILINE
    )


@pytest.mark.parametrize("page", ["account_signup", "account_reset_password"])
@pytest.mark.parametrize("address", ["x@\u202eexample.com", "x@" + "\u00fc" * 70 + ".example"])
def test_an_address_that_no_mail_reaches_is_refused(db: None, page: str, address: str) -> None:
    response = Visitor("en").post(page, email=address, password1=NEW_PASSWORD)
    assert response.status_code == 200
    assert "Enter a valid email address." in response.content.decode()
    assert mail.outbox == []
    assert not User.objects.exists()
