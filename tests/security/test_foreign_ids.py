"""Nobody reaches another workspace's rows: every address, every method, every way in.

Every address of the portal is asked by charlie, who has nothing to do with alice, and by nobody at all, once
with alice's ids and once with ids that do not exist. The two must look the same, and nothing of alice's may
be told or changed.
"""

from __future__ import annotations

import difflib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django import forms
from django.apps import apps
from django.conf import LazySettings
from django.core.cache import cache
from django.test import Client

import accounts.api.serializers
import accounts.forms
import tts.api.serializers
import tts.forms
from accounts.models import User, Workspace
from portal.lib.strict_fields import StrictUUIDField
from tests.billing.books import grant
from tests.cast import api_of, client_of
from tests.factories import make_job, make_team, make_voice, personal_workspace
from tests.security.addresses import Address, all_addresses
from tests.security.estate import MISSING, Estate, make_estate, missing
from tests.security.rows import rows_but_for
from tts import storage
from tts.models import SynthesisJob, Voice

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture
def estate(
    alice: User, alice_workspace: Workspace, alices_voice: Voice, alices_job: SynthesisJob, team: Workspace
) -> Estate:
    return make_estate(alice, alice_workspace, alices_voice, alices_job, team)


# What a page's form sends along, so that sending it twice does not do it twice.
TOKEN = uuid.UUID(int=7)


@pytest.fixture(autouse=True)
def _patience(settings: LazySettings) -> None:
    """The sweep asks more than any limit allows."""
    settings.VOICEPOOL = {**settings.VOICEPOOL, "REQUESTS_PER_MINUTE": 10**6, "SUBMITS_PER_MINUTE": 10**6}
    settings.PAYMENTS = {**settings.PAYMENTS, "PROVIDERS": ["test"], "TEST_PROVIDER": True}
    settings.ACCOUNT_RATE_LIMITS = False
    cache.clear()


