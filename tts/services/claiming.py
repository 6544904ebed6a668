"""Taking an attempt: claimed and read in one call of the database, for a device waits meanwhile.

The rows come as models without their columns of JSON and the job's whole text, which no worker needs; Django would read
those when they are asked for. Building the same query anew by the ORM took longer than the decision what to speak.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, models

from tts.models import Attempt, Segment, SynthesisJob, Voice
from tts.services.closing import Fenced, Work
from tts.states import BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS, LEASE_SECONDS

_ROWS: tuple[tuple[str, type[models.Model]], ...] = (
    ("attempt", Attempt),
    ("segment", Segment),
    ("job", SynthesisJob),
    ("voice", Voice),
)
_NOT_NEEDED = ("job.text",)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HandedOver:
    """What a slot was given next. `work` None: it could not be claimed any more, and its worker gives it up."""

    attempt_id: uuid.UUID
    work: Work | None


def claim_attempt(*, attempt_id: uuid.UUID) -> Work:
    """Take a bound attempt and start its lease. Raises Fenced when it is not waiting to be claimed.

    The caller calls `attempts.begin_job` once the engine is at work.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_columns()} FROM tts_claim(%s, %s) AS c",  # noqa: S608 - our models' columns
            [attempt_id, LEASE_SECONDS],
        )
        row = cursor.fetchone()
    if row is None:
        raise Fenced
    return _work(row)


def hand_over_claimed(*, device_id: int, slot_number: int, attempt_id: uuid.UUID) -> HandedOver | None:
    """Bind the next segment to a slot whose attempt has been spoken but is not settled yet, and claim it at once.

    None, and nothing changed, where nothing waits or the slot is not this attempt's any more.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT c.next_id, {_columns()}"  # noqa: S608 - our models' columns
            " FROM tts_hand_over_claimed(%s, %s, %s, %s, %s, %s) AS c",
            [device_id, slot_number, attempt_id, BIND_SECONDS, DEVICE_HEARTBEAT_SECONDS, LEASE_SECONDS],
        )
        next_id, *row = cursor.fetchone()
    if next_id is None:
        return None
    return HandedOver(next_id, None if row[0] is None else _work(row))


@functools.cache
def _fields() -> tuple[tuple[type[models.Model], tuple[tuple[str, str], ...]], ...]:
    """Each model with the attribute and the column of every field that is read."""
    return tuple(
        (
            model,
            tuple(
                (field.attname, f"(c.{row}).{field.column}")
                for field in model._meta.concrete_fields
                if not isinstance(field, models.JSONField) and f"{row}.{field.attname}" not in _NOT_NEEDED
            ),
        )
        for row, model in _ROWS
    )


@functools.cache
def _columns() -> str:
    return ", ".join(column for _, fields in _fields() for _, column in fields)


def _work(row: Sequence[Any]) -> Work:
    made: list[Any] = []
    at = 0
    for model, fields in _fields():
        names = [name for name, _ in fields]
        made.append(model.from_db(connection.alias, names, row[at : at + len(names)]))
        at += len(names)
    attempt, segment, job, voice = made
    # Whoever follows the relations finds the same rows.
    attempt.segment, attempt.job, segment.job = segment, job, job
    if segment.voice_id is None:
        job.voice = voice
    else:
        segment.voice = voice
    return Work(attempt=attempt, segment=segment, job=job, voice=voice)
