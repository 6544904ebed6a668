"""What RQ calls, by this dotted path: it is an interface, so do not move it."""

from __future__ import annotations

import uuid


def speak_attempt(attempt_id: str) -> None:
    """Speak one attempt in this worker's engine process. Carries an id only: the rest is read from PostgreSQL."""
    from django.db import close_old_connections

    from tts.worker import current_runner

    # As at the beginning of a request: a connection that was lost since the last attempt is not used again.
    close_old_connections()
    current_runner().run(uuid.UUID(attempt_id))
