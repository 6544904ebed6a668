"""`manage.py reconcile [--day 2026-11-30]`: whether the books add up, in one screen."""

from __future__ import annotations

import sys
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.reconciliation.checks import Outcome
from portal.books import reconcile_books

SHOWN = 3


class Command(BaseCommand):
    help = "Check that every total in the books is the sum of what it is made of. Changes nothing of it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--day", default="", help="a day of UTC, such as 2026-11-30; without: everything")

    def handle(self, *args: Any, **options: Any) -> None:
        day = _day(options["day"])
        run = reconcile_books(day=day, tell=self._tell)
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


def _day(text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"{text!r} is no day; write it as 2026-11-30.") from error
