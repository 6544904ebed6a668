"""The console's page of models."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry
from portal.console.models_page import Outcomes, model_rows
from tests.cast import client_of
from tests.console import rows
from tests.console.test_pages import page, text_of
from tests.factories import make_user
from tts.models import Device, DeviceEvent, DeviceKind, DeviceSlot, ModelShare
from tts.models.operations import DeviceEventKind
from tts.states import AttemptState


def spoken(device: Device, *, minutes_ago: float, first_ms: int, state: str = AttemptState.SUCCEEDED) -> None:
    """An attempt on the device that ended."""
    started = rows.ago(minutes=minutes_ago)
    made = rows.attempt(
        rows.job(created_at=started),
        device,
        state=state,
        bound_at=started,
        started_at=started,
        first_chunk_at=started + rows.ms(first_ms) if state == AttemptState.SUCCEEDED else None,
        finished_at=started + rows.ms(2000),
        gpu_ms=500,
        audio_ms=2000,
    )
    assert made.finished_at is not None


def test_each_model_is_shown_with_its_devices_and_how_it_does(db: None):
    own = rows.device("GPU-own", engine="kokoro", engine_version="1.0", memory_used_bytes=2_000_000_000)
    trial = rows.device("remote:far:8880@node-1", engine="remote", kind=DeviceKind.REMOTE)
    ModelShare.objects.create(engine="remote", share=500)
    for first_ms in (100, 200, 300):
        spoken(own, minutes_ago=10, first_ms=first_ms)
    spoken(trial, minutes_ago=20, first_ms=800)
    spoken(trial, minutes_ago=20, first_ms=0, state=AttemptState.FAILED)
    spoken(own, minutes_ago=70, first_ms=9000)
    first, second = model_rows(now=rows.NOW)
    assert (first.engine, first.share_percent, [one.name for one in first.devices]) == (
        "kokoro",
        None,
        ["GPU-own"],
    )
    assert first.outcomes == Outcomes(3, 0, 200, 290, 0.25)
    assert (second.engine, second.share_percent) == ("remote", 5.0)
    assert (second.outcomes.succeeded, second.outcomes.failed, second.outcomes.failed_percent) == (1, 1, 50.0)


def test_what_a_device_spoke_with_the_model_before_is_not_the_new_ones(db: None):
    device = rows.device("GPU-own", engine="kokoro")
    spoken(device, minutes_ago=30, first_ms=100)
    event = DeviceEvent.objects.create(device=device, epoch=3, kind=DeviceEventKind.SWAPPED)
    DeviceEvent.objects.filter(pk=event.pk).update(created_at=rows.ago(minutes=20))
    spoken(device, minutes_ago=10, first_ms=300)
    (row,) = model_rows(now=rows.NOW)
    assert row.outcomes == Outcomes(1, 0, 300, 300, 0.25)


def test_a_swap_is_shown_as_far_as_it_has_come(operator_client: Client):
    device = rows.device("GPU-own", engine="simulated", wanted_engine="simulated-b", slots=3)
    DeviceSlot.objects.filter(device=device, number__lt=2).update(engine="simulated-b")
    assert "to simulated-b: 2 of 3 slots" in text_of(page(operator_client, "/console/models/"))


def test_an_operator_puts_a_model_on_trial_and_ends_it(operator_client: Client):
    rows.device("GPU-own", engine="simulated-b")
    address = "/console/models/simulated-b/share/"
    assert "Put Simulated, another version" in text_of(page(operator_client, address))
    answer = operator_client.post(address, {"percent": "2.5", "reason": "a better voice"}, follow=True)
    assert "is on trial with 2.5 % of the jobs" in text_of(answer.content.decode())
    assert dict(ModelShare.objects.values_list("engine", "share")) == {"simulated-b": 250}
    operator_client.post(address, {"percent": "2.5", "reason": "good", "end": "1"})
    assert not ModelShare.objects.exists()
    assert list(
        AuditEntry.objects.filter(act="model.share").order_by("pk").values_list("reason", flat=True)
    ) == [
        "a better voice",
        "good",
    ]


@pytest.mark.parametrize(
    "fields", [{"percent": "5"}, {"percent": "101", "reason": "x"}, {"percent": "x", "reason": "x"}]
)
def test_a_wrong_share_is_shown_at_the_form_and_changes_nothing(
    fields: dict[str, str], operator_client: Client
):
    rows.device("GPU-own", engine="simulated-b")
    answer = operator_client.post("/console/models/simulated-b/share/", fields)
    assert answer.status_code == 200
    assert not ModelShare.objects.exists()
    assert not AuditEntry.objects.filter(act="model.share").exists()


def test_shares_beyond_the_whole_are_told_at_the_field(operator_client: Client):
    rows.device("GPU-own", engine="simulated-b")
    ModelShare.objects.create(engine="kokoro", share=9_900)
    answer = operator_client.post("/console/models/simulated-b/share/", {"percent": "2", "reason": "x"})
    assert "at most all of the traffic" in text_of(answer.content.decode())
    assert dict(ModelShare.objects.values_list("engine", "share")) == {"kokoro": 9_900}


def test_only_operators_see_it_and_a_model_that_there_is_not_is_a_404(operator_client: Client):
    customer = client_of(make_user("customer"))
    for address in ("/console/models/", "/console/models/kokoro/share/"):
        assert customer.get(address).status_code == 404
    assert operator_client.get("/console/models/nobody-has-it/share/").status_code == 404


def test_the_page_reads_as_much_for_many_devices_as_for_one(db: None):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            model_rows(now=rows.NOW)
        return len(captured)

    rows.device("GPU-0", engine="kokoro")
    one = queries()
    for number in range(1, 8):
        rows.device(f"GPU-{number}", engine="kokoro" if number % 2 else "remote")
    assert queries() == one == 4


def test_a_device_that_tells_no_memory_and_a_model_without_a_longer_name_are_shown_plainly(
    operator_client: Client,
):
    rows.device("remote:far:8880@node-1", engine="other", kind=DeviceKind.REMOTE)
    shown = page(operator_client, "/console/models/")
    # Neither an empty cell nor the same word twice.
    assert "Remote server – " in text_of(shown)
    assert '<h2 id="model-other">other</h2>' in shown
