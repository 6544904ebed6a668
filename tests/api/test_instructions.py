"""Jobs that say how they are to be read."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.api.problems import assert_problem
from tests.api.test_jobs import JOBS, rows
from tests.cast import Api
from tts.engine.capabilities import Capabilities
from tts.models import Device, DeviceKind, SynthesisJob, Voice
from tts.services.devices import FoundDevice, register_device, slot_ready
from tts.services.jobs import repeat_request
from tts.services.node_state import capability_columns

TEXT = "你好，很高兴认识你。"


@pytest.fixture
def preset(alice: User) -> Voice:
    return Voice.objects.filter(kind="preset").order_by("pk")[0]


def make_ready(engine: str) -> Device:
    """A device of that engine that takes work, without processes."""
    device = register_device(
        node_name="here",
        found=FoundDevice(
            name=f"{engine}@here",
            kind=DeviceKind.CPU,
            model_name="test",
            engine=engine,
            slots=1,
            memory_total_bytes=None,
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
    return device


def test_an_instruction_is_kept_with_its_job(alice_api: Api, preset: Voice) -> None:
    make_ready("cosyvoice")
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction": "dialect-sichuan"}
    response = alice_api.send("POST", JOBS, wanted)
    assert response.status_code == 202
    body = response.json()
    assert (body["mode"], body["instruction"]) == ("instruct", "dialect-sichuan")
    job = SynthesisJob.objects.get(pk=body["id"])
    assert (job.mode, job.instruction) == ("instruct", "dialect-sichuan")
    again = repeat_request(job)
    assert (again.mode, again.instruction) == ("instruct", "dialect-sichuan")
    plain = alice_api.send("POST", JOBS, {"voice_id": str(preset.pk), "text": TEXT}).json()
    assert (plain["mode"], plain["instruction"]) == ("plain", "")


@pytest.mark.parametrize("engines", [[], ["simulated", "kokoro"]])
def test_without_an_engine_that_takes_instructions_nothing_is_taken_in(
    alice_api: Api, preset: Voice, engines: list[str]
) -> None:
    for engine in engines:
        make_ready(engine)
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction": "emotion-happy"}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "mode_not_supported")
    assert rows() == before


def test_what_no_single_device_can_do_together_is_not_taken_in(alice_api: Api, preset: Voice) -> None:
    # One device can be told how to read, and another one has the voice and the language: none does both.
    make_ready("cosyvoice")
    told = Capabilities(languages=("zh",), modes=("clone", "instruct"), instructions="catalogue")
    Device.objects.update(**capability_columns(told))
    other = make_ready("simulated")
    plain = Capabilities(languages=("zh", "en"), modes=("preset", "clone"))
    Device.objects.filter(pk=other.pk).update(**capability_columns(plain))
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction": "emotion-happy"}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "mode_not_supported")
    assert rows() == before


def test_the_mode_instruct_needs_an_instruction(alice_api: Api, preset: Voice) -> None:
    make_ready("cosyvoice")
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "mode": "instruct"}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "instruction_missing")
    assert rows() == before
