"""Connections of processes that serve no requests: Django looks after its own between two requests."""

from __future__ import annotations

from django.db import connections


def drop_broken_connections() -> None:
    """Close this thread's database connections that an error has left unusable; the next query opens a new one.

    Unlike `close_old_connections` it costs nothing while all is well: what works is kept, whatever its age.
    """
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred:
            connection.close_if_unusable_or_obsolete()
