"""Telling a duplicate row from every other broken constraint."""

from __future__ import annotations

from django.db import IntegrityError
from psycopg.errors import UniqueViolation


def is_duplicate(error: IntegrityError) -> bool:
    """Whether a unique constraint refused the row: it was written before. Other refusals are faults of ours."""
    return isinstance(error.__cause__, UniqueViolation)
