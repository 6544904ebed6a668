"""The one way to the functions of the database that move money: each writes a transaction whose entries sum to zero,
and the cached balance beside it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from billing.models import CreditAccount


class BalanceTooLow(Exception):
    """The conditional update found less than was asked for. Nothing was changed."""


class AlreadyPosted(Exception):
    """A transaction with this idempotency key exists. Nothing was changed."""


def ensure_account(*, workspace_id: uuid.UUID) -> None:
    """Make the workspace's credit account when there is none."""
    CreditAccount.objects.bulk_create([CreditAccount(workspace_id=workspace_id)], ignore_conflicts=True)


def call(function: str, arguments: Sequence[uuid.UUID | str | int | bool | datetime | None]) -> str:
    """The outcome of one of the database's functions that move money: "posted", or why nothing was changed."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}", arguments)
        outcome: str = cursor.fetchone()[0]
    return outcome
