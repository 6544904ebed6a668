"""`manage.py gpu_worker`: one serial worker. Started by the agent, not by hand."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from tts.slot_engine import add_engine_arguments, take_early
from tts.slot_worker import SlotAddress
from tts.worker import serve_slot


class Command(BaseCommand):
    help = "Serve one slot of one device. The node's agent (gpu_node) starts this."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--device-id", type=int, required=True)
        parser.add_argument("--slot", type=int, required=True)
        parser.add_argument("--epoch", type=int, required=True)
        add_engine_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        address = SlotAddress(
            device_id=options["device_id"], slot_number=options["slot"], epoch=options["epoch"]
        )
        code = serve_slot(
            address=address,
            engine=options["engine"],
            visible_device=options["visible_device"],
            # manage.py has started it: it loads its model meanwhile.
            started=take_early(),
        )
        sys.exit(code)
