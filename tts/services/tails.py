"""Following streams of Redis from many threads: one thread of the process reads for all, over one connection.

Fifty threads that each wait at Redis are each woken by a chunk, and each of them reads and parses it: while they take
turns at the interpreter nobody hears anything. So one of them does, and hands the same bytes to all.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import redis

from portal.lib.queues import redis_connection

logger = logging.getLogger(__name__)

Entry = tuple[bytes, dict[bytes, bytes]]

BEGINNING: Final = b"0-0"
LOOK_AGAIN_S: Final = 1.0
ENTRIES_AT_ONCE: Final = 64
# Nobody waits for a follower that does not keep up, and its chunks do not pile up: it reads them again itself.
WAITING_AT_MOST: Final = 64
BELL_TTL_S: Final = 60


class Tail:
    """What one thread follows of a stream: every entry once, in order. Made by `Tails.follow`."""

    def __init__(self, tails: Tails, key: str, after: bytes) -> None:
        self.key = key
        self.seen = after
        # None: the reader has let go of this follower.
        self.waiting: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        # What another follower of the same stream has had before this one came.
        self.backlog: list[Entry] = []
        self._tails = tails

    def wait(self, timeout_s: float = LOOK_AGAIN_S) -> list[Entry]:
        """What came since the last call, waiting so long for it; empty where nothing came, or Redis is away."""
        if self.backlog:
            backlog, self.backlog = self.backlog, []
            self.seen = backlog[-1][0]
            return backlog
        try:
            found = self.waiting.get(timeout=timeout_s)
        except queue.Empty:
            self._tails.keep_reading()
            return []
        entries: list[Entry] = []
        while found is not None:
            entries.append(found)
            self.seen = found[0]
            try:
                found = self.waiting.get_nowait()
            except queue.Empty:
                return entries
        self._tails.join(self)
        return entries

    def close(self) -> None:
        """Follow it no more. May be called twice."""
        self._tails.leave(self)


class _Stream:
    def __init__(self, position: bytes) -> None:
        self.position = position
        self.followers: list[Tail] = []


class Tails:
    """All that this process follows. The reading thread lives while there is something to follow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[str, _Stream] = {}
        self._thread: threading.Thread | None = None
        # By this stream the reader is told, while it waits, that there is something new to follow.
        self._bell_key = f"tails:{uuid.uuid4().hex}"
        self._bell_seen = BEGINNING

    @contextmanager
    def follow(self, key: str, *, after: bytes = BEGINNING) -> Iterator[Tail]:
        """Follow the stream behind the entry `after`."""
        tail = Tail(self, key, after)
        self.join(tail)
        try:
            yield tail
        finally:
            tail.close()

    def join(self, tail: Tail) -> None:
        """Have what stands behind `tail.seen` handed to it: what the reader has passed by now, and what comes."""
        with self._lock:
            stream = self._streams.get(tail.key)
            is_new = stream is None
            if stream is None:
                stream = self._streams[tail.key] = _Stream(tail.seen)
            stream.followers.append(tail)
            position = stream.position
            is_started = self._start()
        if is_new and not is_started:
            self._ring()
        tail.backlog = self._between(tail.key, tail.seen, position)

    def leave(self, tail: Tail) -> None:
        """Hand it nothing more."""
        with self._lock:
            stream = self._streams.get(tail.key)
            if stream is None or tail not in stream.followers:
                return
            stream.followers.remove(tail)
            if not stream.followers:
                del self._streams[tail.key]

    def keep_reading(self) -> None:
        """Start the reading thread again where it broke."""
        with self._lock:
            if self._streams:
                self._start()

    def last_of(self, key: str) -> bytes:
        """The newest entry of a stream; its beginning where there is none, or no Redis."""
        try:
            newest = cast("list[Entry]", redis_connection().xrevrange(key, count=1))
        except redis.RedisError:
            return BEGINNING
        return newest[0][0] if newest else BEGINNING

    def _between(self, key: str, after: bytes, until: bytes) -> list[Entry]:
        if _number(until) <= _number(after):
            return []
        try:
            return cast("list[Entry]", redis_connection().xrange(key, b"(" + after, until))
        except redis.RedisError as error:
            logger.warning("follow_without_redis", extra={"error": type(error).__name__})
            return []

    def _start(self) -> bool:
        """Under the lock: whether the thread had to be started."""
        if self._thread is not None:
            return False
        self._thread = threading.Thread(target=self._read, name="tails", daemon=True)
        self._thread.start()
        return True

    def _ring(self) -> None:
        try:
            pipe = redis_connection().pipeline(transaction=False)
            pipe.xadd(self._bell_key, {"new": "1"}, maxlen=1, approximate=False)
            pipe.expire(self._bell_key, BELL_TTL_S)
            pipe.execute()
        except redis.RedisError as error:
            logger.warning("follow_without_redis", extra={"error": type(error).__name__})

    def _read(self) -> None:
        """Body of the thread."""
        try:
            while (positions := self._positions()) is not None:
                try:
                    reply = redis_connection().xread(
                        cast(Any, positions), block=round(LOOK_AGAIN_S * 1000), count=ENTRIES_AT_ONCE
                    )
                except redis.RedisError as error:
                    logger.warning("follow_without_redis", extra={"error": type(error).__name__})
                    time.sleep(LOOK_AGAIN_S)
                    continue
                self._hand_out(cast("list[tuple[bytes, list[Entry]]]", reply))
        except BaseException:
            with self._lock:
                self._thread = None
            raise

    def _positions(self) -> dict[str, bytes] | None:
        with self._lock:
            if not self._streams:
                self._thread = None
                return None
            positions = {key: stream.position for key, stream in self._streams.items()}
            return {self._bell_key: self._bell_seen, **positions}

    def _hand_out(self, reply: list[tuple[bytes, list[Entry]]]) -> None:
        with self._lock:
            for name, entries in reply:
                key = name.decode()
                if key == self._bell_key:
                    self._bell_seen = entries[-1][0]
                elif (stream := self._streams.get(key)) is not None:
                    # It may be another one by now than the one that was asked for: nothing twice.
                    fresh = [each for each in entries if _number(each[0]) > _number(stream.position)]
                    stream.position = entries[-1][0] if fresh else stream.position
                    self._hand_to(stream, fresh)
                    if not stream.followers:
                        del self._streams[key]

    def _hand_to(self, stream: _Stream, entries: list[Entry]) -> None:
        for tail in list(stream.followers):
            if tail.waiting.qsize() + len(entries) > WAITING_AT_MOST and not tail.waiting.empty():
                stream.followers.remove(tail)
                tail.waiting.put(None)
                continue
            for entry in entries:
                tail.waiting.put(entry)


def _number(entry_id: bytes) -> tuple[int, int]:
    milliseconds, _, sequence = entry_id.partition(b"-")
    return int(milliseconds), int(sequence or 0)


TAILS: Final = Tails()
