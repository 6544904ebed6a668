"""Records: every list and every form opens, costs the same with many rows as with few, and changes next to nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import ApiKey, ConsentRecord, User, Workspace
from accounts.services.api_keys import create_api_key
from billing.models import CreditAccount, Hold, LedgerTransaction, PriceVersion, UsageRecord
from billing.services.prices import ensure_first_price
from tests.console import rows
from tests.factories import finish_job, make_job, make_user, make_voice, personal_workspace
from tts.models import Attempt, Device, SynthesisJob, Voice

RECORDS: list[type[Model]] = [
    User,
    Workspace,
    ApiKey,
    ConsentRecord,
    CreditAccount,
    Hold,
    LedgerTransaction,
    UsageRecord,
    PriceVersion,
    Voice,
    SynthesisJob,
    Attempt,
    Device,
]
# May be added or changed by a superuser; everything else by nobody.
ADDED = {PriceVersion}
CHANGED = {User, Workspace}


def address(model: type[Model], action: str, *arguments: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{action}", args=arguments)


def fill(number: int) -> None:
    """One more of every record, of people of their own."""
    user = make_user(f"customer-{number}")
    workspace = personal_workspace(user)
    create_api_key(workspace=workspace, user=user, name="server")
    voice = make_voice(workspace, user, name="A secret name", transcript="A secret transcript.")
    job = make_job(workspace, user, voice, text="A secret text.")
    finish_job(job)
    rows.attempt(
        make_job(workspace, user, voice, text="A secret text."),
        rows.device(f"GPU-{number}"),
        bound_at=rows.NOW,
    )
    moment = datetime(2026, 11, 30, tzinfo=UTC)
    UsageRecord.objects.create(
        attempt_id=uuid.uuid4(),
        job_id=job.pk,
        workspace_id=workspace.pk,
        voice_id=voice.pk,
        device_name="GPU",
        job_class="interactive",
        billable=True,
        gpu_ms=1,
        audio_ms=1,
        characters=1,
        started_at=moment,
        finished_at=moment,
    )


def test_every_table_of_the_product_that_matters_is_a_record() -> None:
    ours = {
        model
        for model in admin.site._registry
        if model.__module__.split(".")[0] in ("accounts", "billing", "tts")
    }
    assert ours == set(RECORDS)
    assert {model.__name__ for model in admin.site._registry} - {model.__name__ for model in RECORDS} == {
        "EmailAddress"
    }


def first_of(model: type[Model]) -> Any:
    return model._default_manager.order_by("pk")[0]


def contents(models: Iterable[type[Model]]) -> dict[type[Model], list[Any]]:
    return {model: list(model._default_manager.order_by("pk").values_list()) for model in models}


def test_a_list_costs_the_same_with_many_rows(operator_client: Client) -> None:
    def queries(model: type[Model]) -> int:
        with CaptureQueriesContext(connection) as captured:
            response = operator_client.get(address(model, "changelist"))
        assert response.status_code == 200
        return len(captured)

    fill(0)
    few = {model: queries(model) for model in RECORDS}
    for number in range(1, 4):
        fill(number)
    many = {model: queries(model) for model in RECORDS}
    assert {model: (few[model], many[model]) for model in RECORDS if many[model] > few[model]} == {}


def test_records_open_and_show_no_words_of_a_customer(operator_client: Client) -> None:
    fill(0)
    for model in RECORDS:
        places = [address(model, "change", row.pk) for row in model._default_manager.all()[:3]]
        assert places
        for place in [address(model, "changelist"), *places]:
            response = operator_client.get(place)
            assert response.status_code == 200, place
            html = response.content.decode()
            for secret in ("A secret text", "A secret transcript", "workspaces/"):
                assert secret not in html, place


def test_a_record_is_found_by_its_id(operator_client: Client) -> None:
    fill(0)
    fill(1)
    for model in RECORDS:
        key = admin.site._registry[model].id_fields[0]  # type: ignore[attr-defined]
        wanted = getattr(first_of(model), key)
        if isinstance(wanted, uuid.UUID):
            found = operator_client.get(address(model, "changelist"), {"q": f" {wanted} "})
            assert found.context["cl"].result_count == 1, model


@pytest.mark.parametrize("nonsense", ["no such thing", "'; --", "100%", "声" * 40, str(uuid.UUID(int=0))])
def test_nonsense_finds_nothing(operator_client: Client, nonsense: str) -> None:
    fill(0)
    for model in RECORDS:
        if admin.site._registry[model].search_fields:
            response = operator_client.get(address(model, "changelist"), {"q": nonsense})
            assert response.status_code == 200, model
            assert response.context["cl"].result_count == 0, model


def test_nobody_deletes_a_record(superuser_client: Client) -> None:
    fill(0)
    before = contents(RECORDS)
    for model in RECORDS:
        row = first_of(model)
        assert superuser_client.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        superuser_client.post(address(model, "changelist"), chosen)
    assert contents(RECORDS) == before


def test_nobody_adds_a_record(superuser_client: Client) -> None:
    fill(0)
    before = contents(RECORDS)
    for model in set(RECORDS) - ADDED:
        assert superuser_client.get(address(model, "add")).status_code == 403, model
        assert superuser_client.post(address(model, "add"), {}).status_code == 403, model
    assert contents(RECORDS) == before


def test_nobody_changes_a_record(superuser_client: Client) -> None:
    fill(0)
    before = contents(RECORDS)
    for model in set(RECORDS) - CHANGED:
        everything = {field.name: "1" for field in model._meta.fields}
        response = superuser_client.post(address(model, "change", first_of(model).pk), everything)
        assert response.status_code == 403, model
    assert contents(RECORDS) == before


def test_an_operator_who_is_no_superuser_only_reads(operator_client: Client) -> None:
    fill(0)
    before = contents(RECORDS)
    for model in ADDED | CHANGED:
        row = first_of(model)
        assert operator_client.get(address(model, "add")).status_code == 403
        assert operator_client.post(address(model, "add"), {}).status_code == 403
        forged = operator_client.post(address(model, "change", row.pk), {"is_superuser": "on"})
        assert forged.status_code == 403
    assert contents(RECORDS) == before


def edit(client: Client, row: Model, **changes: Any) -> int:
    """Send the record's form as it was shown, with some fields changed."""
    page = client.get(address(type(row), "change", row.pk))
    form = page.context["adminform"].form
    data = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}
    for formset in page.context["inline_admin_formsets"]:
        management = formset.formset.management_form
        data |= {management.add_prefix(name): management[name].value() for name in management.fields}
    return client.post(address(type(row), "change", row.pk), {**data, **changes}).status_code


