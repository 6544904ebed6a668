"""What must be there before the first visitor: tables, price, plan, preset voices, operator, demonstration account.

Safe to run again at every start: what is there stays as it is, also when a person has changed it since.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from allauth.account.models import EmailAddress
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.models import User, Workspace
from accounts.services.api_keys import create_api_key, find_active_key
from billing.services.plans import ensure_first_plan
from billing.services.prices import ensure_first_price
from portal.workflows import open_account, welcome
from tts.services.voices import ensure_preset_voices

DEMONSTRATION_KEY_NAME = "Demonstration"


class Command(BaseCommand):
    help = (
        "Make what must be there before the first visitor. Reads VOICEPOOL_OPERATOR_EMAIL and _PASSWORD and, "
        "for a demonstration customer, VOICEPOOL_DEMONSTRATION_EMAIL, _PASSWORD and _API_KEY (one it has)."
    )
    # Checks have their own command; at every start they would cost a good part of a second.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--part",
            choices=["everything", "tables", "accounts"],
            default="everything",
            help="tables: migrations, price, plan and preset voices; accounts: operator and customer",
        )
        parser.add_argument(
            "--wait-for-input",
            action="store_true",
            help="load everything, then wait for a line on standard input before using the database",
        )
        parser.add_argument(
            "--then",
            metavar="COMMAND",
            default="",
            help="go on as this management command, which saves it loading everything once more",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # Loaded before the wait, so that it costs no time after it.
        then = (
            load_command_class(get_commands()[options["then"]], options["then"]) if options["then"] else None
        )
        if options["wait_for_input"] and not sys.stdin.readline():
            raise CommandError("Standard input ended: whoever started this is gone.")
        new_key = None
        if options["part"] != "accounts":
            self._make_tables()
        if options["part"] != "tables":
            new_key = make_accounts(os.environ)
        # One line, so that whoever reads it knows that everything is there.
        self.stdout.write(json.dumps({"demonstration_api_key": new_key}))
        self.stdout.flush()
        if then is not None:
            # Nobody reads on after the line.
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            call_command(then)

    def _make_tables(self) -> None:
        # Standard output is for the answer alone.
        call_command("migrate", interactive=False, stdout=sys.stderr, skip_checks=True)
        ensure_first_price()
        ensure_first_plan()
        ensure_preset_voices()


def make_accounts(environment: Mapping[str, str]) -> str | None:
    """Make the accounts that the environment names; return the customer's API key when a new one was made."""
    ensure_account(
        email=environment["VOICEPOOL_OPERATOR_EMAIL"],
        password=environment["VOICEPOOL_OPERATOR_PASSWORD"],
        is_operator=True,
    )
    if not environment.get("VOICEPOOL_DEMONSTRATION_EMAIL"):
        return None
    return ensure_customer(
        email=environment["VOICEPOOL_DEMONSTRATION_EMAIL"],
        password=environment["VOICEPOOL_DEMONSTRATION_PASSWORD"],
        known_key=environment.get("VOICEPOOL_DEMONSTRATION_API_KEY", ""),
    )


def ensure_customer(*, email: str, password: str, known_key: str) -> str | None:
    """Make a customer with an API key where there is none; return the key when a new one was made."""
    user, workspace = ensure_account(email=email, password=password, is_operator=False)
    row = find_active_key(known_key) if known_key else None
    if row is not None and row.workspace_id == workspace.pk:
        return None
    _, key = create_api_key(workspace=workspace, user=user, name=DEMONSTRATION_KEY_NAME)
    return key


@transaction.atomic
def ensure_account(*, email: str, password: str, is_operator: bool) -> tuple[User, Workspace]:
    """Return an account with verified address and welcome credit. An existing one keeps its password."""
    user = User.objects.filter(email=email.lower()).first()
    if user is None:
        create = User.objects.create_superuser if is_operator else User.objects.create_user
        user = create(email, password)
    EmailAddress.objects.get_or_create(
        user=user, email=user.email, defaults={"verified": True, "primary": True}
    )
    workspace = open_account(user=user)
    welcome(user=user)
    return user, workspace
