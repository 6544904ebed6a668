"""`manage.py gpu_node`: join this host to the pool."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from tts.node.agent import NodeAgent
from tts.node.settings import NodeSettings


class Command(BaseCommand):
    help = "Join this host's devices to the pool and keep a worker alive for each slot, until stopped."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        agent = NodeAgent(settings=NodeSettings.from_environment())

        def stop(_signal: int, _frame: FrameType | None) -> None:
            agent.stop_requested.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        agent.run()
