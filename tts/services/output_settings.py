"""How a workspace's audio is delivered: what is heard of the label "made by AI", where, and how loud."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from accounts.models import User, Workspace
from accounts.services.audit import record_act
from tts.audio import explicit
from tts.audio.formats import MAX_LOUDNESS_LUFS, MIN_LOUDNESS_LUFS
from tts.errors import LabelRequired, LoudnessInvalid

_FIELDS = ("explicit_label", "label_position", "loudness_lufs")


def label_may_be_left_out() -> bool:
    """Whether a workspace may decide that nothing is heard: not where the operator's rule asks for something."""
    return bool(settings.VOICEPOOL["EXPLICIT_LABEL"] == explicit.NONE)


def set_output(
    *, workspace: Workspace, user: User, explicit_label: str, label_position: str, loudness_lufs: float | None
) -> None:
    """Store it for all that is delivered from now on, with a line of the audit log where it changes something.

    `explicit_label` "" is the operator's rule, `loudness_lufs` None as the engine left it; that of jobs that are
    submitted from now on. What an operator has set for the workspace stays possible. Locks the workspace's row.

    Raises:
        LabelRequired, LoudnessInvalid. Nothing was changed then.
    """
    if loudness_lufs is not None and not MIN_LOUDNESS_LUFS <= loudness_lufs <= MAX_LOUDNESS_LUFS:
        raise LoudnessInvalid(minimum=MIN_LOUDNESS_LUFS, maximum=MAX_LOUDNESS_LUFS)
    after = dict(zip(_FIELDS, (explicit_label, label_position, loudness_lufs), strict=True))
    with transaction.atomic():
        stored = Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
        before = {name: getattr(stored, name) for name in _FIELDS}
        is_new = explicit_label != before["explicit_label"]
        if explicit_label == explicit.NONE and is_new and not label_may_be_left_out():
            raise LabelRequired
        if after == before:
            return
        Workspace.objects.filter(pk=workspace.pk).update(**after)
        record_act(
            actor=user,
            act="workspace.output",
            object_kind="workspace",
            object_id=workspace.pk,
            reason="",
            before=before,
            after=after,
        )
