"""The cache in Redis: JSON only, and never a reason to fail."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

Found = TypeVar("Found")


class JsonSerializer:
    """Values as JSON instead of Django's pickle: whoever can write to Redis must not run code on web hosts.

    Whole numbers stay bare, so that Redis can count with them. A tuple comes back as a list.
    """

    def dumps(self, value: Any) -> Any:
        return value if type(value) is int else json.dumps(value, allow_nan=False)

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


def remembered(key: str, *, seconds: int, find: Callable[[], Found]) -> Found:
    """What `find` found at most so many seconds ago, as JSON gives it back; found anew while Redis is away."""
    try:
        known: Found | None = cache.get(key)
    except RedisError:
        return find()
    if known is not None:
        return known
    found = find()
    with contextlib.suppress(RedisError):
        cache.set(key, found, seconds)
    return found
