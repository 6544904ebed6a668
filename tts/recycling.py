"""When an engine process is due to be replaced by a fresh one although nothing is wrong with it yet.

Long-lived processes of models leak and fragment memory. Pure: times and figures come from the caller.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

# Growth of memory over the warm baseline by more than this part of it, or by the bytes that are set, whichever is
# more, on three looks while nothing is spoken.
MEMORY_GROWTH_SHARE = 0.15
MEMORY_GROWTH_BYTES = 1_500_000_000
HIGH_LOOKS = 3
# Engines that started together must not all be due together.
JITTER = 0.2


@dataclass(frozen=True)
class Window:
    """A time of the day, on the server's clock; may go over midnight."""

    starts: time
    ends: time

    @classmethod
    def parse(cls, text: str) -> Window | None:
        """The window that "03:00-04:00" means; None for "". Raises ValueError for anything else."""
        if not text:
            return None
        starts, _, ends = text.partition("-")
        window = cls(time.fromisoformat(starts.strip()), time.fromisoformat(ends.strip()))
        if window.starts == window.ends:
            raise ValueError("a window that ends when it starts")
        return window

    def opened_at(self, now: datetime) -> datetime | None:
        """When the window that is open at `now` opened; None while it is closed."""
        opened = now.replace(
            hour=self.starts.hour, minute=self.starts.minute, second=self.starts.second, microsecond=0
        )
        if opened > now:
            opened -= timedelta(days=1)
        length = (
            datetime.combine(opened.date(), self.ends) - datetime.combine(opened.date(), self.starts)
        ) % timedelta(days=1)
        return opened if now < opened + length else None


@dataclass(frozen=True)
class Limits:
    """After how much work, time and growth an engine is replaced. Zero segments or seconds: never for that reason."""

    segments: int
    age_s: float
    memory_growth_bytes: int
    window: Window | None

    @classmethod
    def from_environment(cls) -> Limits:
        """The operator's settings, moved by up to a fifth either way; drawn anew for every engine process."""

        def moved(value: float) -> float:
            return value * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - spreads load, keeps no secret

        segments = int(os.environ.get("VOICEPOOL_RECYCLE_AFTER_SEGMENTS", "2000"))
        growth = os.environ.get("VOICEPOOL_RECYCLE_MEMORY_GROWTH_BYTES", "")
        return cls(
            segments=max(1, round(moved(segments))) if segments else 0,
            age_s=moved(3600 * float(os.environ.get("VOICEPOOL_RECYCLE_AFTER_HOURS", "24"))),
            memory_growth_bytes=int(growth or MEMORY_GROWTH_BYTES),
            window=Window.parse(os.environ.get("VOICEPOOL_RECYCLE_WINDOW", "")),
        )


@dataclass
class EngineAge:
    """What one engine process has behind it."""

    limits: Limits
    started_at: datetime
    segments: int = 0
    baseline: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    high_looks: int = 0

    def look(self, stats: dict[str, object]) -> None:
        """Note what the idle engine says to hold of memory. The first look, warm, is the baseline."""
        self.held = {
            name: value
            for name in ("memory_bytes", "device_memory_bytes")
            if isinstance(value := stats.get(name), int)
        }
        if not self.baseline:
            self.baseline = dict(self.held)
        self.high_looks = self.high_looks + 1 if self._has_grown() else 0

    def due(self, now: datetime) -> str:
        """Why the engine is to be replaced now; "" while it is not. `now` is on the server's clock."""
        age_s = (now - self.started_at).total_seconds()
        opened_at = self.limits.window.opened_at(now) if self.limits.window else None
        if self.limits.segments and self.segments >= self.limits.segments:
            return f"{self.segments} segments"
        if self.limits.age_s and age_s >= self.limits.age_s:
            return f"{age_s / 3600:.1f} hours"
        if self.high_looks >= HIGH_LOOKS:
            return "memory growth"
        if opened_at is not None and self.started_at < opened_at:
            return "nightly window"
        return ""

    def memory_text(self) -> str:
        """What it holds and held when warm, for operators."""
        parts = [
            f"{name.removesuffix('_bytes')} {value / 1e6:.0f} MB, {self.baseline.get(name, 0) / 1e6:.0f} MB when warm"
            for name, value in self.held.items()
        ]
        return "; ".join(parts)

    def _has_grown(self) -> bool:
        return any(
            value - warm > max(MEMORY_GROWTH_SHARE * warm, self.limits.memory_growth_bytes)
            for name, value in self.held.items()
            if (warm := self.baseline.get(name)) is not None
        )
