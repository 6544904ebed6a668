"""How soon work goes on after somebody was killed, hangs, or lost what it knew.

Two nodes with real agents, workers and simulated engines. Three rounds of each; the figures are medians, those called
`…_max_s` the worst.
- `worker_killed_s`: kill -9 a worker in the middle of a segment; until the segment is being spoken on the other node.
- `node_killed_s`: the same with the agent killed too, so that nobody is left there to say so.
- `hang_replaced_s`: an engine hangs; from the moment at which its watchdog must act until the process that replaces it
  has been started and the segment is being spoken on the other node.
- `redis_emptied_s`: FLUSHALL with a backlog and every slot speaking; until each slot has begun another segment. What
  was left of the segments in hand, up to a second, is in it.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
import time
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.bench._pool import ENGINE_SETTINGS, BenchPool, bench_pool

if TYPE_CHECKING:
    from accounts.models import Workspace
    from tests.pool.processes import Command
    from tts.models import Attempt

ROUNDS = 3
# Slow, so that one segment is long enough to be killed in its middle.
MS_PER_CHARACTER = 50
SEGMENT_MS = 4000
BACKLOG_SEGMENT_MS = 1000
BACKLOG = 60
SLOTS_PER_NODE = 2
NO_PROGRESS_S = 2.0
HANG = "停"


def run() -> dict[str, float]:
    """Return the figures above, in seconds."""
    with tempfile.TemporaryDirectory() as once:
        settings = {
            **ENGINE_SETTINGS,
            "ms_per_character": MS_PER_CHARACTER,
            "chunk_ms": 400,
            "hang_on_text": HANG,
            "once_folder": once,
        }
        # The kills are ours: neither devices nor texts are to blame.
        with bench_pool(
            VOICEPOOL_NO_PROGRESS_S=str(NO_PROGRESS_S),
            VOICEPOOL_STRIKES="1000",
            VOICEPOOL_POISON_KILLS="1000",
        ) as bench:
            nodes = _Nodes(bench, settings)
            customer = bench.customer()
            bench.processes.start_clock()
            measured = {
                "hang_replaced": [_hang(bench, nodes, customer, Path(once)) for _ in range(ROUNDS)],
                "worker_killed": [_kill_worker(bench, nodes, customer) for _ in range(ROUNDS)],
                "node_killed": [_kill_node(bench, nodes, customer) for _ in range(ROUNDS)],
                "redis_emptied": _empty_redis(bench, nodes),
            }
    figures: dict[str, float] = {}
    for name, seconds in measured.items():
        figures[f"{name}_s"] = round(statistics.median(seconds), 2)
        figures[f"{name}_max_s"] = round(max(seconds), 2)
    return figures


class _Nodes:
    """Two nodes that are started again when they were killed."""

    def __init__(self, bench: BenchPool, settings: dict[str, object]) -> None:
        self._bench = bench
        self._settings = settings
        self._agents: dict[str, Command] = {}
        self.slots = 1

    def wait(self) -> None:
        """Until both are there and every slot takes work and is idle."""
        for name in ("node-a", "node-b"):
            if name not in self._agents or self._agents[name].poll() is not None:
                self._agents[name] = self._bench.processes.start_node(
                    name=name, engine_settings=self._settings, slots=self.slots
                )
        self._bench.wait_for_slots(2 * self.slots)

    def agent(self, name: str) -> Command:
        return self._agents[name]

    def restart_with(self, slots: int) -> None:
        for agent in self._agents.values():
            agent.send_signal(signal.SIGTERM)
        for agent in self._agents.values():
            agent.wait(30)
        self.slots = slots
        self.wait()


def _speak(bench: BenchPool, nodes: _Nodes, customer: Workspace, text: str) -> tuple[Attempt, psutil.Process]:
    """Have a segment spoken up to its first chunk; its attempt, and the worker that speaks it."""
    from tests.pool.processes import wait_for
    from tts.models import Attempt, DeviceSlot

    nodes.wait()
    job = bench.submit(customer, text)
    begun = Attempt.objects.filter(job=job, first_chunk_at__isnull=False).select_related("device")
    wait_for(begun.exists, what="the first chunk")
    attempt = begun.get()
    slot = DeviceSlot.objects.get(device=attempt.device, number=attempt.slot_number)
    assert slot.worker_pid
    return attempt, psutil.Process(slot.worker_pid)


def _elsewhere(attempt: Attempt) -> datetime:
    """When the segment of a lost attempt was begun on another device; waits until its job has ended well."""
    from tests.pool.processes import wait_for
    from tts.models import Attempt, SynthesisJob
    from tts.states import JobState

    done = SynthesisJob.objects.filter(pk=attempt.job_id, state=JobState.SUCCEEDED)
    wait_for(done.exists, timeout_s=60, what="the job's end")
    again = Attempt.objects.get(
        segment_id=attempt.segment_id, attempt_number__gt=attempt.attempt_number, started_at__isnull=False
    )
    assert again.device_id != attempt.device_id
    assert again.started_at is not None
    return again.started_at


def _text(ms: int) -> str:
    """A sentence on which the engine works so long; another one each time."""
    number = "".join("零一二三四五六七八九"[int(digit)] for digit in f"{uuid.uuid4().int}"[:6])
    return number + "声" * (ms // MS_PER_CHARACTER - 7) + "。"


def _now() -> datetime:
    from django.utils import timezone

    return timezone.now()


def _kill_worker(bench: BenchPool, nodes: _Nodes, customer: Workspace) -> float:
    attempt, worker = _speak(bench, nodes, customer, _text(SEGMENT_MS))
    killed_at = _now()
    worker.kill()
    return (_elsewhere(attempt) - killed_at).total_seconds()


def _kill_node(bench: BenchPool, nodes: _Nodes, customer: Workspace) -> float:
    attempt, worker = _speak(bench, nodes, customer, _text(SEGMENT_MS))
    agent = nodes.agent(attempt.device.node_name)
    killed_at = _now()
    # The agent first: it would tell of its worker's end.
    agent.kill()
    worker.kill()
    agent.wait()
    return (_elsewhere(attempt) - killed_at).total_seconds()


def _hang(bench: BenchPool, nodes: _Nodes, customer: Workspace, once: Path) -> float:
    from tests.pool.processes import wait_for

    for marker in once.iterdir():
        marker.unlink()
    attempt, worker = _speak(bench, nodes, customer, HANG + _text(SEGMENT_MS))
    assert attempt.first_chunk_at is not None
    hanging = set(worker.children())
    due_at = attempt.first_chunk_at + timedelta(seconds=NO_PROGRESS_S)
    wait_for(lambda: set(worker.children()) - hanging, what="another engine process")
    replaced_at = _now()
    elsewhere_at = _elsewhere(attempt)
    print(
        f"past the deadline: replaced after {(replaced_at - due_at).total_seconds():.2f} s,"
        f" spoken elsewhere after {(elsewhere_at - due_at).total_seconds():.2f} s",
        flush=True,
    )
    return (max(replaced_at, elsewhere_at) - due_at).total_seconds()


def _empty_redis(bench: BenchPool, nodes: _Nodes) -> list[float]:
    from portal.lib.queues import redis_connection
    from tests.pool.processes import wait_for
    from tts.models import Attempt, DeviceSlot
    from tts.states import AttemptState

    nodes.restart_with(SLOTS_PER_NODE)
    slots = 2 * SLOTS_PER_NODE
    # As many as there are slots: a workspace may not have all of them.
    customers = [bench.customer() for _ in range(slots)]
    for number in range(BACKLOG):
        bench.submit(customers[number % slots], _text(BACKLOG_SEGMENT_MS))
    running = Attempt.objects.filter(state=AttemptState.RUNNING)
    measured = []
    for number in range(ROUNDS):
        wait_for(lambda: running.count() == slots, what="every slot to speak")
        # At another moment of the segments each time.
        # Each round strikes at another moment of a segment.
        time.sleep(number * BACKLOG_SEGMENT_MS / 1000 / ROUNDS)
        emptied_at = _now()
        redis_connection().flushall()

        def begun_anew(since: datetime = emptied_at) -> list[datetime]:
            first: dict[tuple[int, int], datetime] = {}
            for device_id, slot, at in (
                Attempt.objects.filter(started_at__gt=since)
                .order_by("-started_at")
                .values_list("device_id", "slot_number", "started_at")
            ):
                first[device_id, slot] = at
            return list(first.values()) if len(first) == slots else []

        measured.append((max(wait_for(begun_anew, what="every slot to go on")) - emptied_at).total_seconds())
    assert DeviceSlot.objects.filter(ready=True).count() == slots
    return measured
