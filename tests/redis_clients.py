"""The process's remembered clients of Redis, for tests that point the settings at another one."""

from __future__ import annotations

from typing import Any

from portal.lib import queues, throttling


def forget_redis_clients() -> None:
    """Close them, so that no socket is left for the collector of garbage, and have the next ones made anew."""
    if queues.redis_connection.cache_info().currsize:
        queues.redis_connection().connection_pool.disconnect()
        queues.redis_connection.cache_clear()
    if throttling.limiter.cache_info().currsize:
        storage: Any = throttling.limiter().storage
        storage.storage.connection_pool.disconnect()
        throttling.limiter.cache_clear()
