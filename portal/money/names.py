"""How the voices, members, keys and classes of a workspace's usage are called."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import ApiKey, User, Workspace
from accounts.tenancy import owned_by, owned_by_or_shared
from billing.selectors.usage import Dimension, Key
from portal.templatetags.charts import long_date
from tts.models import Voice
from tts.states import JobClass
from tts.views.cards import voice_name

SHORT_ID = 8


def names_of(workspace: Workspace, dimension: Dimension, keys: Iterable[Key]) -> dict[Key, str]:
    """A name for each of the keys, in the reader's language. At most one query."""
    wanted = list(keys)
    if dimension in _NAMES_OF_IDS:
        found = _NAMES_OF_IDS[dimension](workspace, [key for key in wanted if isinstance(key, uuid.UUID)])
        return {key: _name(dimension, key, found) for key in wanted}
    if dimension == Dimension.DAY:
        return {key: long_date(key) for key in wanted if isinstance(key, date)}
    if dimension == Dimension.JOB_CLASS:
        return {key: str(JobClass(str(key)).label) for key in wanted}
    return {key: device_class_name(str(key)) for key in wanted}


def device_class_name(device_class: str) -> str:
    """The class as operators call it; usage of before there were classes has none."""
    return device_class or _("unclassed")


def _voices(workspace: Workspace, ids: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    # Only those of its own and the presets have names for it, whatever the sums say.
    rows = owned_by_or_shared(Voice.objects.all(), workspace).filter(pk__in=ids)
    return {row.pk: voice_name(row) for row in rows}


def _members(workspace: Workspace, ids: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "email"))


def _keys(workspace: Workspace, ids: list[uuid.UUID]) -> dict[uuid.UUID, str]:
    rows = owned_by(ApiKey.objects.all(), workspace).filter(pk__in=ids)
    return {row.pk: f"{row.name} ({row.prefix}…)" for row in rows}


_NAMES_OF_IDS: Final[dict[Dimension, Callable[[Workspace, list[uuid.UUID]], dict[uuid.UUID, str]]]] = {
    Dimension.VOICE: _voices,
    Dimension.MEMBER: _members,
    Dimension.KEY: _keys,
}
_GONE: Final = {
    Dimension.VOICE: gettext_lazy("A voice that is gone (%(id)s)"),
    Dimension.MEMBER: gettext_lazy("Somebody who is gone (%(id)s)"),
    Dimension.KEY: gettext_lazy("A key that is gone (%(id)s)"),
}


def _name(dimension: Dimension, key: Key, found: dict[uuid.UUID, str]) -> str:
    if not isinstance(key, uuid.UUID):
        return _("None: from these pages") if dimension == Dimension.KEY else _("Nobody’s")
    return found.get(key) or str(_GONE[dimension]) % {"id": str(key)[:SHORT_ID]}
