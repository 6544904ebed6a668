"""Transactions that join the caller's."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from django.db import connection, transaction


def joined() -> AbstractContextManager[object]:
    """The caller's transaction where there is one, else one of its own.

    Without the savepoint of a nested `atomic`: for code that changes nothing when it refuses, and on paths where two
    more statements count.
    """
    return contextlib.nullcontext() if connection.in_atomic_block else transaction.atomic()
