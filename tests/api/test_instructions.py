"""Jobs that say how they are to be read."""

from __future__ import annotations

import pytest

from accounts.models import User
from tests.api.problems import assert_problem
from tests.api.test_jobs import JOBS, rows
from tests.cast import Api
from tts.engine.capabilities import Capabilities
from tts.models import Device, DeviceKind, Segment, SynthesisJob, Voice
from tts.services.devices import FoundDevice, register_device, slot_ready
from tts.services.jobs import delete_job, repeat_request
from tts.services.node_state import capability_columns

TEXT = "你好，很高兴认识你。"
QUOTES = "/api/v1/quotes"


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
    text = {"voice_id": str(preset.pk), "text": TEXT}
    # Nor is a price told to who has chosen the mode alone: there is nothing to choose.
    for wanted in (text | {"instruction": "emotion-happy"}, text | {"mode": "instruct"}):
        assert_problem(alice_api.send("POST", QUOTES, wanted), 422, "mode_not_supported")
        assert_problem(alice_api.send("POST", JOBS, wanted), 422, "mode_not_supported")
    assert rows() == before


def test_a_quote_refuses_what_its_job_would_be_refused_for(alice_api: Api, preset: Voice) -> None:
    text = {"voice_id": str(preset.pk), "text": TEXT}
    make_ready("cosyvoice")
    assert alice_api.send("POST", QUOTES, text | {"instruction": "emotion-happy"}).status_code == 200
    # Who has not chosen yet wants to know the price all the same.
    assert alice_api.send("POST", QUOTES, text | {"mode": "instruct"}).status_code == 200
    free = text | {"instruction_text": "Slowly."}
    assert_problem(alice_api.send("POST", QUOTES, free), 422, "free_instruction_not_supported")
    both = free | {"instruction": "emotion-happy"}
    assert_problem(alice_api.send("POST", QUOTES, both), 422, "instructions_conflict")


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
    open_mode = {"voice_id": str(preset.pk), "text": TEXT, "mode": "instruct"}
    assert_problem(alice_api.send("POST", QUOTES, open_mode), 422, "mode_not_supported")
    assert rows() == before


def test_the_mode_instruct_needs_an_instruction(alice_api: Api, preset: Voice) -> None:
    make_ready("cosyvoice")
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "mode": "instruct"}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "instruction_missing")
    assert rows() == before


FREE = Capabilities(
    languages=("zh", "en"), modes=("preset", "clone", "instruct"), instructions="free", gpu_ms_per_audio_s=100
)


def make_free() -> None:
    """A device whose engine obeys any instruction."""
    device = make_ready("remote")
    Device.objects.filter(pk=device.pk).update(**capability_columns(FREE))


def test_an_instruction_in_own_words_is_kept_until_its_job_is_deleted(
    alice_api: Api, alice: User, preset: Voice
) -> None:
    make_free()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction_text": " 像在讲<|endofprompt|>故事 "}
    response = alice_api.send("POST", JOBS, wanted)
    assert response.status_code == 202
    body = response.json()
    told = "像在讲 endofprompt 故事"
    assert (body["mode"], body["instruction"], body["instruction_text"]) == ("instruct", "", told)
    job = SynthesisJob.objects.get(pk=body["id"])
    assert job.instruction_text == told
    assert {"instruct", "free_instructions"} <= set(Segment.objects.get(job=job).needs)
    assert repeat_request(job).instruction_text == told
    delete_job(workspace=job.workspace, job_id=job.pk)
    job.refresh_from_db()
    assert job.instruction_text == ""


def test_own_words_are_refused_where_no_engine_takes_them(alice_api: Api, preset: Voice) -> None:
    # CosyVoice obeys its list and reads other sentences aloud.
    make_ready("cosyvoice")
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction_text": "Like a captain."}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "free_instruction_not_supported")
    assert rows() == before


def test_own_words_are_few_and_stand_alone(alice_api: Api, preset: Voice) -> None:
    make_free()
    before = rows()
    wanted = {"voice_id": str(preset.pk), "text": TEXT, "instruction_text": "话" * 201}
    assert_problem(alice_api.send("POST", JOBS, wanted), 422, "instruction_too_long")
    both = {**wanted, "instruction_text": "Softly.", "instruction": "emotion-sad"}
    assert_problem(alice_api.send("POST", JOBS, both), 422, "instructions_conflict")
    nothing = {**wanted, "instruction_text": "<| |>", "mode": "instruct"}
    assert_problem(alice_api.send("POST", JOBS, nothing), 422, "instruction_missing")
    assert rows() == before
    enough = alice_api.send("POST", JOBS, {**wanted, "instruction_text": "话" * 200})
    assert enough.status_code == 202
