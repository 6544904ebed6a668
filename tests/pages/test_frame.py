"""The frame around every page: language, colours, navigation, balance, the state of the service, errors."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import User, Workspace
from accounts.services.api_keys import create_api_key
from portal import errors_views
from portal.service_state import CACHE_KEY, ServiceState, measure_service_state, service_state
from tests.cast import client_of
from tests.console.rows import attempt, job
from tests.factories import finish_job, make_device, make_job, make_team, make_voice, personal_workspace
from tts.models import Device, DeviceSlot, Voice
from tts.selectors.voices import preset_voices
from tts.selectors.waits import expected_waits
from tts.states import AttemptState, DeviceState, JobState, SegmentState

pytestmark = pytest.mark.django_db

CUSTOMER_PAGES = ["developers", "account_settings", "documentation", "error_codes", "consent_wording"]
VISITOR_PAGES = ["landing", "documentation", "error_codes", "consent_wording", "account_login"]


@pytest.fixture(autouse=True)
def nothing_remembered(db: None) -> None:
    cache.delete(CACHE_KEY)


def page_of(client: Client, name: str, **headers: str) -> str:
    response = client.get(reverse(name), headers=headers)
    assert response.status_code == 200
    return str(response.content.decode())


def ready_slot(name: str = "cpu:0@test") -> Device:
    """A device that takes work, with one slot."""
    device = make_device(name)
    Device.objects.filter(pk=device.pk).update(state=DeviceState.READY, heartbeat_at=timezone.now())
    DeviceSlot.objects.update_or_create(device=device, number=0, defaults={"ready": True})
    return device


@pytest.mark.parametrize("name", CUSTOMER_PAGES)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_pages_of_customers_are_whole(alice_client: Client, name: str, language: str) -> None:
    page = page_of(alice_client, name, **{"Accept-Language": language})
    assert f'<html lang="{language}"' in page
    assert len(re.findall(r"<h1[\s>]", page)) == 1
    for landmark in ("<header", "<main", "<footer", "<nav"):
        assert landmark in page
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert not re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page)


@pytest.mark.parametrize("name", VISITOR_PAGES)
def test_pages_of_visitors_ask_for_nothing_of_a_customer(client: Client, name: str) -> None:
    page = page_of(client, name)
    assert 'class="rail"' not in page
    assert reverse("account_signup") in page


def test_the_policy_forbids_whatever_is_inline(client: Client) -> None:
    policy = client.get(reverse("landing"))["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy


def current_places(page: str) -> list[str]:
    return re.findall(r'<a class="rail__link"[^>]*aria-current="page">.*?</svg>([^<]+)</a>', page)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("studio", "Studio"),
        ("document", "Studio"),
        ("voice_new", "Voices"),
        ("developers", "Developers"),
    ],
)
def test_the_navigation_says_where_one_is(alice_client: Client, name: str, place: str) -> None:
    assert current_places(page_of(alice_client, name)) == [place]


def test_the_navigation_knows_the_forms_of_a_voice(alice_client: Client, alices_voice: Voice) -> None:
    form = alice_client.get(reverse("voice_replace", args=[alices_voice.pk]))
    assert current_places(form.content.decode()) == ["Voices"]
    refused = alice_client.post(reverse("voice_rename", args=[alices_voice.pk]), {"name": ""})
    assert refused.status_code == 400
    assert current_places(refused.content.decode()) == ["Voices"]
    assert Voice.objects.get(pk=alices_voice.pk).name == alices_voice.name


SETTINGS_PAGES = ["account_settings", "pronunciations", "output_settings"]


@pytest.mark.parametrize("name", SETTINGS_PAGES)
def test_the_parts_of_the_settings_lead_to_one_another(alice_client: Client, name: str) -> None:
    page = page_of(alice_client, name)
    parts = re.search(r'<nav class="places".*?</nav>', page, re.DOTALL)
    assert parts is not None
    assert re.findall(r'href="([^"]+)"', parts[0]) == [reverse(other) for other in SETTINGS_PAGES]
    assert re.findall(r'href="([^"]+)" aria-current="page"', parts[0]) == [reverse(name)]
    assert current_places(page) == ["Settings"]


def test_what_holds_for_everybody_is_offered_to_who_may_set_it(
    alice: User, bob: User, alice_client: Client, bob_client: Client
) -> None:
    team = make_team(alice, bob)
    for client, may_set in ((alice_client, True), (bob_client, False)):
        client.post(reverse("choose_workspace"), {"workspace": str(team.pk)})
        for name in ("studio", "pronunciations", "account_settings"):
            assert (f'href="{reverse("output_settings")}"' in page_of(client, name)) is may_set
        assert f'href="{reverse("pronunciations")}"' in page_of(client, "studio")


def test_the_balance_stands_as_money_and_as_speech(alice_client: Client) -> None:
    page = page_of(alice_client, "developers")
    # 300 GPU-seconds at 0.012 yuan; the simulated engine of the tests speaks ten times as fast as one listens.
    assert ">Balance:</span>CN¥3.60<" in page
    assert "≈ 50 minutes of speech" in page


def test_who_has_one_workspace_is_not_asked_which(alice_client: Client) -> None:
    assert 'name="workspace"' not in page_of(alice_client, "developers")


def test_choosing_a_workspace_acts_for_it(alice: User, bob: User, alice_client: Client) -> None:
    team = make_team(alice, bob, name="Choir")
    create_api_key(workspace=team, user=alice, name="Choir's key")
    response = alice_client.post(
        reverse("choose_workspace"), {"workspace": str(team.pk), "next": reverse("developers")}
    )
    assert (response.status_code, response["Location"]) == (302, reverse("developers"))
    assert "Choir&#x27;s key" in page_of(alice_client, "developers")


def test_a_strangers_workspace_cannot_be_chosen(charlie_client: Client, alice_workspace: Workspace) -> None:
    response = charlie_client.post(reverse("choose_workspace"), {"workspace": str(alice_workspace.pk)})
    assert response.status_code == 404
    assert charlie_client.session.get("workspace_id") is None
    malformed = charlie_client.post(reverse("choose_workspace"), {"workspace": "1 OR 1=1"})
    assert malformed["Location"] == reverse("studio")


def test_the_language_is_the_browsers_until_one_is_chosen(client: Client) -> None:
    assert '<html lang="zh-hans"' in page_of(client, "landing", **{"Accept-Language": "zh-CN,zh;q=0.9"})
    assert '<html lang="en"' in page_of(client, "landing", **{"Accept-Language": "fr"})
    response = client.post(reverse("set_language"), {"language": "zh-hans", "next": reverse("documentation")})
    assert response["Location"] == reverse("documentation")
    assert '<html lang="zh-hans"' in page_of(client, "landing", **{"Accept-Language": "en"})


def test_a_language_that_is_chosen_stays_with_the_account(alice: User, alice_client: Client) -> None:
    alice_client.post(reverse("set_language"), {"language": "zh-hans"})
    alice.refresh_from_db()
    assert alice.locale == "zh-hans"
    alice_client.post(reverse("set_language"), {"language": "tlh"})
    alice.refresh_from_db()
    assert alice.locale == "zh-hans"


def test_colours_are_drawn_by_the_server_once_chosen(client: Client) -> None:
    assert "data-theme=" not in page_of(client, "landing").partition(">")[2].partition("<head>")[0]
    response = client.post(reverse("set_theme"), {"theme": "dark", "next": reverse("documentation")})
    assert response["Location"] == reverse("documentation")
    assert '<html lang="en" data-theme="dark"' in re.sub(r"\s+", " ", page_of(client, "landing"))
    client.post(reverse("set_theme"), {"theme": "system"})
    assert 'data-theme="' not in page_of(client, "landing").partition("<head>")[0]


@pytest.mark.parametrize("theme", ["", "neon", '"><script>'])
def test_colours_that_do_not_exist_are_none(client: Client, theme: str) -> None:
    client.post(reverse("set_theme"), {"theme": theme})
    assert "theme" not in client.cookies or client.cookies["theme"].value == ""
    client.cookies["theme"] = theme
    assert 'data-theme="' not in page_of(client, "landing").partition("<head>")[0]


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_switches_lead_nowhere_else(client: Client, wanted: str) -> None:
    assert client.post(reverse("set_theme"), {"theme": "dark", "next": wanted})["Location"] == "/"


def test_no_device_means_degraded() -> None:
    assert measure_service_state().level == "degraded"


def test_a_short_wait_is_normal_and_a_long_one_says_how_long(alice: User) -> None:
    one = ready_slot()
    workspace = personal_workspace(alice)
    make_job(workspace, alice, preset_voices()[0])
    assert measure_service_state() == ServiceState("normal", 2_000)
    now = timezone.now()
    spoken = job(created_at=now, segment_state=SegmentState.SUCCEEDED, state=JobState.SUCCEEDED)
    attempt(
        spoken,
        one,
        state=AttemptState.SUCCEEDED,
        bound_at=now - timedelta(seconds=100),
        started_at=now - timedelta(seconds=99),
        finished_at=now - timedelta(seconds=10),
    )
    state = measure_service_state()
    assert (state.level, state.wait_ms) == ("busy", 90_000)
    assert state.label == "Busy, wait about 2 min"
    ready_slot("cpu:0@other")
    assert measure_service_state().wait_ms == 45_000
    # What the dot says is what the status says of the class of who waits for an answer.
    assert expected_waits()["interactive"] == 45_000


def test_one_look_serves_many_pages(client: Client) -> None:
    service_state()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        service_state()
    assert len(queries) == 0


def test_a_visitors_page_asks_the_database_for_the_price_alone(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("documentation"))
    assert [query["sql"].split('"')[1::2][0] for query in queries if "FROM" in query["sql"]] == [
        "billing_priceversion"
    ]


def test_the_first_run_ticks_itself_off(alice: User, alice_workspace: Workspace) -> None:
    client = client_of(alice)

    def steps() -> list[str]:
        return re.findall(r'<li class="step( step--done)?"', page_of(client, "studio"))

    assert steps() == ["", "", ""]
    finish_job(make_job(alice_workspace, alice, preset_voices()[0]))
    assert steps() == [" step--done", "", ""]
    make_voice(alice_workspace, alice)
    assert steps() == [" step--done", " step--done", ""]
    create_api_key(workspace=alice_workspace, user=alice, name="last")
    assert steps() == []


def test_a_missing_page_keeps_the_navigation(alice_client: Client) -> None:
    response = alice_client.get("/no/such/page/")
    page = response.content.decode()
    assert response.status_code == 404
    assert 'class="rail"' in page
    assert response["X-Request-Id"] in page
    assert "not_found" in page


def test_a_form_without_its_token_is_explained() -> None:
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(reverse("set_theme"), {"theme": "dark"})
    assert response.status_code == 403
    assert "csrf_failed" in response.content.decode()
    assert "theme" not in response.cookies


def test_our_own_fault_is_shown_without_the_database(alice: User) -> None:
    request = RequestFactory().get("/studio/")
    request.request_id = "0123456789abcdef"  # type: ignore[attr-defined]
    with CaptureQueriesContext(connection) as queries:
        response = errors_views.server_error(request)
    page = response.content.decode()
    assert (response.status_code, len(queries)) == (500, 0)
    assert "0123456789abcdef" in page
    assert "Nothing was charged" in page


@pytest.mark.parametrize(
    ("view", "status", "code"),
    [
        (errors_views.bad_request, 400, "malformed_request"),
        (errors_views.forbidden, 403, "forbidden"),
        (errors_views.too_many_requests, 429, "rate_limited"),
    ],
)
@pytest.mark.parametrize("path", ["/studio/", "/api/v1/jobs"])
def test_errors_are_pages_for_people_and_problems_for_programs(
    view: Any, status: int, code: str, path: str
) -> None:
    request = RequestFactory().get(path)
    response = view(request)
    assert response.status_code == status
    assert code in response.content.decode()
    kind = "application/problem+json" if path.startswith("/api/") else "text/html; charset=utf-8"
    assert response["Content-Type"] == kind
