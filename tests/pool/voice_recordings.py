"""Voices with several recordings, and a worker that really speaks with a simulated engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import ConsentRecord, User, Workspace
from tests.audio.clips import speech, wav
from tests.factories import make_voice
from tests.pool.test_attempts import claim_next
from tts import storage
from tts.audio.wav import read_wav
from tts.engine.process import EngineProcess
from tts.models import Device, SynthesisJob, Voice, VoiceVersion
from tts.services.attempts import finish_attempt
from tts.services.sweep import sweep
from tts.services.voice_versions import replace_recording
from tts.speaking import Speaking


@pytest.fixture(scope="module")
def recording() -> bytes:
    return wav(speech(4.0))


@pytest.fixture
def clone(workspace: Workspace, customer: User) -> Voice:
    return make_voice(workspace, customer, transcript="The first words.")


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    process = EngineProcess(None, "simulated", {}, {})
    process.start()
    process.load(120)
    yield process
    assert process.kill()


def upload(content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("recording.wav", content, "audio/wav")


def replace(workspace: Workspace, user: User, voice: Voice, content: bytes, **changes: Any) -> Voice:
    return replace_recording(
        workspace=workspace,
        user=user,
        voice_id=voice.pk,
        upload=upload(content),
        **{
            "language": "zh",
            "transcript": "The second words.",
            "consent": True,
            "locale": "en",
            "address": None,
            **changes,
        },
    )


def speak_next(engine: EngineProcess) -> tuple[Speaking, bytes]:
    """Speak what waits longest, settle it, and return its samples: the label in the file names its job."""
    assert engine.loaded is not None
    # What it speaks may be used again by this device, of which the test is the worker.
    Device.objects.update(engine_version=engine.loaded.engine_version)
    sweep()
    speaking = Speaking(claim_next(), engine, wanted=lambda: False, on_sent=lambda: None)
    speaking.speak()
    outcome = speaking.outcome(speaking.gpu_ms, check=speaking.check())
    finish_attempt(work=speaking.work, outcome=outcome)
    return speaking, read_wav(storage.read(outcome.audio_key)).pcm


def everything() -> tuple[list[Any], ...]:
    """The rows and files that replacing a recording is about."""
    models = (Voice, VoiceVersion, ConsentRecord, SynthesisJob)
    rows = [list(model.objects.order_by("pk").values_list()) for model in models]
    return (*rows, files())


def files() -> list[Path]:
    """What is stored of the voices of this test's workspaces."""
    folders = [Path(settings.MEDIA_ROOT, "workspaces", str(pk), "voices") for pk in _workspace_ids()]
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def _workspace_ids() -> list[object]:
    return list(Workspace.objects.values_list("pk", flat=True))
