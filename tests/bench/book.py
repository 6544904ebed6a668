"""A book of 199,000 characters from its quote to its subtitles, spoken by the simulated engine in two slots.

Prints what each step takes, and fails where anything is not whole: state, books, length of the file, subtitles,
chapters, and the memory of the workers, one of which puts the book together. It makes 4 GB of audio.
"""

from __future__ import annotations

import resource
import threading
import time
import uuid

import psutil

from tests.bench._book import book, check_books, check_spoken, expect
from tests.bench._pool import BenchPool, bench_pool

CHARACTERS = 199_000
CHAPTERS = 40
SLOTS = 2
# It takes the time that it says, so that the devices' account of their time is right.
ENGINE_SETTINGS: dict[str, object] = {"real_time": True, "ms_per_character": 1}
SPOKEN_WITHIN_S = 3_600.0
# What a worker may grow by while it speaks a book and puts it together; the file itself is 2 GB.
WORKER_GROWTH_MB = 120.0
LOOK_EVERY_S = 0.1


class Memory:
    """The most that any process below this one held, by what it is; looked at all the time, by a thread."""

    def __init__(self) -> None:
        self.first_mb: dict[int, float] = {}
        self.most_mb: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def growth_mb(self) -> float:
        """How much the worker that grew the most has grown since it was first seen at work."""
        return max(self.most_mb[pid] - self.first_mb[pid] for pid in self.most_mb)

    def _look(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            for process in psutil.Process().children(recursive=True):
                try:
                    if "gpu_worker" not in process.cmdline():
                        continue
                    held_mb = process.memory_info().rss / 2**20
                except psutil.Error:
                    continue  # it has ended
                self.first_mb.setdefault(process.pid, held_mb)
                self.most_mb[process.pid] = max(held_mb, self.most_mb.get(process.pid, 0.0))


def run() -> dict[str, float]:
    """Return `quote_s`, `submit_s`, `spoken_s` (until the last segment), `put_together_s`, `described_s` (subtitles and
    chapters), `worker_growth_mb`, `web_peak_mb` (of this process, which quotes and submits) and `segments`."""
    with bench_pool() as pool:
        pool.processes.start_node(slots=SLOTS, engine_settings=ENGINE_SETTINGS)
        pool.processes.start_clock()
        pool.wait_for_slots(SLOTS)
        return _run(pool)


def _run(pool: BenchPool) -> dict[str, float]:
    from tests.pool.processes import wait_for
    from tts.api.quotes import quote_json
    from tts.models import Segment, SynthesisJob, Voice
    from tts.services.submit import JobRequest, quote_request, submit_job
    from tts.states import JOB_ENDED, SEGMENT_LIVE

    workspace, voice = pool.customer(), Voice.objects.filter(kind="preset").order_by("pk")[0]
    request = JobRequest(
        voice_id=voice.pk, text=book(characters=CHARACTERS, chapters=CHAPTERS), job_class="batch", seed=7
    )
    figures: dict[str, float] = {"characters": len(request.text)}
    memory, at = Memory(), time.perf_counter()

    def took() -> float:
        nonlocal at
        before, at = at, time.perf_counter()
        return at - before

    quoted = quote_json(quote_request(workspace=workspace, user=None, request=request))
    figures["quote_s"] = took()
    memory.start()
    job = submit_job(
        workspace=workspace,
        user=None,
        api_key=None,
        request=request,
        idempotency_key=str(uuid.uuid4()),
        client_address=None,
        request_id="bench",
    ).job
    figures["submit_s"] = took()
    expect(len(quoted["segments"]) == job.segment_count, "the quote has other segments than the job")
    live = Segment.objects.filter(job=job, state__in=SEGMENT_LIVE)
    wait_for(lambda: not live.exists(), timeout_s=SPOKEN_WITHIN_S, what="the book to be spoken")
    figures["spoken_s"] = took()
    ended = SynthesisJob.objects.filter(pk=job.pk, state__in=JOB_ENDED)
    wait_for(ended.exists, timeout_s=SPOKEN_WITHIN_S, what="the book to be put together")
    figures["put_together_s"] = took()
    memory.stop()
    job.refresh_from_db()
    check_spoken(job, chapters=CHAPTERS)
    figures["described_s"] = took()
    check_books()
    expect(quoted["held"]["amount_micros"] >= job.charged_micros > 0, "it cost more than was quoted")
    figures["worker_growth_mb"] = memory.growth_mb()
    expect(figures["worker_growth_mb"] <= WORKER_GROWTH_MB, f"a worker grew by {memory.growth_mb():.0f} MB")
    figures["web_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["segments"], figures["audio_s"] = job.segment_count, job.audio_ms / 1000
    return {name: round(value, 3) for name, value in figures.items()}
