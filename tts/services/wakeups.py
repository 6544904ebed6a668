"""Telling those who watch a job that something changed. A hint only: watchers read the truth in PostgreSQL."""

from __future__ import annotations

import logging
import uuid

import redis

from portal.lib.queues import redis_connection

logger = logging.getLogger(__name__)
TTL_SECONDS = 3600
# A watcher only needs to know that there is something newer than it has seen.
MAX_HINTS = 8


def job_key(job_id: uuid.UUID) -> str:
    return f"job:{job_id}:changed"


def audio_key(attempt_id: uuid.UUID) -> str:
    return f"attempt:{attempt_id}:audio"


def cancel_key(job_id: uuid.UUID) -> str:
    return f"job:{job_id}:cancel"


def wake_job(*, job_id: uuid.UUID) -> None:
    """Wake the watchers of a job. Redis being away is not an error: they look again by themselves."""
    try:
        pipe = redis_connection().pipeline(transaction=False)
        pipe.xadd(job_key(job_id), {"changed": "1"}, maxlen=MAX_HINTS, approximate=False)
        pipe.expire(job_key(job_id), TTL_SECONDS)
        pipe.execute()
    except redis.RedisError as error:
        logger.warning("wake_failed", extra={"job_id": job_id, "error": type(error).__name__})


def flag_cancel(*, job_id: uuid.UUID) -> None:
    """Tell the worker of a running job to stop now rather than at its next look into the database."""
    try:
        redis_connection().set(cancel_key(job_id), b"1", ex=TTL_SECONDS)
    except redis.RedisError as error:
        logger.warning("cancel_flag_failed", extra={"job_id": job_id, "error": type(error).__name__})


def is_cancel_flagged(*, job_id: uuid.UUID) -> bool:
    try:
        return bool(redis_connection().exists(cancel_key(job_id)))
    except redis.RedisError:
        return False
