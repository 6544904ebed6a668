"""The console and the records are the operators'. To customers they do not exist; nobody is asked to sign in first."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from accounts.models import User
from tests.cast import client_of
from tests.console.rows import somebody
from tests.factories import PASSWORD

PLACES = ["/console/", "/admin/", "/admin/tts/synthesisjob/", "/admin/billing/ledgertransaction/"]


def target(response: object) -> tuple[str, list[str]]:
    """Where a redirect leads, and its `next`."""
    parts = urlsplit(response["Location"])  # type: ignore[index]
    return parts.path, parse_qs(parts.query).get("next", [])


def follow_to_sign_in(client: Client, place: str) -> tuple[str, list[str]]:
    """Follow redirects within the admin until the sign-in is asked for."""
    response = client.get(place)
    assert response.status_code == 302
    if urlsplit(response["Location"]).path == "/admin/login/":
        response = client.get(response["Location"])
        assert response.status_code == 302
    return target(response)


@pytest.mark.django_db
@pytest.mark.parametrize("place", PLACES)
def test_who_is_not_signed_in_is_sent_to_the_portals_own_sign_in(client: Client, place: str) -> None:
    assert follow_to_sign_in(client, place) == ("/account/login/", [place])


@pytest.mark.parametrize("place", [*PLACES, "/admin/login/", "/admin/no-such-thing/"])
def test_a_customer_finds_nothing(alice_client: Client, place: str) -> None:
    """Not a word differs from the page of an address that does not exist."""

    def answer(address: str) -> tuple[int, str]:
        response = alice_client.get(address, headers={"X-Request-Id": "request-17"})
        html = response.content.decode().replace(address, "ADDRESS")
        return response.status_code, re.sub(r"[A-Za-z0-9]{64}", "TOKEN", html)

    assert answer(place) == answer("/no-such-page")
    assert answer(place)[0] == 404


@pytest.mark.parametrize("place", PLACES)
def test_an_operator_gets_in(operator_client: Client, place: str) -> None:
    assert operator_client.get(place).status_code == 200


@pytest.mark.django_db
def test_an_operator_who_was_made_inactive_is_out() -> None:
    client = client_of(somebody("former@example.com", is_staff=True))
    assert client.get("/console/").status_code == 200
    User.objects.filter(email="former@example.com").update(is_active=False)
    assert client.get("/console/").status_code == 302


def test_a_superuser_who_is_no_operator_finds_nothing(db: None) -> None:
    assert client_of(somebody("x@example.com", is_superuser=True)).get("/console/").status_code == 404


def test_an_operator_who_was_made_a_customer_finds_nothing(operator: User, operator_client: Client) -> None:
    User.objects.filter(pk=operator.pk).update(is_staff=False)
    assert operator_client.get("/console/").status_code == 404
    assert operator_client.get("/admin/").status_code == 404


@pytest.mark.django_db
def test_a_password_sent_to_the_admins_own_form_signs_nobody_in(client: Client) -> None:
    """It would pass by the limits on attempts."""
    User.objects.create_superuser("root@example.com", PASSWORD)
    response = client.post("/admin/login/", {"username": "root@example.com", "password": PASSWORD})
    assert target(response)[0] == "/account/login/"
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize(
    ("wanted", "goes_to"),
    [
        ("/admin/tts/device/", "/admin/tts/device/"),
        ("", "/admin/"),
        ("https://evil.example/", "/admin/"),
        ("//evil.example/", "/admin/"),
        ("javascript:alert(1)", "/admin/"),
    ],
)
def test_the_admins_sign_in_leads_on_within_the_portal_only(
    operator_client: Client, client: Client, wanted: str, goes_to: str
) -> None:
    assert target(operator_client.get("/admin/login/", {"next": wanted}))[0] == goes_to
    assert target(client.get("/admin/login/", {"next": wanted})) == ("/account/login/", [goes_to])


def test_a_page_that_refreshes_itself_after_the_session_ended_goes_to_the_sign_in_as_a_whole(
    client: Client, db: None
) -> None:
    response = client.get("/console/", headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response["HX-Redirect"] == "/account/login/?next=/console/"


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_the_overview_is_only_read(operator_client: Client, method: str) -> None:
    assert getattr(operator_client, method)("/console/").status_code == 405


def test_the_overview_is_kept_by_no_cache(operator_client: Client) -> None:
    assert "no-store" in operator_client.get("/console/")["Cache-Control"]


def test_signing_out_of_the_admin_signs_out(operator_client: Client) -> None:
    assert operator_client.get("/admin/logout/").status_code == 405
    assert operator_client.post("/admin/logout/")["Location"] == "/"
    assert operator_client.get("/console/").status_code == 302


def test_a_password_is_changed_on_the_portals_own_page(operator_client: Client) -> None:
    assert target(operator_client.get("/admin/password_change/"))[0] == "/account/password/change/"


def test_there_is_no_dashboard_of_rq(superuser_client: Client) -> None:
    """It could run and delete entries behind the back of the attempts, and answers some callers without a session."""
    for place in [
        "/admin/django_rq/dashboard/",
        "/console/rq/",
        "/admin/django_rq/dashboard/stats.json",
        "/django-rq/",
    ]:
        assert superuser_client.get(place).status_code == 404
