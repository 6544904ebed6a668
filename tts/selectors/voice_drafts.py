"""Drafts: voices that are heard before they are saved. Only who made one finds it, in the workspace that it is for;
whoever runs that workspace does not. No list has them, and nothing but their own test speaks with them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import QuerySet

from accounts.models import User, Workspace
from accounts.tenancy import owned_by
from tts.errors import VoiceNotFound
from tts.models import Voice
from tts.states import VoiceState


def _made_by(workspace: Workspace, user: User, states: Iterable[str]) -> QuerySet[Voice]:
    return owned_by(Voice.objects.filter(state__in=states), workspace).filter(created_by_id=user.pk)


def draft_by(workspace: Workspace, user: User) -> Voice | None:
    """The user's draft in this workspace: there is one at most."""
    return _made_by(workspace, user, [VoiceState.DRAFT]).first()


def draft_of(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """The user's draft with this id. Raises VoiceNotFound for any other, and for one that was saved or is gone."""
    draft = _made_by(workspace, user, [VoiceState.DRAFT]).filter(pk=voice_id).first()
    if draft is None:
        raise VoiceNotFound
    return draft


def former_draft_of(workspace: Workspace, user: User, voice_id: uuid.UUID) -> Voice:
    """What became of the user's draft: a saved voice, or a deleted one. Raises VoiceNotFound as `draft_of` does."""
    former = _made_by(workspace, user, [VoiceState.READY, VoiceState.DELETED]).filter(pk=voice_id).first()
    if former is None:
        raise VoiceNotFound
    return former
