"""What the customers were told: the checker holds the pool to it."""

from __future__ import annotations

import random
import threading
import uuid
from dataclasses import dataclass, field

WORDS = (
    "river", "paper", "morning", "window", "quiet", "garden", "letter", "seven", "harbour", "music", "winter",
    "orange", "station", "yellow", "silver", "travel", "market", "cloud", "mountain", "bridge", "copper", "reading",
)  # fmt: skip


@dataclass(frozen=True)
class Heard:
    """What a listener had got of a job's live audio, header included; `whole`: up to the stream's own end."""

    job_id: uuid.UUID
    content: bytes
    whole: bool


@dataclass
class History:
    """Promises made by the pool. Every thread writes to it."""

    accepted: dict[str, uuid.UUID] = field(default_factory=dict)
    """Which job an idempotency key got."""
    canceled: set[uuid.UUID] = field(default_factory=set)
    deleted: set[uuid.UUID] = field(default_factory=set)
    heard: list[Heard] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)
    """A key that got two different jobs, an answer that nobody should get."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, key: str, job_id: uuid.UUID) -> None:
        """The pool has taken a job in under this key."""
        with self.lock:
            earlier = self.accepted.setdefault(key, job_id)
        if earlier != job_id:
            self.note(f"key {key} got job {earlier} and job {job_id}")

    def note(self, contradiction: str) -> None:
        with self.lock:
            self.contradictions.append(contradiction)


def sentence(rng: random.Random) -> str:
    """An English sentence of four to nine words."""
    return " ".join(rng.choices(WORDS, k=rng.randint(4, 9))).capitalize() + "."


def book(rng: random.Random) -> str:
    """Two to four paragraphs, long enough for several segments."""
    paragraphs = (" ".join(sentence(rng) for _ in range(rng.randint(4, 9))) for _ in range(rng.randint(2, 4)))
    return "\n".join(paragraphs)
