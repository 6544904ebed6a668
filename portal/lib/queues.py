"""Redis and the RQ queues: one queue for each slot of a device. RQ is the wire, PostgreSQL is the truth."""

from __future__ import annotations

from functools import cache

import redis
from django.conf import settings
from redis.backoff import ExponentialBackoff
from redis.retry import Retry
from rq import Queue
from rq.serializers import JSONSerializer


@cache
def redis_connection() -> redis.Redis:
    """This process's connection pool. Replies are bytes; a lost connection is tried again for two seconds."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=3,
        socket_timeout=30,
        health_check_interval=30,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 5),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError],
    )


def slot_queue_name(*, device_id: int, slot_number: int) -> str:
    return f"device-{device_id}-slot-{slot_number}"


def slot_queue(*, device_id: int, slot_number: int) -> Queue:
    """The queue of one serial worker. JSON, never pickle: writing to Redis must not run code on GPU hosts."""
    name = slot_queue_name(device_id=device_id, slot_number=slot_number)
    return Queue(name, connection=redis_connection(), serializer=JSONSerializer)
