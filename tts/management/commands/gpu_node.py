"""`manage.py gpu_node`: join this host to the pool."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from tts.node.agent import NodeAgent
from tts.node.settings import NodeSettings


class Command(BaseCommand):
    help = "Join this host's devices to the pool and keep a worker alive for each slot, until stopped."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--remote",
            action="append",
            default=[],
            metavar="URL",
            help="a speech server with OpenAI's API, such as http://10.0.0.5:8880; may be given more than once",
        )
        parser.add_argument("--engine", default="", help="the engine that speaks through it (remote)")

    def handle(self, *args: Any, **options: Any) -> None:
        settings = NodeSettings.from_environment(remotes=options["remote"], remote_engine=options["engine"])
        agent = NodeAgent(settings=settings)

        def stop(_signal: int, _frame: FrameType | None) -> None:
            agent.stop_requested.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        agent.run()
