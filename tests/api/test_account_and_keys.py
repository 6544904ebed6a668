"""The account, and keys made with keys."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.conf import LazySettings
from django.utils import timezone

from accounts.models import ApiKey, User, Workspace
from accounts.services.api_keys import create_api_key
from billing.models import TransactionKind
from billing.pricing import price_gpu_ms
from billing.selectors.prices import current_price, rate_for
from billing.services import debits
from tests.api.problems import assert_problem
from tests.billing.books import balance
from tests.cast import Api
from tts.models import SynthesisJob

KEYS = "/api/v1/keys"


def test_a_debt_buys_nothing(alice_api: Api, alice_workspace: Workspace) -> None:
    debits.debit(
        workspace_id=alice_workspace.pk,
        amount_micros=50_000_000,
        kind=TransactionKind.FEE,
        idempotency_key="fee",
        may_owe=True,
    )
    shown = alice_api.get("/api/v1/account").json()["balance"]
    assert (shown["available"]["amount_micros"], shown["affordable_gpu_ms"]) == (
        balance(alice_workspace.pk)[0],
        0,
    )
    assert shown["available"]["amount_micros"] < 0


def test_the_account_shows_balance_and_limits(
    alice_api: Api, alice_workspace: Workspace, alices_job: SynthesisJob, settings: LazySettings
) -> None:
    body = alice_api.get("/api/v1/account").json()
    available, held = balance(alice_workspace.pk)
    assert held == alices_job.held_micros
    assert body["balance"]["available"] == {
        "amount_micros": available,
        "amount": f"{available / 1_000_000:.6f}",
        "currency": "CNY",
    }
    assert body["balance"]["held"]["amount_micros"] == held
    rate = rate_for(price=current_price(), job_class="interactive")
    affordable_gpu_ms = body["balance"]["affordable_gpu_ms"]
    assert price_gpu_ms(gpu_ms=affordable_gpu_ms, rate=rate) <= available
    assert body["limits"] == {
        "requests_per_minute": settings.VOICEPOOL["REQUESTS_PER_MINUTE"],
        "submits_per_minute": settings.VOICEPOOL["SUBMITS_PER_MINUTE"],
        "queued_jobs": settings.VOICEPOOL["QUEUED_JOBS_PER_WORKSPACE"],
        "voices": settings.VOICEPOOL["VOICES_PER_WORKSPACE"],
        "upload_bytes": settings.VOICEPOOL["UPLOAD_BYTES"],
    }


def test_a_key_is_made_shown_once_used_and_revoked(alice_api: Api) -> None:
    end = (timezone.now() + timedelta(days=30)).replace(microsecond=0)
    made = alice_api.send("POST", KEYS, {"name": "网店", "expires_at": end.isoformat()})
    assert made.status_code == 201
    body = made.json()
    assert body["key"].startswith(body["prefix"])
    assert (body["name"], body["last_used_at"]) == ("网店", None)
    assert ApiKey.objects.get(pk=body["id"]).expires_at == end

    child = Api(body["key"])
    assert child.get("/api/v1/account").status_code == 200
    listed = alice_api.get(KEYS)
    assert body["key"] not in listed.content.decode()
    by_name = {row["name"]: row for row in listed.json()["results"]}
    assert set(by_name) == {"网店", "test"}
    assert by_name["网店"]["last_used_at"] is not None

    assert alice_api.send("DELETE", f"{KEYS}/{body['id']}").status_code == 204
    assert_problem(child.get("/api/v1/account"), 401, "api_key_revoked")
    assert [row["name"] for row in alice_api.get(KEYS).json()["results"]] == ["test"]


def test_a_key_may_revoke_itself(alice_api: Api) -> None:
    own = ApiKey.objects.get()
    assert alice_api.send("DELETE", f"{KEYS}/{own.pk}").status_code == 204
    assert_problem(alice_api.get("/api/v1/account"), 401, "api_key_revoked")


def test_a_key_that_ends_makes_only_keys_that_end(alice: User, alice_workspace: Workspace) -> None:
    end = timezone.now() + timedelta(hours=1)
    _, text = create_api_key(workspace=alice_workspace, user=alice, name="short", expires_at=end)
    api = Api(text)
    assert ApiKey.objects.get(pk=api.send("POST", KEYS, {"name": "child"}).json()["id"]).expires_at == end
    later = (end + timedelta(minutes=1)).isoformat()
    assert_problem(
        api.send("POST", KEYS, {"name": "x", "expires_at": later}),
        400,
        "key_expiry_invalid",
        field="expires_at",
    )
    assert ApiKey.objects.count() == 2


def test_what_is_wrong_with_a_new_key_is_said(alice_api: Api) -> None:
    for body, code in [
        ({}, "invalid_input"),
        ({"name": ""}, "invalid_input"),
        ({"name": "x" * 61}, "invalid_input"),
        ({"name": "a\tb"}, "key_name_invalid"),
        ({"name": "x", "expires_at": "2020-01-01T00:00:00Z"}, "key_expiry_invalid"),
        ({"name": "x", "expires_at": "tomorrow"}, "invalid_input"),
        ({"name": "x", "expires_at": 1}, "invalid_input"),
        ({"name": "x", "expires_at": "0001-01-01T00:00:00+23:59"}, "invalid_input"),
        ({"name": "x", "scope": "all"}, "invalid_input"),
    ]:
        assert_problem(alice_api.send("POST", KEYS, body), 400, code)
    assert ApiKey.objects.count() == 1


def test_another_workspaces_key_is_not_there(alice_api: Api, charlie_api: Api) -> None:
    alices = ApiKey.objects.get(workspace__memberships__user__email="alice@example.com")
    assert str(alices.pk) not in charlie_api.get(KEYS).content.decode()
    for key_id in (alices.pk, uuid.uuid4()):
        assert_problem(charlie_api.send("DELETE", f"{KEYS}/{key_id}"), 404, "not_found")
    alices.refresh_from_db()
    assert alices.revoked_at is None
