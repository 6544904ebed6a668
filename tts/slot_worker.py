"""The RQ worker of one device slot: the wire's end. What it carries is spoken by tts.worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis
from django.conf import settings
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from portal.lib.queues import slot_queue

# RQ blocks on its queue for 15 s less than this, then looks for signals and renews its record.
WORKER_TTL_S = 60


@dataclass(frozen=True)
class SlotAddress:
    """Which slot a worker serves, and in which incarnation of its device."""

    device_id: int
    slot_number: int
    epoch: int


class SlotWorker(SimpleWorker):
    """RQ's in-process worker on exactly one queue. RQ's own records are not our truth: nothing is kept of a job."""

    def __init__(self, *, address: SlotAddress, name: str, on_stop: Callable[[], None]) -> None:
        """`on_stop` is called in the handler of the signal that asks the worker to end after its job."""
        queue = slot_queue(device_id=address.device_id, slot_number=address.slot_number)
        super().__init__(
            [queue],
            name=name,
            # A connection of its own: RQ lengthens the socket timeout of the one that it blocks on.
            connection=redis.Redis.from_url(settings.REDIS_URL),
            serializer=JSONSerializer,
            worker_ttl=WORKER_TTL_S,
            log_job_description=False,
        )
        self._on_stop = on_stop

    def handle_warm_shutdown_request(self) -> None:
        self._on_stop()
        super().handle_warm_shutdown_request()  # type: ignore[no-untyped-call]
