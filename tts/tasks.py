"""What RQ calls, by this dotted path: it is an interface, so do not move it."""

from __future__ import annotations

import uuid


def speak_attempt(attempt_id: str) -> None:
    """Speak one attempt in this worker's engine process. Carries an id only: the rest is read from PostgreSQL."""
    from tts.worker import current_runner

    current_runner().run(uuid.UUID(attempt_id))
