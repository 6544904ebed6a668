"""The cache: JSON in Redis, and nobody waits for it while Redis is away."""

from __future__ import annotations

import pickle
import uuid

import pytest
import redis
from django.conf import LazySettings
from django.core.cache import cache, caches

from portal.lib.cache import remembered
from portal.lib.queues import redis_connection


def test_a_cache_without_its_redis_fails_at_once(settings: LazySettings, broken_redis: list[int]) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": settings.REDIS_URL}}
    with pytest.raises(redis.RedisError):
        caches["default"].get("anything")
    # Tried once and once more at once: ten tries with pauses would hold a web thread for seconds.
    assert len(broken_redis) <= 2


@pytest.fixture
def key() -> str:
    return f"test-{uuid.uuid4()}"


@pytest.mark.parametrize("value", [0, 7, -3, 1.5, True, False, "声池", "", [1, "two", None], {"a": [1.5]}])
def test_plain_values_come_back_as_they_were(key: str, value: object) -> None:
    cache.set(key, value, 30)
    found = cache.get(key)
    assert found == value
    assert type(found) is type(value)


def test_whole_numbers_are_counted_by_redis(key: str) -> None:
    cache.set(key, 5, 30)
    assert cache.incr(key, 2) == 7
    assert cache.get(key) == 7


def test_nothing_is_kept_that_could_run_code(key: str) -> None:
    with pytest.raises(TypeError):
        cache.set(key, object(), 30)
    assert cache.get(key) is None
    # What somebody else put there in Django's own format is not loaded.
    redis_connection().set(cache.make_key(key), pickle.dumps("payload"))
    with pytest.raises(ValueError, match=r"utf|JSON|codec|Expecting"):
        cache.get(key)


def test_what_was_found_is_remembered(key: str) -> None:
    answers = iter(["first", "second"])
    assert remembered(key, seconds=30, find=lambda: next(answers)) == "first"
    assert remembered(key, seconds=30, find=lambda: next(answers)) == "first"
    cache.delete(key)
    assert remembered(key, seconds=30, find=lambda: next(answers)) == "second"


def test_without_redis_it_is_found_each_time(
    settings: LazySettings, broken_redis: list[int], key: str
) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": settings.REDIS_URL}}
    answers = iter(["first", "second"])
    assert remembered(key, seconds=30, find=lambda: next(answers)) == "first"
    assert remembered(key, seconds=30, find=lambda: next(answers)) == "second"