def test_a_superuser_suspends_a_workspace_and_nothing_else_of_it_is_written(superuser_client: Client) -> None:
    workspace = rows.workspace("Acme")
    with CaptureQueriesContext(connection) as captured:
        assert (
            edit(superuser_client, workspace, suspended_at_0="2026-11-30", suspended_at_1="12:00:00") == 302
        )
    written = [query["sql"] for query in captured if query["sql"].startswith('UPDATE "accounts_workspace"')]
    assert len(written) == 1
    assert '"name"' not in written[0]
    workspace.refresh_from_db()
    assert workspace.suspended_at == datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_a_superuser_makes_an_operator_but_sets_no_password_and_no_address(superuser_client: Client) -> None:
    user = rows.somebody("new@example.com")
    password = user.password
    assert edit(superuser_client, user, is_staff="on", email="other@example.com", password="x") == 302
    user.refresh_from_db()
    assert user.is_staff
    assert (user.email, user.password) == ("new@example.com", password)


def test_a_superuser_puts_a_new_price_in_force(superuser_client: Client) -> None:
    ensure_first_price()
    response = superuser_client.post(
        address(PriceVersion, "add"),
        {
            "number": 2,
            "currency": "CNY",
            "interactive_gpu_second_micros": 20_000,
            "standard_gpu_second_micros": 10_000,
            "batch_gpu_second_micros": 5_000,
            "device_class_rates": "{}",
            "minimum_charge_micros": 0,
            "effective_at_0": "2026-12-01",
            "effective_at_1": "00:00:00",
        },
    )
    assert response.status_code == 302
    assert PriceVersion.objects.get(number=2).interactive_gpu_second_micros == 20_000


def test_a_superuser_revokes_a_key_and_an_operator_cannot(
    superuser_client: Client, operator_client: Client
) -> None:
    fill(0)
    key = ApiKey.objects.get()
    chosen = {"action": "revoke", "_selected_action": [key.pk]}
    operator_client.post(address(ApiKey, "changelist"), chosen)
    key.refresh_from_db()
    assert key.revoked_at is None
    superuser_client.post(address(ApiKey, "changelist"), chosen)
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_the_hash_of_a_key_is_not_shown(superuser_client: Client) -> None:
    fill(0)
    key = ApiKey.objects.get()
    assert key.secret_sha256 not in superuser_client.get(address(ApiKey, "change", key.pk)).content.decode()


def test_the_admins_pages_have_nothing_inline(superuser_client: Client) -> None:
    """The policy forbids it, so the browser would leave it out."""
    fill(0)
    job = SynthesisJob.objects.all()[0]
    workspace = Workspace.objects.all()[0]
    for place in (
        "/admin/",
        address(SynthesisJob, "changelist"),
        address(SynthesisJob, "change", job.pk),
        address(Workspace, "change", workspace.pk),
        address(PriceVersion, "add"),
    ):
        response = superuser_client.get(place)
        html = response.content.decode()
        assert "unsafe" not in response["Content-Security-Policy"]
        assert "<style" not in html
        assert " onclick=" not in html
        assert 'style="' not in html
        for script in html.split("<script")[1:]:
            assert " src=" in script.partition(">")[0] or "application/json" in script.partition(">")[0]
