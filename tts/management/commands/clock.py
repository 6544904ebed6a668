"""`manage.py clock`: the sweep every second. Several may run; one leads."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string

from accounts.webhook_upkeep import WebhookUpkeep
from billing.upkeep import MoneyUpkeep
from portal.lib.side_thread import SideThread
from tts.services.preset_samples import ensure_preset_samples
from tts.services.spoken_labels import ensure_spoken_labels
from tts.services.sweep import sweep, sweep_thoroughly
from tts.services.telemetry import TelemetryUpkeep

logger = logging.getLogger(__name__)
TICK_S = 1.0
SAMPLES_EVERY_TICKS = 5
TASKS_EVERY_TICKS = 60
THOROUGHLY_EVERY_TICKS = 3_600
# PostgreSQL's advisory lock of the leading clock: "VPCL" in ASCII.
LEADER_LOCK = 0x5650434C


class Command(BaseCommand):
    help = "Run the sweep every second, until stopped. Several clocks may run: one leads, the others wait."
    requires_system_checks: list[str] = []
    # The database session that holds the leader's lock, while this clock leads.
    _leading_on: object | None = None
    _ticks = 0
    _telemetry = TelemetryUpkeep()
    _money = MoneyUpkeep()
    _webhooks = WebhookUpkeep()
    _tasks = SideThread("tasks")

    def handle(self, *args: Any, **options: Any) -> None:
        stop_requested = threading.Event()

        def stop(_signal: int, _frame: FrameType | None) -> None:
            stop_requested.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        while not stop_requested.wait(TICK_S):
            try:
                if self._leads():
                    sweep()
                    self._every_few_seconds()
            except DatabaseError as error:
                # The lock went with the connection; whoever connects first leads.
                logger.warning("clock_without_database", extra={"error": type(error).__name__})
                connection.close()
                self._leading_on = None
        connection.close()

    def _every_few_seconds(self) -> None:
        self._ticks += 1
        self._telemetry.tick()
        self._money.tick()
        self._webhooks.tick()
        if self._ticks % SAMPLES_EVERY_TICKS == 0:
            if settings.VOICEPOOL["PRESET_SAMPLES"]:
                ensure_preset_samples()
            ensure_spoken_labels()
        if self._ticks % TASKS_EVERY_TICKS == 1:
            # Mail servers and sums over all books take their time; what was lost is found every second all the same.
            self._tasks.start([import_string(task) for task in settings.CLOCK_TASKS])
        if self._ticks % THOROUGHLY_EVERY_TICKS == 1:
            sweep_thoroughly()

    def _leads(self) -> bool:
        """Whether this clock holds the leader's lock. Held by the session: it is free again when the process ends."""
        connection.ensure_connection()
        if self._leading_on is connection.connection:
            return True
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LEADER_LOCK])
            leads: bool = cursor.fetchone()[0]
        self._leading_on = connection.connection if leads else None
        # Whoever begins to lead begins with all that is done now and then: nobody may have for a long time.
        self._ticks = 0
        return leads
