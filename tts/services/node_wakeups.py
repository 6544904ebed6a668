"""Telling a node's agent that there is something for it to do. A hint only: it looks every two seconds by itself."""

from __future__ import annotations

import logging

import redis

from portal.lib.queues import redis_connection

logger = logging.getLogger(__name__)
# A hint that nobody took is worthless after the agent's own look.
TTL_SECONDS = 10


def node_key(node_name: str) -> str:
    return f"node:{node_name}:wake"


def wake_node(*, node_name: str) -> None:
    """Have the node's agent look for commands at once. Redis being away is not an error."""
    try:
        pipe = redis_connection().pipeline(transaction=False)
        pipe.rpush(node_key(node_name), b"1")
        pipe.ltrim(node_key(node_name), -1, -1)
        pipe.expire(node_key(node_name), TTL_SECONDS)
        pipe.execute()
    except redis.RedisError as error:
        logger.warning("wake_failed", extra={"node": node_name, "error": type(error).__name__})


def wait_for_wake(*, node_name: str, timeout_s: int) -> bool:
    """Whether a hint came within the time. Blocks.

    Raises:
        redis.RedisError: Redis is away.
    """
    return redis_connection().blpop([node_key(node_name)], timeout=timeout_s) is not None
