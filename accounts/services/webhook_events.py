"""Noting that something happened which a customer's program wants to hear of: the way into the outbox."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection


@dataclass(frozen=True)
class Fact:
    """`subject` names what it happened to, such as a job's id: of one event and subject an endpoint hears once.

    `data` is plain JSON of ids, states and numbers: nothing that a customer wrote, no secret.
    """

    workspace_id: uuid.UUID
    event_type: str
    subject: object
    data: dict[str, Any]


# The endpoint's own choice decides, not the copy of it in the workspace's row.
_NOTE: Final = """
INSERT INTO accounts_webhookdelivery (id, endpoint_id, workspace_id, event_type, fact, data, state, attempts,
    attempts_before, next_attempt_at, error_code, created_at)
SELECT gen_random_uuid(), endpoint.id, endpoint.workspace_id, fact.event_type, fact.event_type || ':' || fact.subject,
    fact.data, 'pending', 0, 0, statement_timestamp(), '', statement_timestamp()
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::jsonb[]) AS fact (workspace_id, event_type, subject, data)
JOIN accounts_webhookendpoint endpoint ON endpoint.workspace_id = fact.workspace_id
WHERE endpoint.is_on AND endpoint.deleted_at IS NULL AND fact.event_type = ANY(endpoint.event_types)
ON CONFLICT (endpoint_id, fact) DO NOTHING
"""


def note_facts(facts: Iterable[Fact]) -> int:
    """Write down the facts for every endpoint that wants them; returns how many deliveries that are. One statement.

    Call inside the transaction that makes the facts: without them there is no delivery, and without deliveries no
    fact. What was noted before is not noted again.
    """
    rows = list(facts)
    if not rows:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            _NOTE,
            [
                [row.workspace_id for row in rows],
                [row.event_type for row in rows],
                [str(row.subject) for row in rows],
                [json.dumps({"workspace_id": str(row.workspace_id), **row.data}) for row in rows],
            ],
        )
        noted: int = cursor.rowcount
    return noted


def note_fact(*, workspace_id: uuid.UUID, event_type: str, subject: object, data: dict[str, Any]) -> int:
    """`note_facts` for one."""
    return note_facts([Fact(workspace_id, event_type, subject, data)])
