"""The cache while Redis is away: every page looks into it, so nobody may wait for it."""

from __future__ import annotations

import pytest
import redis
from django.conf import LazySettings
from django.core.cache import caches


def test_a_cache_without_its_redis_fails_at_once(settings: LazySettings, broken_redis: list[int]) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": settings.REDIS_URL}}
    with pytest.raises(redis.RedisError):
        caches["default"].get("anything")
    # Tried once and once more at once: ten tries with pauses would hold a web thread for seconds.
    assert len(broken_redis) <= 2
