"""A customer with credit, a preset voice, and devices with or without real processes behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from accounts.models import User, Workspace
from billing.services.prices import ensure_first_price
from portal.lib import clock
from portal.lib.queues import redis_connection
from portal.workflows import open_account, welcome
from tests.pool.processes import Pool
from tts.models import Device, DeviceKind, SynthesisJob, Voice
from tts.services.devices import FoundDevice, register_device, slot_ready
from tts.services.submit import JobRequest, submit_job
from tts.services.voices import ensure_preset_voices


@pytest.fixture
def empty_redis() -> None:
    redis_connection().flushdb()


@pytest.fixture
def customer(transactional_db: None, empty_redis: None) -> User:
    """Someone with a personal workspace and its welcome credit. Commits are real: hooks after commit run."""
    ensure_first_price()
    ensure_preset_voices()
    user = User.objects.create_user("pool-customer@example.com", "correct horse battery")
    open_account(user=user)
    welcome(user=user)
    return user


@pytest.fixture
def workspace(customer: User) -> Workspace:
    return Workspace.objects.get(memberships__user=customer)


@pytest.fixture
def voice(customer: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


Submit = Callable[..., SynthesisJob]


@pytest.fixture
def submit(workspace: Workspace, customer: User, voice: Voice) -> Submit:
    """Submit a text as the customer; returns the job."""

    def submit_text(text: str = "Hello, this is a test.", **options: object) -> SynthesisJob:
        key = options.pop("idempotency_key", None)
        return submit_job(
            workspace=workspace,
            user=customer,
            api_key=None,
            request=JobRequest(**{"voice_id": voice.pk, "text": text, **options}),  # type: ignore[arg-type]
            idempotency_key=key,  # type: ignore[arg-type]
            client_address="127.0.0.1",
            request_id="test",
        ).job

    return submit_text


def make_device(name: str = "cpu:0@here", *, slots: int = 1, ready: bool = True) -> Device:
    """A registered device without processes: the test plays the worker."""
    device = register_device(
        node_name="here",
        found=FoundDevice(
            name=name,
            kind=DeviceKind.CPU,
            model_name="test",
            engine="simulated",
            slots=slots,
            memory_total_bytes=None,
        ),
    )
    if ready:
        for number in range(slots):
            slot_ready(
                device_id=device.pk,
                epoch=device.epoch,
                slot_number=number,
                worker_name="test",
                worker_pid=1,
                engine_pid=1,
                engine_version="1",
            )
    # Nobody sends its heartbeats, and a test on a busy machine may take longer than a device may be silent.
    Device.objects.filter(pk=device.pk).update(heartbeat_at=clock.now() + timedelta(minutes=10))
    device.refresh_from_db()
    return device


@pytest.fixture
def pool(customer: User) -> Iterator[Pool]:
    """Starts real agents and clocks on demand, and ends every one of them."""
    running = Pool(forked=True)
    try:
        yield running
    finally:
        running.stop()
