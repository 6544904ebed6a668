"""A sample of each preset voice for the landing page, spoken by the pool itself as the least urgent of jobs."""

from __future__ import annotations

import logging

from accounts.models import Workspace
from accounts.services.workspaces import platform_workspace
from billing.services.grants import grant
from tts import storage
from tts.engine.catalogue import PRESET_VOICES, PresetVoice
from tts.models import SynthesisJob, Voice
from tts.selectors.devices import ready_device_count
from tts.selectors.voices import preset_voices
from tts.services.quoting import quote
from tts.services.submit import JobRequest, submit_job
from tts.states import JOB_LIVE, JobClass, JobState

logger = logging.getLogger(__name__)
MAX_TRIES = 3
# The same seed for all: a sample that was lost is made again byte for byte.
SAMPLE_SEED = 1


def sample_text(preset: PresetVoice) -> str:
    """What the preset voice says on the landing page, in its own language."""
    if preset.language == "zh":
        return f"你好，我是{preset.chinese_name}。把文字交给我，几秒钟之后，你就能听到它的声音。"
    return f"Hello, I am {preset.english_name}. Give me a text, and a few seconds later you can hear it."


def ensure_preset_samples() -> None:
    """Store the samples that are spoken by now, and submit those that are missing, while a device takes work."""
    missing = [
        preset for preset in PRESET_VOICES if not storage.exists(storage.preset_sample_key(preset.key))
    ]
    if not missing or not ready_device_count():
        return
    workspace = platform_workspace()
    voices = {voice.preset_key: voice for voice in preset_voices()}
    for preset in missing:
        if voice := voices.get(preset.key):
            _advance(workspace, preset, voice)


def _advance(workspace: Workspace, preset: PresetVoice, voice: Voice) -> None:
    tries = list(SynthesisJob.objects.filter(workspace=workspace, voice=voice).order_by("-created_at"))
    if tries and tries[0].state == JobState.SUCCEEDED and storage.exists(tries[0].audio_key):
        storage.save(storage.preset_sample_key(preset.key), storage.read(tries[0].audio_key))
        logger.info("preset_sample_stored", extra={"preset_key": preset.key})
    elif len(tries) < MAX_TRIES and not (tries and tries[0].state in JOB_LIVE):
        _submit(workspace, voice, sample_text(preset), key=f"sample-{preset.key}-{len(tries) + 1}")


def _submit(workspace: Workspace, voice: Voice, text: str, *, key: str) -> None:
    request = JobRequest(voice_id=voice.pk, text=text, job_class=JobClass.BATCH, seed=SAMPLE_SEED)
    priced = quote(workspace=workspace, voice_id=voice.pk, text=text, job_class=request.job_class)
    grant(
        workspace_id=workspace.pk, amount_micros=priced.held_micros, idempotency_key=f"{key}:{workspace.pk}"
    )
    submit_job(
        workspace=workspace,
        user=None,
        api_key=None,
        request=request,
        idempotency_key=key,
        client_address=None,
        request_id="",
    )