@dataclass(frozen=True)
class Answer:
    """What a visitor can see of an answer, without what differs between any two."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


def plain(text: str, ids: dict[str, object]) -> str:
    for name, value in ids.items():
        text = text.replace(str(value), name)
    text = re.sub(r'(name="(?:csrfmiddlewaretoken|token|form_id)" value=")[^"]*', r"\1", text)
    text = re.sub(r'("X-CSRFToken": ")[^"]*', r"\1", text)
    return re.sub(r"\b[0-9a-f]{16}\b", "REQUEST-ID", text)


# Each request counts down, and a form's length depends on its token.
VOLATILE = {"X-Request-Id", "RateLimit", "Content-Length", "Set-Cookie", "Expires"}


def ask(
    client: Client, method: str, path: str, ids: dict[str, object], data: bytes = b"", kind: str = ""
) -> Answer:
    kind = kind or ("application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded")
    response: Any = client.generic(method, path, data, kind)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return Answer(
        status=response.status_code,
        headers=tuple(sorted((k, plain(v, ids)) for k, v in response.headers.items() if k not in VOLATILE)),
        body=plain(content.decode(errors="replace"), ids),
    )


def difference(one: Answer, other: Answer) -> str:
    """What two answers have that the other has not; empty when they are alike."""
    lines = [
        [f"status {answer.status}", *map(str, answer.headers), *answer.body.splitlines()]
        for answer in (one, other)
    ]
    return "\n".join(line for line in difflib.unified_diff(*lines, n=0, lineterm=""))


Visitor = Callable[[], Client]


def charlie_on_the_pages(charlie: User) -> Visitor:
    return lambda: client_of(charlie)


def charlie_with_a_key(charlie: User) -> Visitor:
    key = api_of(charlie).key
    return lambda: Client(headers={"Authorization": f"Bearer {key}"})


def nobody(charlie: User) -> Visitor:
    return Client


def with_ids() -> list[Address]:
    return [address for address in all_addresses() if address.parameters and not address.is_admin]


def test_the_sweep_knows_an_id_for_every_address() -> None:
    """When this fails, a new address names a new kind of row: give alice one in `estate`."""
    for address in with_ids():
        assert set(address.parameters) <= set(MISSING), address.template
    assert len(with_ids()) >= 20


# -- Addresses with ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("visitor_of", [charlie_on_the_pages, charlie_with_a_key, nobody])
def test_a_foreign_id_is_like_one_that_does_not_exist(
    visitor_of: Callable[[User], Visitor], estate: Estate, charlie: User, charlie_workspace: Workspace
) -> None:
    visitor = visitor_of(charlie)()
    before = rows_but_for(charlie, charlie_workspace)
    wrong = []
    for address in with_ids():
        for method in METHODS:
            data = (
                b'{"name": "Mine"}'
                if address.template.startswith("/api/")
                else f"name=Mine&token={TOKEN}".encode()
            )
            foreign = ask(visitor, method, address.filled(estate.ids), estate.ids, data)
            absent = ask(visitor, method, address.filled(MISSING), MISSING, data)
            allowed = {404, 405} if _is_known(visitor_of, address) else {302, 401, 405}
            if foreign != absent or foreign.status not in allowed:
                wrong.append(f"{method} {address.template}: {foreign.status}\n{difference(foreign, absent)}")
    assert wrong == []
    assert rows_but_for(charlie, charlie_workspace) == before
    assert all(storage.exists(key) for key in estate.files)


def _is_known(visitor_of: object, address: Address) -> bool:
    """Whether this visitor is somebody at this address: keys are for the API, sessions for both."""
    is_api = address.template.startswith("/api/")
    return visitor_of is charlie_on_the_pages or (visitor_of is charlie_with_a_key and is_api)


def test_every_method_was_really_offered_to_somebody(estate: Estate, alice: User) -> None:
    """The sweep would prove nothing if alice herself were refused."""
    api, pages = api_of(alice), client_of(alice)
    for address in with_ids():
        if re.search(
            r"/(delete|remove|default|pay|take-back|revoke|cancel|rename|share|repeat|stream|events|switch|rotate|test|redeliver|revisions|quote|revise|price|speak|save|discard|use)/?$",
            address.template,
        ):
            continue
        if address.template.startswith("/console/"):
            continue  # operators', as the tests of the console show
        client = api if address.template.startswith("/api/") else pages
        if address.template.startswith("/api/") and address.parameters == ("key_id",):
            continue  # only DELETE is there
        answer = ask(client, "GET", address.filled(estate.ids), estate.ids)
        assert answer.status == 200, address.template


# -- Ids in queries and bodies -------------------------------------------------------------------------------

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def speech(voice_id: object) -> dict[str, object]:
    return {"voice_id": str(voice_id), "text": "Hello."}


# Method, address, and the body for a voice's, a job's or a workspace's id.
INPUTS: list[tuple[str, str, str, Callable[[Any], str]]] = [
    ("POST", "/api/v1/jobs", JSON, lambda ids: json.dumps(speech(ids["voice_id"]))),
    ("POST", "/api/v1/quotes", JSON, lambda ids: json.dumps(speech(ids["voice_id"]))),
    ("GET", "/api/v1/jobs?voice_id={voice_id}", JSON, lambda ids: ""),
    ("GET", "/history/?voice={voice_id}", FORM, lambda ids: ""),
    ("GET", "/history/?q={job_id}", FORM, lambda ids: ""),
    ("GET", "/studio/?voice={voice_id}", FORM, lambda ids: ""),
    ("GET", "/studio/?job={job_id}", FORM, lambda ids: ""),
    ("POST", "/studio/", FORM, lambda ids: f"voice={ids['voice_id']}&text=Hello.&token={TOKEN}"),
    ("POST", "/studio/quote/", FORM, lambda ids: f"voice={ids['voice_id']}&text=Hello."),
    ("POST", "/workspace/", FORM, lambda ids: f"workspace={ids['workspace']}"),
    ("GET", "/usage/?budget={budget_id}", FORM, lambda ids: ""),
    (
        "POST",
        "/usage/budgets/",
        FORM,
        lambda ids: f"whose=api_key:{ids['key_id']}&monthly=1&at_the_end=refuse&warn_percent=80",
    ),
]
# Fields that hold an id of a tenant's row, by serializer or form; each has its request above.
ID_FIELDS = {
    "NewQuoteSerializer.voice_id",
    "NewJobSerializer.voice_id",
    "JobFilterSerializer.voice_id",
    "RequestForm.voice",
    "StudioForm.voice",
    "HistoryForm.voice",
}
# Fields that hold a random token of the page.
TOKEN_FIELDS = {"StudioForm.token", "RepeatForm.token", "DraftTestForm.token"}


def test_the_sweep_knows_every_field_that_takes_an_id() -> None:
    """When this fails, a new field takes an id: add its request to INPUTS and its name to ID_FIELDS."""
    found = set()
    for module in (accounts.api.serializers, tts.api.serializers, accounts.forms, tts.forms):
        for kind in vars(module).values():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            fields = getattr(kind, "_declared_fields", None) or getattr(kind, "base_fields", {})
            for name, field in fields.items():
                if isinstance(field, (StrictUUIDField, forms.UUIDField)):
                    found.add(f"{kind.__name__}.{name}")
    assert found - TOKEN_FIELDS == ID_FIELDS


@pytest.mark.parametrize("visitor_of", [charlie_on_the_pages, charlie_with_a_key, nobody])
def test_a_foreign_id_in_a_query_or_a_body_is_like_one_that_does_not_exist(
    visitor_of: Callable[[User], Visitor], estate: Estate, charlie: User, charlie_workspace: Workspace
) -> None:
    visitor = visitor_of(charlie)
    theirs = {**estate.ids, "workspace": estate.team.pk}
    absent = {**MISSING, "workspace": missing("workspace")}
    before = rows_but_for(charlie, charlie_workspace)
    jobs = SynthesisJob.objects.count()
    for method, path, kind, body in INPUTS:
        answers = [
            ask(visitor(), method, path.format(**ids), ids, body(ids).encode(), kind)
            for ids in (theirs, absent)
        ]
        assert difference(*answers) == "", path
        assert not [word for word in estate.words if word in answers[0].body], path
        assert answers[0].status < 500, path
    assert rows_but_for(charlie, charlie_workspace) == before
    assert SynthesisJob.objects.count() == jobs


def test_a_workspace_of_others_cannot_be_entered(
    estate: Estate, charlie: User, charlie_workspace: Workspace
) -> None:
    client = client_of(charlie)
    client.post("/workspace/", {"workspace": str(estate.team.pk)})
    assert client.get("/api/v1/account").json()["workspace"]["id"] == str(charlie_workspace.pk)


# -- Addresses without ids -----------------------------------------------------------------------------------


@pytest.mark.parametrize("visitor_of", [charlie_on_the_pages, charlie_with_a_key, nobody])
def test_no_other_address_tells_or_changes_anything_of_alices(
    visitor_of: Callable[[User], Visitor], estate: Estate, charlie: User, charlie_workspace: Workspace
) -> None:
    visitor = visitor_of(charlie)
    before = rows_but_for(charlie, charlie_workspace)
    for address in all_addresses():
        if address.parameters or address.is_admin:
            continue
        # Signing out or choosing a language must not change who asks next.
        client = visitor()
        for method in METHODS:
            answer = ask(client, method, address.template, {})
            where = f"{method} {address.template}"
            assert answer.status < 500 or address.template == "/readyz", where
            assert not [word for word in estate.words if word in answer.body], where
    assert rows_but_for(charlie, charlie_workspace) == before


# -- Operators' places ---------------------------------------------------------------------------------------


def row_of(address: Address) -> object:
    """The primary key of a row of the model that an address of the admin names."""
    found = re.match(r"/admin/(\w{2,})/(\w+)/\{object_id\}", address.template)
    row = apps.get_model(found[1], found[2])._default_manager.first() if found else None
    return row.pk if row is not None else "1"


@pytest.mark.parametrize("visitor_of", [charlie_on_the_pages, nobody])
def test_the_admin_and_the_console_are_closed_to_customers(
    visitor_of: Callable[[User], Visitor], estate: Estate, charlie: User, charlie_workspace: Workspace
) -> None:
    visitor = visitor_of(charlie)()
    before = rows_but_for(charlie, charlie_workspace)
    inside = [a for a in all_addresses() if a.is_admin or a.template.startswith("/console/")]
    assert len(inside) > 50
    for address in inside:
        ids = {**estate.ids, "object_id": row_of(address)}
        for method in ("GET", "POST"):
            if (method, address.template) == ("POST", "/admin/logout/"):
                continue  # would sign charlie out in the middle
            answer = ask(visitor, method, address.filled(ids), ids)
            where = f"{method} {address.template}"
            location = dict(answer.headers).get("Location", "")
            refused = answer.status in (403, 404, 405) or (answer.status == 302 and "/login/" in location)
            # Signing in is for everybody, and signing out only leads there.
            is_entrance = address.template in ("/admin/login/", "/admin/logout/", "/admin/jsi18n/")
            assert refused or (is_entrance and answer.status in (200, 302)), (
                f"{where}: {answer.status} {location}"
            )
            assert not [word for word in estate.words if word in answer.body], where
    assert rows_but_for(charlie, charlie_workspace) == before


# -- Members -------------------------------------------------------------------------------------------------


def test_a_member_sees_the_teams_rows_in_the_team_and_nowhere_else(
    alice: User, bob: User, bob_workspace: Workspace
) -> None:
    team = make_team(alice, bob)
    grant(team.pk, 100_000_000)
    voice = make_voice(team, alice)
    job = make_job(team, alice, voice)
    ids: dict[str, object] = {"voice_id": voice.pk, "job_id": job.pk}
    inside, outside = api_of(bob, team), api_of(bob)
    for path in (f"/api/v1/voices/{voice.pk}", f"/api/v1/jobs/{job.pk}"):
        assert ask(inside, "GET", path, ids).status == 200
        assert ask(outside, "GET", path, ids).status == 404
    page = client_of(bob)
    assert ask(page, "GET", f"/jobs/{job.pk}/", ids).status == 404
    page.post("/workspace/", {"workspace": str(team.pk)})
    assert ask(page, "GET", f"/jobs/{job.pk}/", ids).status == 200
    assert personal_workspace(bob) == bob_workspace
