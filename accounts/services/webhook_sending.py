"""Sending what waits in the outbox: many at once, none waiting for another.

The network is one thread's event loop; the database is asked by one thread beside it, so that a statement never holds
the sockets up and no connection is held per delivery.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from functools import partial
from typing import Any, Final, TypeVar

from django.db import connection

from accounts.models import WebhookDelivery
from accounts.services.webhook_deliveries import Claimed, claim_due, close_unwanted, record_outcome
from accounts.webhooks.outside import call_policy, signing_key, tls_context
from accounts.webhooks.secrets import secret_of, signed_headers
from portal.lib import clock
from portal.lib.outgoing.addresses import CallPolicy
from portal.lib.outgoing.posting import post

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")
AT_ONCE: Final = 64
# How soon what comes up while others are on their way is looked for.
LOOK_EVERY_S: Final = 0.5
USER_AGENT: Final = "VoicePool-Webhooks/1"


def deliver_due() -> int:
    """Send all that is due, and what becomes due meanwhile; returns how many tries were made. For the clock.

    Ends when nothing is due and nothing on its way any more: each try takes 15 s at most.
    """
    return asyncio.run(_Round(call_policy(), tls_context()).run())


def text_of(delivery: Claimed | WebhookDelivery) -> str:
    """What is sent: the same for every try."""
    happened_at = delivery.happened_at if isinstance(delivery, Claimed) else delivery.created_at
    moment = happened_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = {"type": delivery.event_type, "timestamp": moment, "data": delivery.data}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _close_connection() -> None:
    # Each thread has its own: looked up here, in the thread that asks.
    connection.close()


class _Round:
    def __init__(self, policy: CallPolicy, tls: ssl.SSLContext) -> None:
        self._policy = policy
        self._tls = tls
        self._database = ThreadPoolExecutor(max_workers=1, thread_name_prefix="webhooks-database")

    async def run(self) -> int:
        count = 0
        on_their_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                room = AT_ONCE - len(on_their_way)
                claimed = await self._ask(partial(claim_due, at_most=room)) if room else []
                on_their_way |= {asyncio.create_task(self._deliver(one)) for one in claimed}
                count += len(claimed)
                if not on_their_way:
                    return count
                _ended, on_their_way = await asyncio.wait(
                    on_their_way, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            await self._ask(_close_connection)
            self._database.shutdown(wait=False)

    async def _ask(self, question: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._database, question)

    async def _deliver(self, claimed: Claimed) -> None:
        try:
            if claimed.is_wanted:
                await self._send(claimed)
            else:
                await self._ask(partial(close_unwanted, claimed=claimed))
        except Exception:
            # Its lease runs out, and it is sent again: no other delivery has to suffer for it.
            logger.exception("webhook_delivery_broke", extra={"delivery": claimed.delivery_id})

    async def _send(self, claimed: Claimed) -> None:
        body = text_of(claimed)
        started_at = clock.now()
        secrets = [
            secret_of(key=signing_key(), endpoint_id=claimed.endpoint_id, secret_id=secret_id)
            for secret_id in claimed.secret_ids
        ]
        headers: dict[str, Any] = {
            "User-Agent": USER_AGENT,
            "Content-Type": "application/json",
            **signed_headers(delivery_id=claimed.delivery_id, at=started_at, body=body, secrets=secrets),
        }
        result = await post(
            claimed.url, body=body.encode(), headers=headers, policy=self._policy, tls=self._tls
        )
        await self._ask(partial(record_outcome, claimed=claimed, result=result, started_at=started_at))
        logger.info(
            "webhook_sent",
            extra={
                "delivery": claimed.delivery_id,
                "endpoint": claimed.endpoint_id,
                "attempt": claimed.attempt_number,
                "status": result.status,
                "error_code": result.error_code,
                "duration_ms": result.duration_ms,
            },
        )
