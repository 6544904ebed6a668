"""A speech server joins the pool as a device: a real agent, a real worker, a double of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from tests.engine.fake_speech_server import KEY, MS_PER_CHARACTER, FakeSpeechServer
from tests.pool.conftest import Submit
from tests.pool.processes import Pool, wait_for
from tts.models import Attempt, Device, DeviceEvent, DeviceKind, SynthesisJob
from tts.node.discovery import find_devices
from tts.node.settings import NodeSettings
from tts.states import AttemptState, DeviceState, JobState


@pytest.fixture
def server() -> Iterator[FakeSpeechServer]:
    fake = FakeSpeechServer()
    fake.key = KEY
    fake.start()
    yield fake
    fake.stop()


def start_remote(pool: Pool, server: FakeSpeechServer) -> None:
    pool.start_node(
        environment={
            "VOICEPOOL_REMOTES": server.url,
            "VOICEPOOL_REMOTE_KEY": KEY,
            "VOICEPOOL_REMOTE_SETTINGS": json.dumps({"first_byte_s": 30.0, "busy_wait_s": 1.0}),
        }
    )


def is_ready() -> bool:
    return Device.objects.filter(kind=DeviceKind.REMOTE, state=DeviceState.READY).exists()


def test_a_speech_server_is_a_device_that_speaks_and_is_metered(
    pool: Pool, server: FakeSpeechServer, submit: Submit
):
    pool.start_clock()
    start_remote(pool, server)
    wait_for(is_ready, timeout_s=120)
    device = Device.objects.get()
    port = server.url.rpartition(":")[2]
    assert (device.name, device.kind) == (f"remote:127.0.0.1:{port}@node-a", "remote")
    assert (device.engine, device.engine_version, device.device_class) == ("remote", "fake-1", "remote")
    assert device.offers == ["language:en", "language:zh", "preset"]
    assert [one["name"] for one in device.installed_engines] == ["remote"]
    job = submit("Good morning to you.")
    wait_for(lambda: SynthesisJob.objects.filter(pk=job.pk, state=JobState.SUCCEEDED).exists(), timeout_s=60)
    attempt = Attempt.objects.get(job=job)
    assert attempt.audio_ms == 20 * MS_PER_CHARACTER
    assert attempt.gpu_ms > 0
    assert server.requests[-1]["input"] == "Good morning to you."
    # The key is in no record that an operator or a customer reads.
    assert KEY not in json.dumps(list(DeviceEvent.objects.values_list("detail", flat=True)))


def test_a_server_that_goes_takes_its_device_out_and_brings_it_back(
    pool: Pool, server: FakeSpeechServer, submit: Submit
):
    pool.start_clock()
    start_remote(pool, server)
    wait_for(is_ready, timeout_s=120)
    server.key = "changed"
    job = submit("Nobody speaks this at first.")
    wait_for(lambda: Attempt.objects.filter(job=job, state=AttemptState.FAILED).exists(), timeout_s=60)
    assert Attempt.objects.filter(job=job)[0].error_code == "backend_gone"
    wait_for(lambda: not is_ready(), timeout_s=60)
    # Not the text's fault and not the device's: neither has a strike.
    assert Device.objects.get().state == DeviceState.STARTING
    server.key = KEY
    wait_for(lambda: SynthesisJob.objects.filter(pk=job.pk, state=JobState.SUCCEEDED).exists(), timeout_s=180)


def test_a_host_with_speech_servers_does_not_offer_its_processor():
    settings = NodeSettings(
        node_name="here", cpu_engine="kokoro", remotes=("http://one:8880", "https://two/tts/v1"), slots=3
    )
    found = find_devices(settings)
    assert [(one.name, one.kind, one.engine, one.slots) for one in found] == [
        ("remote:one:8880@here", "remote", "remote", 3),
        ("remote:two:443/tts/v1@here", "remote", "remote", 3),
    ]


def test_the_command_line_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VOICEPOOL_REMOTES", "http://from-environment:1")
    assert NodeSettings.from_environment().remotes == ("http://from-environment:1",)
    chosen = NodeSettings.from_environment(remotes=["http://a:1", "http://b:2"], remote_engine="other")
    assert (chosen.remotes, chosen.remote_engine) == (("http://a:1", "http://b:2"), "other")


@pytest.mark.parametrize("url", ["nonsense", "http://user:secret@host", "http://host:99999"])
def test_an_address_that_is_none_is_refused_by_the_command(url: str):
    with pytest.raises(ImproperlyConfigured) as refused:
        call_command("gpu_node", "--remote", url)
    assert "secret" not in str(refused.value)
