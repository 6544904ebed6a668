"""`manage.py gpu_worker`: one serial worker. Started by the agent, not by hand."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from tts.worker import SlotAddress, build_engine, serve_slot


class Command(BaseCommand):
    help = "Serve one slot of one device. The node's agent (gpu_node) starts this."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--device-id", type=int, required=True)
        parser.add_argument("--slot", type=int, required=True)
        parser.add_argument("--epoch", type=int, required=True)
        parser.add_argument("--engine", required=True)
        parser.add_argument("--visible-device", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        # The engine loads its model while this process connects: it is the slowest part of a start.
        engine = build_engine(engine=options["engine"], visible_device=options["visible_device"])
        engine.start()
        address = SlotAddress(
            device_id=options["device_id"], slot_number=options["slot"], epoch=options["epoch"]
        )
        code = serve_slot(
            address=address,
            engine=options["engine"],
            visible_device=options["visible_device"],
            started=engine,
        )
        sys.exit(code)
