"""The three steps to a first sound. They tick themselves off from what the workspace has done."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from accounts.models import User, Workspace
from accounts.selectors.api_keys import api_keys_of
from tts.models import SynthesisJob, VoiceKind
from tts.selectors.voices import voices_of
from tts.states import JobState


@dataclass(frozen=True)
class Step:
    title: str | Promise
    text: str | Promise
    address: str
    done: bool


def first_run_steps(workspace: Workspace, user: User) -> list[Step]:
    """The steps with what is done, or nothing once all are: then nobody needs them any more."""
    heard = SynthesisJob.objects.filter(
        workspace=workspace, voice__kind=VoiceKind.PRESET, state=JobState.SUCCEEDED
    ).exists()
    steps = [
        Step(
            _("Hear a preset voice"),
            _("Type a sentence, pick a voice, press Speak."),
            reverse("studio"),
            heard,
        ),
        Step(
            _("Clone your own voice"),
            _("Record or upload 3 to 10 seconds of clear speech."),
            reverse("voice_new"),
            voices_of(workspace, user).exists(),
        ),
        Step(
            _("Make an API key"),
            _("Call the same voices from your own program."),
            reverse("developers"),
            api_keys_of(workspace).exists(),
        ),
    ]
    return [] if all(step.done for step in steps) else steps
