"""Who and what lives a simulated month: a customer, a clock that is moved, devices whose workers the test plays.

Only time, the engine and the payment provider are doubles; everything that moves money is the product's own.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from accounts.models import User, Workspace
from billing.models import PriceVersion
from billing.services.invoice_run import close_due_periods
from billing.services.prices import add_price_version
from billing.upkeep import run_steps
from portal.books import reconcile_yesterday
from portal.metrics.counting import count_what_ended
from tests.billing.fake_stripe_server import FakeStripe
from tests.billing.payers import YUAN, deliver, top_up
from tests.factories import make_job, make_user, personal_workspace
from tests.moved_clock import MovedClock
from tts import storage
from tts.audio.wav import wav_file
from tts.models import Attempt, Device, DeviceKind, Voice
from tts.services.attempts import Outcome, Work, begin_job
from tts.services.bind import bind_idle_slots
from tts.services.claiming import claim_attempt
from tts.services.device_time import add_device_time
from tts.services.devices import FoundDevice, heartbeat_device, register_device
from tts.services.slots import slot_ready
from tts.states import AttemptState
from tts.time_account import Spent


class Life:
    """A workspace in Berlin, and what happens around it."""

    def __init__(self, clock: MovedClock, stripe: FakeStripe) -> None:
        self.clock, self.stripe = clock, stripe
        self.at("2031-03-04T10:00+01:00")
        _set_prices()
        self.user: User = make_user("alice")
        self.workspace: Workspace = personal_workspace(self.user)
        self.voice = Voice.objects.filter(kind="preset").order_by("pk")[0]
        self.devices = {"cpu": _device("cpu:0@here", DeviceKind.CPU, ""), "h200": _device_h200()}
        # What workers measured: milliseconds of all attempts.
        self.measured_gpu_ms = 0

    def at(self, moment: str) -> None:
        """Let time pass until then; the clock does its work once a night."""
        wanted = datetime.fromisoformat(moment)
        while self.clock.moment.year == wanted.year and self.clock.moment < wanted:
            night = (self.clock.moment + timedelta(days=1)).replace(hour=0, minute=10)
            if night > wanted:
                break
            self.clock.to(night)
            the_clock_works()
        self.clock.to(wanted)

    def pays(self, **changed: Any) -> Any:
        """A top-up of 50 yuan by card."""
        payment = top_up(self.workspace.pk, **changed)
        self.stripe.customer_pays(payment.provider_reference)
        deliver(self.stripe, "checkout.session.completed", self.stripe.things[payment.provider_reference])
        payment.refresh_from_db()
        return payment

    def submits(self, text: str = "Good morning, Berlin.", **options: Any) -> uuid.UUID:
        return make_job(self.workspace, self.user, self.voice, text=text, **options).pk

    def begins(self, device_class: str = "cpu") -> Work:
        """The device takes what waits: its agent lives, the other's has been silent for long."""
        device = self.devices[device_class]
        heartbeat_device(device_id=device.pk, epoch=device.epoch, memory_used_bytes=None)
        assert bind_idle_slots() == 1
        work = claim_attempt(attempt_id=Attempt.objects.get(state=AttemptState.BOUND).pk)
        begin_job(work=work)
        return work

    def speaks(self, work: Work, gpu_ms: int, *, audio_ms: int = 1_500) -> Outcome:
        """The engine works for so long; returns what it reports."""
        self.clock.by(timedelta(milliseconds=gpu_ms))
        self.measured_gpu_ms += gpu_ms
        add_device_time(device_id=work.attempt.device_id, spent=Spent(gpu_ms + 7, gpu_ms, 0))
        key = storage.attempt_audio_key(
            workspace_id=work.job.workspace_id, job_id=work.job.pk, attempt_id=work.attempt.pk
        )
        storage.save(key, wav_file(bytes(2 * 24 * audio_ms), sample_rate_hz=24_000))
        return Outcome(gpu_ms=gpu_ms, audio_ms=audio_ms, audio_key=key, first_chunk_gpu_ms=10, peaks=[1, 2])


def _set_prices() -> None:
    """So dear that little speech is more than all credit that is given."""
    add_price_version(
        version=PriceVersion(
            interactive_gpu_second_micros=3_000_007,
            standard_gpu_second_micros=2_000_003,
            batch_gpu_second_micros=1_000_000,
            device_class_rates={
                "h200": {"interactive": 4_000_000, "standard": 3_000_000, "batch": 2_500_007}
            },
            minimum_charge_micros=10_000,
        )
    )


def the_clock_works() -> None:
    """A night's work of the clock process."""
    run_steps(0)
    close_due_periods()
    count_what_ended()
    reconcile_yesterday()


def _device_h200() -> Device:
    return _device("GPU-h200", DeviceKind.GPU, "NVIDIA H200")


def _device(name: str, kind: DeviceKind, model_name: str) -> Device:
    device = register_device(
        node_name="here",
        found=FoundDevice(
            name=name, kind=kind, model_name=model_name, engine="simulated", slots=1, memory_total_bytes=None
        ),
    )
    slot_ready(
        device_id=device.pk,
        epoch=device.epoch,
        slot_number=0,
        worker_name="test",
        worker_pid=1,
        engine_pid=1,
        engine_version="1",
    )
    # Silent until the test lets it work.
    Device.objects.filter(pk=device.pk).update(heartbeat_at=datetime.fromisoformat("2031-01-01T00:00Z"))
    device.refresh_from_db()
    return device


__all__ = ["YUAN", "Life", "the_clock_works"]
