"""`manage.py invoice`: close months that are over."""

from __future__ import annotations

import uuid
from datetime import date, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing.invoicing.numbers import number_text
from billing.periods import local_day
from billing.selectors.balances import time_zone_of
from billing.services.invoice_run import close_all, close_due_periods
from billing.services.invoices import close_month
from portal.lib.clock import database_now
from portal.lib.errors import DomainError


class Command(BaseCommand):
    help = "Make the invoices of months that are over: all that are due, or those of one month or workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", type=_workspace, help="only this workspace (its id)")
        parser.add_argument("--month", type=_month, help="this month, such as 2026-11; default: the last one")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace_id: uuid.UUID | None = options["workspace"]
        month: date | None = options["month"]
        if workspace_id is not None:
            self._close_one(workspace_id, month)
            return
        made = close_due_periods() if month is None else close_all(month=month, at=database_now())
        self.stdout.write(f"{made} invoices were made.")

    def _close_one(self, workspace_id: uuid.UUID, month: date | None) -> None:
        today = local_day(database_now(), time_zone_of(workspace_id))
        try:
            invoice = close_month(
                workspace_id=workspace_id, month=month or today.replace(day=1) - timedelta(days=1)
            )
        except DomainError as error:
            raise CommandError(error.text()) from error
        if invoice is None:
            self.stdout.write("There is nothing to bill.")
        else:
            self.stdout.write(f"{number_text(invoice.series, invoice.number)}: {invoice.pk}")


def _workspace(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise CommandError(f"{text} is no workspace's id") from error


def _month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError as error:
        raise CommandError(f"{text} is no month; write it as 2026-11") from error
