"""Which voices a member of a workspace may see and use. Every read of a voice by a customer begins here.

`user` is who asks, for an API key its maker; None is the platform itself, to which nothing is private but by name.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from accounts.models import User, Workspace
from accounts.selectors.people import runs_workspace
from accounts.tenancy import owned_by, owned_by_or_shared
from tts.errors import VoiceNotFound
from tts.models import Segment, SynthesisJob, Voice, VoiceKind
from tts.states import VOICE_KEPT, VoiceState


def _ready() -> QuerySet[Voice]:
    return Voice.objects.filter(state=VoiceState.READY)


def _open_to(user: User | None) -> Q:
    """Shared voices and the user's own."""
    return Q(shared=True) if user is None else Q(shared=True) | Q(created_by_id=user.pk)


def may_use(voice: Voice, user: User | None) -> bool:
    """Whether a member may hear this voice of the workspace and speak with it."""
    return voice.shared or (user is not None and voice.created_by_id == user.pk)


def may_arrange(workspace: Workspace, user: User, voice: Voice) -> bool:
    """Whether the user says who may use it: its maker, and whoever runs the workspace."""
    return voice.created_by_id == user.pk or runs_workspace(user, workspace.pk)


def usable_voices(workspace: Workspace, user: User | None) -> QuerySet[Voice]:
    """What the user may hear and speak with: own and shared ones, newest first, then the preset ones."""
    # Only presets belong to no workspace: a constraint of the table says so.
    return owned_by_or_shared(_ready(), workspace).filter(_open_to(user)).order_by("kind", "-created_at")


def voices_of(workspace: Workspace, user: User | None) -> QuerySet[Voice]:
    """The workspace's cloned voices that the user may use, newest first, with `job_count`: how many of its jobs used
    each, as the job's voice or as one of a script's."""
    alone = (
        SynthesisJob.objects.filter(voice=OuterRef("pk"), deleted_at__isnull=True)
        .order_by()
        .values("voice")
        .annotate(number=Count("pk"))
        .values("number")
    )
    in_scripts = (
        Segment.objects.filter(voice=OuterRef("pk"), job__deleted_at__isnull=True)
        .exclude(job__voice_id=F("voice_id"))
        .order_by()
        .values("voice")
        .annotate(number=Count("job", distinct=True))
        .values("number")
    )
    return (
        owned_by(_ready(), workspace)
        .filter(_open_to(user))
        .annotate(job_count=Coalesce(Subquery(alone), 0) + Coalesce(Subquery(in_scripts), 0))
        .order_by("-created_at")
    )


def private_voices_of_others(workspace: Workspace, user: User) -> QuerySet[Voice]:
    """For whoever runs the workspace: what other members keep private, newest first. For others nothing."""
    hidden = owned_by(_ready(), workspace).exclude(_open_to(user)).select_related("created_by")
    return hidden.order_by("-created_at") if runs_workspace(user, workspace.pk) else hidden.none()


def voice_count(workspace: Workspace) -> int:
    """How many cloned voices the workspace has, whoever may use them: what its limit counts."""
    return owned_by(_ready(), workspace).count()


def preset_voices() -> QuerySet[Voice]:
    return Voice.objects.filter(kind=VoiceKind.PRESET, state=VoiceState.READY).order_by("created_at")


def voice_of(workspace: Workspace, user: User | None, voice_id: uuid.UUID) -> Voice:
    """The voice to hear or to speak with, the workspace's or a preset. Raises VoiceNotFound for any other id, and for
    what another member keeps private."""
    voice = usable_voices(workspace, user).filter(pk=voice_id).select_related("consent__user").first()
    if voice is None:
        raise VoiceNotFound
    return voice


def known_voice_of(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """The voice to look at, share or delete: as `voice_of`, and for whoever runs the workspace what another member
    keeps private too. Ask `may_use` before anything of its sound is told. Raises VoiceNotFound."""
    try:
        return voice_of(workspace, user, voice_id)
    except VoiceNotFound:
        hidden = private_voices_of_others(workspace, user).filter(pk=voice_id)
        if voice := hidden.select_related("consent__user", "created_by").first():
            return voice
        raise


def refuse_private_voices(workspace: Workspace, user: User | None, voice_ids: Iterable[uuid.UUID]) -> None:
    """Raises VoiceNotFound where another member keeps one of these voices private, or somebody has not saved it."""
    kept = owned_by(Voice.objects.filter(state__in=VOICE_KEPT), workspace).filter(pk__in=set(voice_ids))
    if kept.exclude(_open_to(user), state=VoiceState.READY).exists():
        raise VoiceNotFound
