"""Making and changing a workspace's webhook endpoints.

Each change locks the workspace's row first: its `webhook_events` says what its endpoints want, and whoever ends a job
asks that alone.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from accounts.errors import (
    TooManyWebhookEndpoints,
    WebhookDescriptionInvalid,
    WebhookEventsInvalid,
    WebhookUrlRefused,
)
from accounts.models import DeliveryState, SwitchedOff, User, WebhookDelivery, WebhookEndpoint, Workspace
from accounts.selectors.webhooks import endpoints_of
from accounts.tenancy import one_of
from accounts.webhooks.catalogue import ERRORS, EVENT_NAMES
from accounts.webhooks.outside import call_policy, signing_key
from accounts.webhooks.secrets import secret_of
from portal.lib.outgoing.addresses import AddressRefused, parse_target

logger = logging.getLogger(__name__)
MAX_ENDPOINTS: Final = 20
MAX_DESCRIPTION_LENGTH: Final = 100
OLD_SECRET_LASTS: Final = timedelta(hours=24)


def create_endpoint(
    *, workspace: Workspace, user: User | None, url: str, event_types: Sequence[str], description: str = ""
) -> tuple[WebhookEndpoint, str]:
    """A new endpoint, switched on, and its secret, which is shown now and never again. Locks the workspace's row.

    Raises:
        WebhookUrlRefused, WebhookEventsInvalid, WebhookDescriptionInvalid, TooManyWebhookEndpoints. Nothing was stored.
    """
    endpoint = WebhookEndpoint(
        workspace=workspace,
        created_by=user,
        url=_checked_url(url),
        description=_checked_description(description),
        event_types=_checked_events(event_types),
    )
    with transaction.atomic():
        _lock(workspace)
        if endpoints_of(workspace).count() >= MAX_ENDPOINTS:
            raise TooManyWebhookEndpoints(maximum=MAX_ENDPOINTS)
        endpoint.save(force_insert=True)
        _note_wanted_events(workspace.pk)
    return endpoint, _secret(endpoint)


def change_endpoint(
    *,
    workspace: Workspace,
    endpoint_id: uuid.UUID,
    url: str | None = None,
    description: str | None = None,
    event_types: Sequence[str] | None = None,
    is_on: bool | None = None,
) -> WebhookEndpoint:
    """Change what is given and leave the rest. Switching off closes what waits as failed; switching on forgets the
    failures until then. Locks the workspace's row, then the endpoint's.

    Raises:
        NotFound: the workspace has no such endpoint.
        WebhookUrlRefused, WebhookEventsInvalid, WebhookDescriptionInvalid. Nothing was changed.
    """
    changes: dict[str, object] = {}
    if url is not None:
        changes["url"] = _checked_url(url)
    if description is not None:
        changes["description"] = _checked_description(description)
    if event_types is not None:
        changes["event_types"] = _checked_events(event_types)
    with transaction.atomic():
        _lock(workspace)
        own = endpoints_of(workspace)
        one_of(own, endpoint_id)
        if changes:
            own.filter(pk=endpoint_id).update(**changes)
        if is_on is True:
            own.filter(pk=endpoint_id, is_on=False).update(
                is_on=True, switched_off="", switched_off_at=None, owners_told_at=None, failing_since=None
            )
        elif is_on is False:
            _switch_off(endpoint_id, SwitchedOff.BY_PEOPLE)
        _note_wanted_events(workspace.pk)
        return one_of(own, endpoint_id)


def rotate_secret(*, workspace: Workspace, endpoint_id: uuid.UUID) -> tuple[WebhookEndpoint, str]:
    """Give the endpoint a new secret and return it, this once. The one before signs beside it for 24 hours; one before
    that is gone at once.

    Raises NotFound.
    """
    with transaction.atomic():
        _lock(workspace)
        before = one_of(endpoints_of(workspace), endpoint_id)
        endpoints_of(workspace).filter(pk=endpoint_id).update(
            secret_id=uuid.uuid4(),
            previous_secret_id=before.secret_id,
            previous_secret_until=Now() + OLD_SECRET_LASTS,
        )
        endpoint = one_of(endpoints_of(workspace), endpoint_id)
    return endpoint, _secret(endpoint)


def delete_endpoint(*, workspace: Workspace, endpoint_id: uuid.UUID) -> None:
    """Hide the endpoint and its deliveries, and send nothing more; the clock removes the rows.

    Raises NotFound.
    """
    with transaction.atomic():
        _lock(workspace)
        one_of(endpoints_of(workspace), endpoint_id)
        _switch_off(endpoint_id, SwitchedOff.BY_PEOPLE)
        WebhookEndpoint.objects.filter(pk=endpoint_id, deleted_at__isnull=True).update(deleted_at=Now())
        _note_wanted_events(workspace.pk)


def switch_off_failing(*, workspace_id: uuid.UUID, endpoint_id: uuid.UUID, reason: SwitchedOff) -> bool:
    """Switch an endpoint off because of what it answers; False when it was off before. Its owners are told by the
    clock. Locks the workspace's row, then the endpoint's."""
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).filter(pk=workspace_id).first()
        switched = _switch_off(endpoint_id, reason)
        if switched:
            _note_wanted_events(workspace_id)
    if switched:
        logger.warning("webhook_endpoint_switched_off", extra={"endpoint": endpoint_id, "reason": reason})
    return switched


def _lock(workspace: Workspace) -> None:
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


def _switch_off(endpoint_id: uuid.UUID, reason: SwitchedOff) -> bool:
    """Whether it was on. What waits is closed: it would be old when somebody switches the endpoint on again."""
    switched = WebhookEndpoint.objects.filter(pk=endpoint_id, is_on=True).update(
        is_on=False, switched_off=reason, switched_off_at=Now(), owners_told_at=None
    )
    if switched:
        WebhookDelivery.objects.filter(endpoint_id=endpoint_id, state=DeliveryState.PENDING).update(
            state=DeliveryState.FAILED, error_code="endpoint_off"
        )
    return bool(switched)


def _note_wanted_events(workspace_id: uuid.UUID) -> None:
    wanted: set[str] = set()
    for names in WebhookEndpoint.objects.filter(
        workspace_id=workspace_id, is_on=True, deleted_at__isnull=True
    ).values_list("event_types", flat=True):
        wanted.update(names)
    Workspace.objects.filter(pk=workspace_id).update(webhook_events=sorted(wanted))


def _secret(endpoint: WebhookEndpoint) -> str:
    return secret_of(key=signing_key(), endpoint_id=endpoint.pk, secret_id=endpoint.secret_id)


def _checked_url(url: str) -> str:
    try:
        parse_target(url.strip(), call_policy())
    except AddressRefused as refused:
        raise WebhookUrlRefused(reason=ERRORS[refused.code]) from refused
    return url.strip()


def _checked_events(names: Sequence[str]) -> list[str]:
    chosen = set(names)
    if not chosen or not chosen <= set(EVENT_NAMES):
        raise WebhookEventsInvalid(known=", ".join(EVENT_NAMES))
    return [name for name in EVENT_NAMES if name in chosen]


def _checked_description(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_DESCRIPTION_LENGTH or (text and not text.isprintable()):
        raise WebhookDescriptionInvalid(maximum=MAX_DESCRIPTION_LENGTH)
    return text
