"""Long jobs are put together beside the work that ended them: to copy hours of speech takes longer than a device, the
sweep or a request may be kept waiting."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.db import connection

logger = logging.getLogger(__name__)
# Ten minutes of speech are a file of 29 MB, which is copied while one breathes.
ASIDE_FROM_MS: Final = 10 * 60_000
# So long the process that ended a job has for it; then it has died, and the sweep's process does it. A file of the
# longest job (18 hours, 3 GB) takes a minute on a slow disk.
ASIDE_WITHIN: Final = timedelta(minutes=10)

_lock = threading.Lock()
_at_work: dict[uuid.UUID, threading.Thread] = {}


def is_long(audio_ms: int) -> bool:
    """Whether a job of so much speech is put together aside."""
    return audio_ms >= ASIDE_FROM_MS


def put_aside(job_id: uuid.UUID, task: Callable[[], object]) -> bool:
    """Run the task in a thread of its own and return at once; False when this process is at work on the job already.

    A daemon: a process that has to end does not wait for it, and what it leaves undone is the sweep's.
    """
    with _lock:
        if job_id in _at_work:
            return False
        thread = threading.Thread(
            target=_run, args=[job_id, task], daemon=True, name=f"put-together-{job_id}"
        )
        _at_work[job_id] = thread
        thread.start()
    return True


def wait_for_aside(job_id: uuid.UUID, timeout_s: float) -> bool:
    """Wait for the work on a job in this process; whether it has ended."""
    with _lock:
        thread = _at_work.get(job_id)
    if thread is not None:
        thread.join(timeout_s)
    return thread is None or not thread.is_alive()


def _run(job_id: uuid.UUID, task: Callable[[], object]) -> None:
    try:
        task()
    except Exception as error:
        # Storage or database: the job stays as it was, and the sweep tries again.
        logger.error("job_not_put_together", extra={"job_id": job_id, "error": type(error).__name__})
    finally:
        connection.close()
        with _lock:
            _at_work.pop(job_id, None)
