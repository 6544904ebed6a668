"""`manage.py reconcile [--day 2026-11-30]`: whether the books add up, in one screen."""

from __future__ import annotations

import sys
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.reconciliation.checks import Outcome
from portal.books import reconcile_books
from tts.selectors.device_time import device_times

SHOWN = 3
DEVICES_SHOWN = 10


class Command(BaseCommand):
    help = "Check that every total in the books is the sum of what it is made of. Changes nothing of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--day", default="", help="a day of UTC, such as 2026-11-30; without: everything")

    def handle(self, *args: Any, **options: Any) -> None:
        day = _day(options["day"])
        run = reconcile_books(day=day, tell=self._tell)
        self._tell_devices(day)
        over = f"{day}" if day else "everything"
        if run.differences:
            self.stdout.write(f"{run.differences} differences over {over}; see Money in the console.")
            sys.exit(1)
        self.stdout.write(f"The books add up over {over}.")

    def _tell(self, outcome: Outcome) -> None:
        mark = "differs" if outcome.differing else "ok"
        self.stdout.write(f"{mark:8} {outcome.looked_at:>10,}  {outcome.check.title}")
        for difference in outcome.differences[:SHOWN]:
            self.stdout.write(
                f"{'':21}{difference.subject}: {difference.expected:,} expected, {difference.actual:,} found"
            )
        if outcome.differing > SHOWN:
            self.stdout.write(f"{'':21}and {outcome.differing - SHOWN:,} more")

    def _tell_devices(self, day: date | None) -> None:
        devices = device_times(day=day)
        for device in devices[:DEVICES_SHOWN]:
            self.stdout.write(
                f"{'':8} {device.up_ms:>10,} ms up = {device.billed_ms:,} billed + {device.unbilled_ms:,} unbilled"
                f" + {device.overhead_ms:,} around them + {device.canary_ms:,} test sentences"
                f" + {device.idle_ms:,} idle  {device.device_name}"
            )
        if len(devices) > DEVICES_SHOWN:
            self.stdout.write(f"{'':8} and {len(devices) - DEVICES_SHOWN} devices more")


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no day; write it as 2026-11-30.") from error
