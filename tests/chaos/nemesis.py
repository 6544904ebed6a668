"""The one who kills: seeded, and bounded in what it does and how often. Ends only what this run has started."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

import psutil
from django.db import DatabaseError, connection
from psycopg_pool import PoolTimeout

from portal.lib.queues import redis_connection
from tests.chaos.databases import Databases
from tests.chaos.stack import Stack
from tts.models import Device
from tts.services.health import release_device
from tts.states import DeviceState

# Between two acts: what was killed last must have a chance to come back, or only starts would be tested.
LEAST_GAP_S = 1.2
# Shorter and longer than a lease of ten seconds.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 14.0
RELEASE_EVERY_S = 5.0
KILLED = {"engine": 40, "worker": 24, "stop": 22, "agent": 6, "clock": 5, "web": 3}


@dataclass(frozen=True)
class Plan:
    """How much of everything, for so many jobs."""

    jobs: int
    seconds: float
    seed: int

    @property
    def kills(self) -> int:
        return math.ceil(self.jobs / 10)

    @property
    def redis_losses(self) -> int:
        return math.ceil(self.jobs / 100)

    @property
    def postgres_kills(self) -> int:
        return math.ceil(self.jobs * 3 / 1000)

    @property
    def drops(self) -> int:
        return math.ceil(self.jobs / 100)

    @property
    def gap_s(self) -> float:
        acts = self.kills + self.redis_losses + self.postgres_kills + self.drops
        return max(LEAST_GAP_S, self.seconds / acts)

    def acts(self, rng: random.Random) -> list[str]:
        """Every act in the order in which they are done."""
        kinds = list(KILLED)
        acts = rng.choices(kinds, weights=list(KILLED.values()), k=self.kills)
        acts += ["empty redis" if number % 2 else "kill redis" for number in range(self.redis_losses)]
        acts += [
            "kill backend" if number % 3 == 1 else "kill postgres" for number in range(self.postgres_kills)
        ]
        acts += ["drop connections"] * self.drops
        rng.shuffle(acts)
        return acts


@dataclass(order=True)
class _Paused:
    until: float
    number: int
    process: psutil.Process = field(compare=False)


class Nemesis:
    """Does its acts one by one as `tick` is called; `done` counts them."""

    def __init__(self, plan: Plan, *, stack: Stack, databases: Databases) -> None:
        self.done: Counter[str] = Counter()
        self._plan = plan
        self._stack = stack
        self._databases = databases
        self._rng = random.Random(f"{plan.seed} nemesis")
        self._acts = plan.acts(self._rng)[::-1]
        self._paused: list[_Paused] = []
        self._count = itertools.count()
        self._next_at = time.monotonic() + plan.gap_s
        self._release_at = 0.0

    @property
    def finished(self) -> bool:
        return not self._acts and not self._paused

    @property
    def kills(self) -> int:
        """How many processes of the pool were killed or stopped."""
        return sum(self.done[kind] for kind in KILLED)

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        while self._paused and self._paused[0].until <= now:
            self._continue(heapq.heappop(self._paused))
        if now >= self._release_at:
            self._release_at = now + RELEASE_EVERY_S
            self._release_quarantined()
        if self._acts and now >= self._next_at:
            # One that finds nobody is tried again a moment later.
            if self._do(self._acts[-1]):
                self.done[self._acts.pop()] += 1
                self._next_at = now + self._rng.uniform(0.5, 1.5) * self._plan.gap_s
            else:
                self._next_at = now + 0.2

    def rest(self) -> None:
        """Let go of everybody."""
        while self._paused:
            self._continue(heapq.heappop(self._paused))
        self._acts.clear()

    def _do(self, act: str) -> bool:
        match act:
            case "empty redis":
                redis_connection().flushall()
            case "kill redis":
                self._databases.kill_valkey()
            case "kill postgres":
                connection.close()
                self._databases.kill_postgres()
            case "kill backend":
                return self._kill_backend()
            case "drop connections":
                self._stack.drop_connections()
            case _:
                return self._hit(act)
        return True

    def _hit(self, kind: str) -> bool:
        family = self._stack.family()
        stopped = {paused.process for paused in self._paused}
        groups = {
            "engine": family.engines,
            "worker": family.workers,
            "agent": family.agents,
            "clock": family.clocks,
            "web": family.web,
            "stop": family.engines * 2 + family.workers * 2 + family.agents + family.clocks,
        }
        there = [process for process in groups[kind] if process not in stopped]
        if not there:
            return False
        process = self._rng.choice(there)
        with contextlib.suppress(psutil.NoSuchProcess):
            # psutil compares the start time first: the number may be another's by now.
            process.send_signal(signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
            if kind == "stop":
                until = time.monotonic() + self._rng.uniform(SHORTEST_PAUSE_S, LONGEST_PAUSE_S)
                heapq.heappush(self._paused, _Paused(until, next(self._count), process))
            return True
        return False

    def _continue(self, paused: _Paused) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            paused.process.send_signal(signal.SIGCONT)

    def _kill_backend(self) -> bool:
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() ORDER BY pid"
                )
                pids = [pid for (pid,) in cursor.fetchall()]
        except (DatabaseError, PoolTimeout):
            return False
        finally:
            connection.close()
        return bool(pids) and self._databases.kill_backend(self._rng.choice(pids))

    def _release_quarantined(self) -> None:
        """The operator, who looks at the console now and then."""
        try:
            for device in Device.objects.filter(state=DeviceState.QUARANTINED):
                self.done["release"] += release_device(
                    device_id=device.pk, epoch=device.epoch, reason="looked at"
                )
        except (DatabaseError, PoolTimeout):
            connection.close()
