"""How speech is marked as made by AI: the operator's name in every file, and what a workspace wants to be heard."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.conf import settings

from accounts.models import Workspace
from tts.audio import explicit
from tts.audio.aigc import implicit_label


@dataclass(frozen=True)
class LabelRule:
    """What is heard of the label (a kind of `tts.audio.explicit`), and where."""

    kind: str
    position: str


def label_of(job_id: uuid.UUID) -> str:
    """The implicit label of a job's audio: JSON, printable ASCII."""
    return implicit_label(producer=settings.VOICEPOOL["AIGC_PRODUCER"], produce_id=str(job_id))


def rule_of(workspace: Workspace) -> LabelRule:
    """The workspace's own rule, else the operator's."""
    return LabelRule(
        kind=workspace.explicit_label or settings.VOICEPOOL["EXPLICIT_LABEL"],
        position=workspace.label_position or explicit.AT_START,
    )
