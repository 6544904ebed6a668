"""The worker process of one slot: started when it is due, watched, and ended in peace or by force."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from django.conf import settings

from portal.lib.child_process import die_with_parent
from tts.models import Device, DeviceKind

logger = logging.getLogger(__name__)

# A worker that ends is started again after this long, doubled each time up to the maximum, back to the minimum
# once it has lived a minute.
BACKOFF_MIN_S = 0.5
BACKOFF_MAX_S = 60.0
HEALTHY_AFTER_S = 60.0
# How long a worker may finish what it is speaking when it has to go. What is not done then is lost by its lease and
# spoken elsewhere.
STOP_GRACE_S = 8.0


@dataclass
class SlotProcess:
    """A worker process and when to start it again. Used by the agent's main thread alone.

    The kernel ends a worker with the thread that started it (`die_with_parent`).
    """

    number: int
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    ended_at: float = 0.0
    backoff_s: float = BACKOFF_MIN_S
    start_at: float = field(default_factory=time.monotonic)
    # Told to go, so that its end is no accident: the next one starts at once.
    asked_to_end: bool = False
    kill_at: float | None = None

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process is not None else None

    def is_due(self, now: float) -> bool:
        return self.process is None and now >= self.start_at

    def start(self, device: Device, now: float, *, environment: Mapping[str, str] | None = None) -> None:
        """Start the worker for the device as it is stored now. `environment` is added to this process's own."""
        command = [
            sys.executable,
            str(Path(settings.BASE_DIR) / "manage.py"),
            "gpu_worker",
            f"--device-id={device.pk}",
            f"--slot={self.number}",
            f"--epoch={device.epoch}",
            f"--engine={device.engine}",
            f"--visible-device={device.name if device.kind == DeviceKind.GPU else ''}",
        ]
        # A group of its own: the terminal's Ctrl-C reaches the agent, which stops workers in order.
        self.process = subprocess.Popen(
            command,
            start_new_session=True,
            preexec_fn=die_with_parent(),
            env={**os.environ, **environment} if environment else None,
        )
        self.started_at = now
        self.asked_to_end, self.kill_at = False, None

    def take_end(self, now: float) -> int | None:
        """The worker's exit status if it has ended since the last call, and when to start the next one; else None."""
        if self.process is None:
            return None
        code = self.process.poll()
        if code is None:
            if self.kill_at is not None and now >= self.kill_at:
                self.kill()
            return None
        self.process, self.ended_at = None, now
        if self.asked_to_end or now - self.started_at > HEALTHY_AFTER_S:
            self.backoff_s = BACKOFF_MIN_S
        self.start_at = now if self.asked_to_end else now + self.backoff_s
        if not self.asked_to_end:
            self.backoff_s = min(BACKOFF_MAX_S, self.backoff_s * 2)
        return code

    def start_at_once(self, now: float) -> None:
        """Forget earlier failures: the next worker may start now."""
        self.start_at, self.backoff_s = now, BACKOFF_MIN_S

    def end_after_job(self, *, grace_s: float | None = None) -> None:
        """Have the worker finish what it speaks and go; `grace_s`: by force after so long. May be called again."""
        if self.process is None:
            return
        if not self.asked_to_end:
            # A second SIGTERM would end it in the middle of its job.
            self.asked_to_end = True
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
        if grace_s is not None and self.kill_at is None:
            self.kill_at = time.monotonic() + grace_s

    def kill(self) -> None:
        """End the worker's whole process group now; its engine process ends with it."""
        if self.process is None:
            return
        self.asked_to_end = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def memory_bytes(self) -> int:
        """Resident memory of the worker and its engine process, in bytes."""
        if self.process is None:
            return 0
        try:
            worker = psutil.Process(self.process.pid)
            family = [worker, *worker.children(recursive=True)]
            return sum(member.memory_info().rss for member in family)
        except psutil.Error:
            return 0
