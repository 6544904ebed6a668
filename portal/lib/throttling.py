"""Rate limits in Redis (library `limits`): per workspace for callers who signed in, per address for others."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import redis
from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
from redis.backoff import NoBackoff
from redis.retry import Retry
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.lib.http import client_address

# This module is named in the REST framework's settings, which `rest_framework.views` reads while it loads.
if TYPE_CHECKING:
    from rest_framework.views import APIView

logger = logging.getLogger(__name__)


# A count that takes longer is not waited for: redis-py's own ten retries would add seconds to every request.
SOCKET_TIMEOUT_S = 0.5
WINDOW_S = 60


@cache
def limiter() -> MovingWindowRateLimiter:
    """Of things that are counted one by one: each is remembered with its time."""
    pool = redis.ConnectionPool.from_url(
        settings.REDIS_URL,
        socket_connect_timeout=SOCKET_TIMEOUT_S,
        socket_timeout=SOCKET_TIMEOUT_S,
        # Once more at once, for a connection that the server closed while it was idle.
        retry=Retry(NoBackoff(), 1),
    )
    return MovingWindowRateLimiter(
        RedisStorage(settings.REDIS_URL, connection_pool=pool, key_prefix="limits")
    )


def _sum_limiter() -> FixedWindowRateLimiter:
    """Of things that come in hundred thousands: a sum, which is forgotten a minute after its beginning."""
    return FixedWindowRateLimiter(limiter().storage)


@dataclass(frozen=True)
class LimitState:
    """How one limit stands after this request: `remaining` requests may follow, one more in `reset_s` seconds."""

    name: str
    limit: int
    remaining: int
    reset_s: int


def rate_limit_headers(request: Request) -> dict[str, str]:
    """RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11) of the limits that were counted."""
    states: list[LimitState] = getattr(request._request, "rate_limits", [])
    if not states:
        return {}
    return {
        "RateLimit-Policy": ", ".join(f'"{state.name}";q={state.limit};w={WINDOW_S}' for state in states),
        "RateLimit": ", ".join(f'"{state.name}";r={state.remaining};t={state.reset_s}' for state in states),
    }


def count_failure(*, scope: str, setting: str, address: str | None) -> bool:
    """Count a failed try from an address; False when it has had its tries for now. True while Redis is away."""
    return count_try(scope=scope, setting=setting, who=f"address:{address}")


def count_try(*, scope: str, setting: str, who: str) -> bool:
    """Count something that `who` does; False when they have done it often enough for now. True while Redis is away."""
    limit = RateLimitItemPerMinute(settings.VOICEPOOL[setting])
    try:
        allowed: bool = limiter().hit(limit, scope, who)
    except redis.RedisError:
        logger.warning("throttle_unavailable", extra={"scope": scope})
        return True
    return allowed


def seconds_until_room(*, scope: str, setting: str, who: str, amount: int) -> int:
    """Count so much of something that `who` does: 0, or in how many seconds there is room for it, and nothing was
    counted. What is more than the limit by itself needs all of it. 0 while Redis is away."""
    limit = RateLimitItemPerMinute(settings.VOICEPOOL[setting])
    cost = min(amount, limit.amount)
    try:
        sums = _sum_limiter()
        if sums.test(limit, scope, who, cost=cost) and sums.hit(limit, scope, who, cost=cost):
            return 0
        window = sums.get_window_stats(limit, scope, who)
    except redis.RedisError:
        logger.warning("throttle_unavailable", extra={"scope": scope})
        return 0
    return max(1, math.ceil(window.reset_time - time.time()))


class WorkspaceThrottle(BaseThrottle):
    """So many requests a minute for a workspace. Lets everybody through while Redis is away: credit bounds them."""

    scope = "requests"
    setting = "REQUESTS_PER_MINUTE"
    # The workspace's own limit, where its plan says one.
    own_limit = "requests_per_minute_limit"

    def __init__(self) -> None:
        self.wait_s: float | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        workspace = getattr(request, "workspace", None)
        own = getattr(workspace, self.own_limit, None) if self.own_limit else None
        limit = RateLimitItemPerMinute(settings.VOICEPOOL[self.setting] if own is None else own)
        who = f"workspace:{workspace.id}" if workspace else f"address:{client_address(request._request)}"
        try:
            allowed: bool = limiter().hit(limit, self.scope, who)
            window = limiter().get_window_stats(limit, self.scope, who)
        except redis.RedisError:
            logger.warning("throttle_unavailable", extra={"scope": self.scope})
            return True
        reset_s = max(1, math.ceil(window.reset_time - time.time()))
        if not allowed:
            self.wait_s = float(reset_s)
        state = LimitState(self.scope, limit.amount, max(0, window.remaining), reset_s)
        # On Django's request: the REST framework's own is made anew for each renderer.
        request._request.rate_limits = [*getattr(request._request, "rate_limits", []), state]  # type: ignore[attr-defined]
        return allowed

    def wait(self) -> float | None:
        return self.wait_s


class SubmitThrottle(WorkspaceThrottle):
    scope = "submits"
    setting = "SUBMITS_PER_MINUTE"
    own_limit = ""
