"""/healthz: this process lives. /readyz: it can serve, and a device can speak."""

from __future__ import annotations

import contextlib
import logging

import redis
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from portal.lib.queues import redis_connection
from tts.selectors.devices import ready_device_count

logger = logging.getLogger(__name__)


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database and Redis answer and at least one device is ready; else 503 naming what is not."""
    checks = {"database": False, "redis": False, "device": False}
    with contextlib.suppress(DatabaseError):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        checks["database"] = True
        checks["device"] = ready_device_count() > 0
    with contextlib.suppress(redis.RedisError):
        checks["redis"] = bool(redis_connection().ping())
    ready = all(checks.values())
    response = JsonResponse(
        {"status": "ready" if ready else "not_ready", "checks": checks}, status=200 if ready else 503
    )
    if not ready:
        # A load balancer asks every second: the answer to its question is no fault of the portal's, as Django thinks.
        response._has_been_logged = True  # type: ignore[attr-defined]
        logger.info("not_ready", extra={"checks": checks})
    return response
