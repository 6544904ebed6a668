"""Rate limits in Redis (library `limits`): per workspace for callers who signed in, per address for others."""

from __future__ import annotations

import logging
import time
from functools import cache

import redis
from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from portal.lib.http import client_address

logger = logging.getLogger(__name__)


@cache
def limiter() -> MovingWindowRateLimiter:
    return MovingWindowRateLimiter(RedisStorage(settings.REDIS_URL, key_prefix="limits"))


class WorkspaceThrottle(BaseThrottle):
    """So many requests a minute for a workspace. Lets everybody through while Redis is away: credit still bounds the damage."""

    scope = "requests"
    setting = "REQUESTS_PER_MINUTE"

    def __init__(self) -> None:
        self.wait_s: float | None = None

    def allow_request(self, request: Request, view: APIView) -> bool:
        limit = RateLimitItemPerMinute(settings.VOICEPOOL[self.setting])
        workspace = getattr(request, "workspace", None)
        who = f"workspace:{workspace.id}" if workspace else f"address:{client_address(request._request)}"
        try:
            allowed: bool = limiter().hit(limit, self.scope, who)
            if not allowed:
                reset_at = limiter().get_window_stats(limit, self.scope, who).reset_time
                self.wait_s = max(1.0, reset_at - time.time())
        except redis.RedisError:
            logger.warning("throttle_unavailable", extra={"scope": self.scope})
            return True
        return allowed

    def wait(self) -> float | None:
        return self.wait_s


class SubmitThrottle(WorkspaceThrottle):
    scope = "submits"
    setting = "SUBMITS_PER_MINUTE"
