"""A delivery's life: claimed, sent, its outcome written down; tried again, given up, or asked for by hand.

At least once, under one id: whoever dies between sending and writing leaves a lease that runs out, and it is sent
again. Lock order: workspace → endpoint → delivery.
"""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from accounts.errors import (
    WebhookDeliveryOpen,
    WebhookEndpointOff,
    WebhookResentTooOften,
    WebhookTestTooSoon,
)
from accounts.models import (
    DeliveryState,
    SwitchedOff,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from accounts.selectors.webhooks import deliveries_of, endpoints_of
from accounts.services.webhook_endpoints import switch_off_failing
from accounts.tenancy import one_of
from accounts.webhooks.catalogue import PING
from portal.lib.clock import database_now
from portal.lib.outgoing.posting import PostResult

# After the first try, the second, and so on; then it has failed. Nearly 32 hours in all.
RETRY_DELAYS_S: Final = (5, 30, 2 * 60, 10 * 60, 3600, 6 * 3600, 24 * 3600)
MAX_ATTEMPTS: Final = len(RETRY_DELAYS_S) + 1
# Up to so much is added to a wait, so that what failed together does not come back together.
JITTER: Final = 0.2
# Longer than any try takes (15 s, and a resolver that hangs within them).
LEASE_S: Final = 60
# How many of one endpoint are on their way at once; of one that fails, one: it must not take the others' places.
AT_ONCE_PER_ENDPOINT: Final = 4
# And of one workspace: its endpoints, however many and slow, leave places for others.
AT_ONCE_PER_WORKSPACE: Final = 16
# Of one delivery in all, those asked for by hand included. Each is a row, and their number is a small integer.
MOST_TRIES: Final = 200
OFF_AFTER: Final = timedelta(days=5)
GONE: Final = 410
TESTS_PER_MINUTE: Final = 5


@dataclass(frozen=True)
class Claimed:
    """A delivery that is ours to send until its lease runs out. `attempt_number` is the fence."""

    delivery_id: uuid.UUID
    endpoint_id: uuid.UUID
    workspace_id: uuid.UUID
    attempt_number: int
    attempts_before: int
    event_type: str
    data: dict[str, Any]
    happened_at: datetime
    url: str
    secret_ids: tuple[uuid.UUID, ...]
    is_wanted: bool


# A lease that ran out belongs to a clock that died. One that was tried as often as any is given up all the same.
_RELEASE: Final = """
UPDATE accounts_webhookdelivery SET leased_until = NULL, next_attempt_at = statement_timestamp(),
    state = CASE WHEN attempts - attempts_before >= %(most)s THEN 'failed' ELSE 'pending' END,
    error_code = CASE WHEN attempts - attempts_before >= %(most)s THEN 'lost' ELSE error_code END
WHERE state = 'sending' AND leased_until < statement_timestamp()
"""
# Endpoint by endpoint, by jumps through the index, so that a long queue of one hides nobody else's; who has the least
# on its way is first. Two clocks never take the same.
_CLAIM: Final = """
WITH RECURSIVE waiting (endpoint_id) AS (
    (SELECT endpoint_id FROM accounts_webhookdelivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (
        SELECT later.endpoint_id FROM accounts_webhookdelivery later
        WHERE later.state = 'pending' AND later.endpoint_id > waiting.endpoint_id
        ORDER BY later.endpoint_id LIMIT 1
    ) FROM waiting WHERE waiting.endpoint_id IS NOT NULL
), busy AS (
    SELECT workspace_id, COUNT(*) AS sent FROM accounts_webhookdelivery WHERE state = 'sending' GROUP BY workspace_id
), placed AS (
    SELECT first.id, first.next_attempt_at, COALESCE(busy.sent, 0) + ROW_NUMBER() OVER (
        PARTITION BY endpoint.workspace_id ORDER BY first.next_attempt_at
    ) AS place FROM waiting
    JOIN accounts_webhookendpoint endpoint ON endpoint.id = waiting.endpoint_id
    LEFT JOIN busy ON busy.workspace_id = endpoint.workspace_id
    CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM accounts_webhookdelivery mine
        WHERE mine.endpoint_id = waiting.endpoint_id AND mine.state = 'pending'
            AND mine.next_attempt_at <= statement_timestamp()
        ORDER BY mine.next_attempt_at
        LIMIT GREATEST(0, CASE WHEN endpoint.failing_since IS NULL THEN %(per_endpoint)s ELSE 1 END - (
            SELECT COUNT(*) FROM accounts_webhookdelivery sent
            WHERE sent.endpoint_id = waiting.endpoint_id AND sent.state = 'sending'
        ))
    ) AS first
), due AS (
    SELECT id FROM placed WHERE place <= %(per_workspace)s ORDER BY place, next_attempt_at LIMIT %(most)s
), taken AS (
    SELECT id FROM accounts_webhookdelivery WHERE id IN (SELECT id FROM due) AND state = 'pending'
    FOR UPDATE SKIP LOCKED
)
UPDATE accounts_webhookdelivery delivery
SET state = 'sending', attempts = attempts + 1,
    leased_until = statement_timestamp() + make_interval(secs => %(lease_s)s)
FROM taken, accounts_webhookendpoint endpoint
WHERE delivery.id = taken.id AND endpoint.id = delivery.endpoint_id
RETURNING delivery.id, delivery.endpoint_id, delivery.workspace_id, delivery.attempts, delivery.attempts_before,
    delivery.event_type, delivery.data, delivery.created_at, endpoint.url, endpoint.secret_id,
    CASE WHEN endpoint.previous_secret_until > statement_timestamp() THEN endpoint.previous_secret_id END,
    endpoint.deleted_at IS NULL AND (endpoint.is_on OR delivery.event_type = 'ping')
"""


def claim_due(*, at_most: int) -> list[Claimed]:
    """Take up to `at_most` deliveries whose turn it is. Two statements, cheap where nothing waits."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, {"most": MAX_ATTEMPTS})
        cursor.execute(
            _CLAIM,
            {
                "per_endpoint": AT_ONCE_PER_ENDPOINT,
                "per_workspace": AT_ONCE_PER_WORKSPACE,
                "most": at_most,
                "lease_s": LEASE_S,
            },
        )
        rows = cursor.fetchall()
    return [
        Claimed(
            delivery_id=row[0],
            endpoint_id=row[1],
            workspace_id=row[2],
            attempt_number=row[3],
            attempts_before=row[4],
            event_type=row[5],
            data=json.loads(row[6]),
            happened_at=row[7],
            url=row[8],
            secret_ids=tuple(secret_id for secret_id in row[9:11] if secret_id is not None),
            is_wanted=row[11],
        )
        for row in rows
    ]


def record_outcome(*, claimed: Claimed, result: PostResult, started_at: datetime) -> bool:
    """Write down how a try ended, and what follows; False when somebody else has the delivery by now.

    2xx is delivered. 410, and five days of nothing but failures, switch the endpoint off.
    """
    delivered = result.status is not None and 200 <= result.status < 300
    with transaction.atomic():
        mine = WebhookDelivery.objects.filter(
            pk=claimed.delivery_id, state=DeliveryState.SENDING, attempts=claimed.attempt_number
        )
        changed = mine.update(**_what_follows(claimed, result, delivered=delivered))
        if not changed:
            return False
        WebhookAttempt.objects.create(
            delivery_id=claimed.delivery_id,
            number=claimed.attempt_number,
            started_at=started_at,
            duration_ms=result.duration_ms,
            status_code=result.status,
            error_code=_error_of(result, delivered=delivered),
            # Text that people read: PostgreSQL keeps no NUL.
            response_start=result.body.decode("utf-8", "replace").replace("\x00", "\ufffd"),
        )
        off = _note_on_endpoint(claimed, result, delivered=delivered)
    if off is not None:
        switch_off_failing(workspace_id=claimed.workspace_id, endpoint_id=claimed.endpoint_id, reason=off)
    return True


def close_unwanted(*, claimed: Claimed) -> None:
    """Close a delivery to an endpoint that was switched off or deleted meanwhile; it was not sent."""
    WebhookDelivery.objects.filter(
        pk=claimed.delivery_id, state=DeliveryState.SENDING, attempts=claimed.attempt_number
    ).update(
        state=DeliveryState.FAILED,
        error_code="endpoint_off",
        attempts=F("attempts") - 1,
        leased_until=None,
    )


def _error_of(result: PostResult, *, delivered: bool) -> str:
    return "" if delivered else result.error_code or "answer_not_2xx"


def _what_follows(claimed: Claimed, result: PostResult, *, delivered: bool) -> dict[str, Any]:
    outcome: dict[str, Any] = {
        "leased_until": None,
        "status_code": result.status,
        "error_code": _error_of(result, delivered=delivered),
    }
    tries = claimed.attempt_number - claimed.attempts_before
    if delivered:
        return outcome | {"state": DeliveryState.DELIVERED, "delivered_at": Now()}
    if result.status == GONE or tries >= MAX_ATTEMPTS or claimed.event_type == PING:
        # Whoever tests wants to know now, and tests again.
        return outcome | {"state": DeliveryState.FAILED}
    delay = retry_delay_s(tries, asked_for_s=result.retry_after_s)
    return outcome | {
        "state": DeliveryState.PENDING,
        "next_attempt_at": Now() + timedelta(seconds=delay),
    }


def retry_delay_s(tries: int, *, asked_for_s: int | None = None) -> float:
    """How long to wait after so many tries in vain: by the list, with jitter, and no less than the answer asked for (a
    day at most)."""
    delay = RETRY_DELAYS_S[tries - 1] * (1 + JITTER * random.random())  # noqa: S311 - nothing secret
    return max(delay, min(asked_for_s or 0, RETRY_DELAYS_S[-1]))


def _note_on_endpoint(claimed: Claimed, result: PostResult, *, delivered: bool) -> SwitchedOff | None:
    """Remember since when the endpoint fails; returns why it is to be switched off, if it is."""
    endpoint = WebhookEndpoint.objects.filter(pk=claimed.endpoint_id)
    if delivered:
        # Once a minute is fine enough: a busy endpoint costs no write for each delivery.
        stale = Q(last_success_at__isnull=True) | Q(last_success_at__lt=Now() - timedelta(minutes=1))
        endpoint.filter(stale | Q(failing_since__isnull=False)).update(
            failing_since=None, last_success_at=Now()
        )
        return None
    if result.status == GONE:
        return SwitchedOff.GONE
    if endpoint.filter(failing_since__isnull=True).update(failing_since=Now()):
        return None
    failing = endpoint.filter(is_on=True, failing_since__lte=Now() - OFF_AFTER).exists()
    return SwitchedOff.FAILING if failing else None


def redeliver(*, workspace: Workspace, delivery_id: uuid.UUID) -> WebhookDelivery:
    """Send a delivery that has ended once more, under the same id; the waits between tries begin anew.

    Raises:
        NotFound: the workspace has no such delivery.
        WebhookEndpointOff, WebhookDeliveryOpen, WebhookResentTooOften. Nothing was changed.
    """
    delivery = one_of(deliveries_of(workspace), delivery_id)
    if not delivery.endpoint.is_on and delivery.event_type != PING:
        raise WebhookEndpointOff
    if delivery.attempts >= MOST_TRIES:
        raise WebhookResentTooOften(maximum=delivery.attempts)
    again = WebhookDelivery.objects.filter(
        pk=delivery.pk, state__in=[DeliveryState.DELIVERED, DeliveryState.FAILED], attempts__lt=MOST_TRIES
    ).update(
        state=DeliveryState.PENDING,
        attempts_before=F("attempts"),
        next_attempt_at=Now(),
        delivered_at=None,
    )
    if not again:
        raise WebhookDeliveryOpen
    return one_of(deliveries_of(workspace), delivery_id)


def send_test(*, workspace: Workspace, endpoint_id: uuid.UUID) -> WebhookDelivery:
    """A `ping` for the endpoint, whatever it chose and also while it is off. It is sent within seconds, and tried once.

    Locks the endpoint's row, so that many at once cannot pass the limit.

    Raises:
        NotFound: the workspace has no such endpoint.
        WebhookTestTooSoon
    """
    with transaction.atomic():
        endpoint = one_of(endpoints_of(workspace).select_for_update(no_key=True), endpoint_id)
        moment = database_now()
        tests = WebhookDelivery.objects.filter(
            endpoint=endpoint, event_type=PING, created_at__gt=moment - timedelta(minutes=1)
        )
        if tests.count() >= TESTS_PER_MINUTE:
            raise WebhookTestTooSoon(maximum=TESTS_PER_MINUTE)
        delivery_id = uuid.uuid4()
        return WebhookDelivery.objects.create(
            pk=delivery_id,
            endpoint=endpoint,
            workspace=workspace,
            event_type=PING,
            fact=f"{PING}:{delivery_id}",
            data={"workspace_id": str(workspace.pk), "endpoint_id": str(endpoint.pk)},
            next_attempt_at=moment,
            created_at=moment,
        )
