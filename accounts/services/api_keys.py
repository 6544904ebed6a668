"""Making, using and revoking API keys."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts import keys
from accounts.errors import (
    ApiKeyExpired,
    ApiKeyRevoked,
    InvalidApiKey,
    KeyExpiryInvalid,
    KeyNameInvalid,
    TooManyApiKeys,
    WorkspaceSuspended,
)
from accounts.models import ApiKey, User, Workspace
from accounts.selectors.api_keys import api_key_by_secret, api_keys_of
from accounts.tenancy import one_of, owned_by
from portal.lib import clock
from portal.lib.errors import DomainError

MAX_NAME_LENGTH: Final = 60
# More than any team needs; a key that makes keys cannot fill the table.
MAX_KEYS_PER_WORKSPACE: Final = 50
# The last use is shown to people: a minute is fine enough, and a busy key costs no write per request.
LAST_USE_RESOLUTION: Final = timedelta(minutes=1)


@transaction.atomic
def create_api_key(
    *,
    workspace: Workspace,
    user: User,
    name: str,
    expires_at: datetime | None = None,
    made_by: ApiKey | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which is shown now and never again.

    `made_by` is the key that asks for this one, if any: no key may make one that outlives it. Locks the
    workspace's row, so that two calls together cannot pass the limit.

    Raises:
        KeyNameInvalid, KeyExpiryInvalid, TooManyApiKeys. Nothing was stored.
    """
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise KeyNameInvalid(maximum=MAX_NAME_LENGTH)
    if expires_at is not None and expires_at <= clock.now():
        raise KeyExpiryInvalid
    if made_by is not None and made_by.expires_at is not None:
        expires_at = expires_at or made_by.expires_at
        if expires_at > made_by.expires_at:
            raise KeyExpiryInvalid
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)
    if api_keys_of(workspace).count() >= MAX_KEYS_PER_WORKSPACE:
        raise TooManyApiKeys(maximum=MAX_KEYS_PER_WORKSPACE)
    text = keys.new_key()
    api_key = ApiKey.objects.create(
        workspace=workspace,
        created_by=user,
        name=name,
        prefix=text[: keys.SHOWN_LENGTH],
        secret_sha256=keys.key_sha256(text),
        expires_at=expires_at,
    )
    return api_key, text


def revoke_api_key(*, workspace: Workspace, key_id: uuid.UUID) -> None:
    """Make the key useless from the next request on. A key that was revoked before stays so.

    Raises:
        NotFound: the workspace has no such key.
    """
    own = owned_by(ApiKey.objects.all(), workspace)
    if not own.filter(pk=key_id, revoked_at__isnull=True).update(revoked_at=Now()):
        one_of(own, key_id)


def authenticate(*, key: str) -> ApiKey:
    """The key's row with `workspace` and `created_by`; notes its use, at most once a minute.

    Raises:
        InvalidApiKey: mistyped (told without the database), unknown, or its maker is inactive or left the workspace.
        ApiKeyRevoked, ApiKeyExpired, WorkspaceSuspended: as they say, to whoever holds the real key.
    """
    now = clock.now()
    api_key = _working_key(key, now)
    _note_use(api_key, now)
    return api_key


def find_active_key(key: str) -> ApiKey | None:
    """The row of a key that would be let in now, else None. Does not count as a use."""
    try:
        return _working_key(key, clock.now())
    except DomainError:
        return None


def _working_key(key: str, now: datetime) -> ApiKey:
    api_key = api_key_by_secret(key) if keys.is_well_formed(key) else None
    if api_key is None:
        raise InvalidApiKey
    if api_key.revoked_at is not None:
        raise ApiKeyRevoked
    if api_key.expires_at is not None and api_key.expires_at <= now:
        raise ApiKeyExpired
    maker_is_member: bool = api_key.maker_is_member  # type: ignore[attr-defined]
    if not api_key.created_by.is_active or not maker_is_member:
        raise InvalidApiKey
    if api_key.workspace.suspended_at is not None:
        raise WorkspaceSuspended
    return api_key


def _note_use(api_key: ApiKey, now: datetime) -> None:
    stale_before = now - LAST_USE_RESOLUTION
    if api_key.last_used_at is not None and api_key.last_used_at > stale_before:
        return
    # Conditional, so that of many requests at the same moment one writes.
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=stale_before)
    ApiKey.objects.filter(stale, pk=api_key.pk).update(last_used_at=now)
