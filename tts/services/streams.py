"""Following a job while it is spoken: its events, and its audio chunk by chunk.

PostgreSQL is the truth and is read again at every hint; Redis carries the hints and the audio of running attempts,
and may be emptied at any moment: a follower then only notices a second later.
"""

from __future__ import annotations

import json
import time
import uuid
import wave
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import close_old_connections, connection
from django.db.models import Q, QuerySet

from tts import storage
from tts.audio.wav import SAMPLE_BYTES, silence
from tts.failures import failure_text
from tts.models import Attempt, Segment, SynthesisJob
from tts.selectors.timeline import pause_between_ms
from tts.services import wakeups
from tts.services.attempts import SPEECH_REJECTED
from tts.services.fair_share import place_of
from tts.services.tails import BEGINNING, TAILS, Tail
from tts.states import JOB_ENDED, SEGMENT_LIVE, JobState, SegmentState

HEARTBEAT_SECONDS = 10.0
# Of a job with more segments, those that wait are not told one by one.
LISTED_SEGMENTS = 60
# Behind every part of a segment: nothing more of it is looked for.
LAST_PART = 32_767
# Kokoro and CosyVoice 2 and 3 all speak at this rate; the canonical clips have it too.
SAMPLE_RATE_HZ = 24_000
FILE_BLOCK_SAMPLES: Final = 65_536


@dataclass(frozen=True)
class JobEvent:
    id: str
    kind: str
    data: dict[str, Any] = field(default_factory=dict)


def _let_go_of_database() -> None:
    """A follower waits for minutes: its connection goes back to the pool meanwhile."""
    if not connection.in_atomic_block:
        close_old_connections()
        connection.close()


Fact = tuple[str, str, dict[str, Any]]


def _hints_of(job: SynthesisJob) -> AbstractContextManager[Tail]:
    """The hints from now on: what was before is in the database, which is looked at after this."""
    key = wakeups.job_key(job.pk)
    return TAILS.follow(key, after=TAILS.last_of(key))


def job_events(job: SynthesisJob, *, after: str = "0") -> Iterator[JobEvent]:
    """What happens to the job, from its present state to its end.

    Every event says how things stand, so that one who comes late, or comes back with Last-Event-ID (`after`), misses
    nothing by starting from the present. Kinds: queued, running, segment, first_audio, succeeded, failed, canceled,
    and `heartbeat` every 10 s, so that a connection that is gone is noticed.
    """
    told: dict[str, str] = {}
    segments = _SegmentFacts(job)
    number = int(after) if after.isdigit() else 0
    spoke_at = time.monotonic()
    with _hints_of(job) as hints:
        while True:
            ended = False
            for kind, name, data in _snapshot(job.pk, segments):
                ended = ended or kind in JOB_ENDED
                content = json.dumps(data, sort_keys=True, default=str)
                if told.get(name) != content:
                    told[name] = content
                    number += 1
                    spoke_at = time.monotonic()
                    yield JobEvent(id=str(number), kind=kind, data=data)
            if ended:
                return
            if time.monotonic() - spoke_at >= HEARTBEAT_SECONDS:
                spoke_at = time.monotonic()
                yield JobEvent(id=str(number), kind="heartbeat")
            _let_go_of_database()
            hints.wait()


class _SegmentFacts:
    """How the segments stand. Of a long job, those that wait are not told, and those that have ended are read once."""

    def __init__(self, job: SynthesisJob) -> None:
        self._job_id = job.pk
        self._is_long = job.segment_count > LISTED_SEGMENTS
        # All before this one have ended, and it was told.
        self._first = 0

    def read(self) -> list[Fact]:
        rows = Segment.objects.filter(job_id=self._job_id, index__gte=self._first)
        if self._is_long:
            rows = rows.exclude(state=SegmentState.QUEUED, part=0)
        facts: list[Fact] = []
        ended: dict[int, bool] = {}
        for index, part, state in rows.order_by("index", "part").values_list("index", "part", "state"):
            facts.append(
                ("segment", f"segment {index}.{part}", {"index": index, "part": part, "state": state})
            )
            ended[index] = ended.get(index, True) and state not in SEGMENT_LIVE
        while self._is_long and ended.get(self._first):
            self._first += 1
        return facts


def _snapshot(job_id: uuid.UUID, segments: _SegmentFacts) -> list[Fact]:
    """How the job stands, as (kind, what it is about, data)."""
    job = SynthesisJob.objects.filter(pk=job_id).defer("text", "peaks").first()
    if job is None:
        return [(JobState.CANCELED, "state", {})]
    facts: list[Fact] = []
    if job.state == JobState.QUEUED:
        place = place_of(job)
        waiting = {"position": place.position, "starts_in_ms": place.starts_in_ms} if place else {}
        return [(JobState.QUEUED, "state", waiting)]
    if job.state == JobState.RUNNING:
        facts.append(
            (
                JobState.RUNNING,
                "state",
                {"segments_done": job.segments_done, "segment_count": job.segment_count},
            )
        )
    facts += segments.read()
    if job.first_audio_at is not None:
        facts.append(("first_audio", "first_audio", {"at": job.first_audio_at.isoformat()}))
    if job.state in JOB_ENDED:
        facts.append((job.state, "state", _ending(job)))
    return facts


def _ending(job: SynthesisJob) -> dict[str, Any]:
    ending: dict[str, Any] = {
        "gpu_ms": job.gpu_ms,
        "audio_ms": job.audio_ms,
        "charged_micros": job.charged_micros,
        "has_audio": bool(job.audio_key),
    }
    if job.error_code:
        ending |= {"code": job.error_code, "message": failure_text(job.error_code)}
    return ending


@dataclass(frozen=True)
class Look:
    """How things stand with one segment; `attempt_id` while it is spoken. `hint`: the newest hint before that."""

    segment: Segment
    attempt_id: uuid.UUID | None
    hint: bytes = BEGINNING


def first_look(job: SynthesisJob) -> Look | None:
    """Where a listener begins. Whoever looks before it sends the first byte sends the second one sooner."""
    hint = TAILS.last_of(wakeups.job_key(job.pk))
    segment = _segment_after(job, -1, 0)
    return Look(segment, _running_attempt(segment), hint) if segment is not None else None


def job_audio(job: SynthesisJob, *, first: Look | None = None) -> Generator[bytes]:
    """The job's audio as PCM (24 kHz, mono, signed 16-bit little-endian), in order, while it is made.

    Ends with the job. Speech that was found bad after it was heard is not said again; the file has what was spoken
    instead. When an attempt dies in the middle, its successor makes the same bytes (same text, voice,
    settings and seed), and the stream goes on where it stopped. While nothing is made, an empty chunk comes about
    every second, so that whoever sends them can look whether anybody still listens.
    """
    look = first or first_look(job)
    if look is None:
        return
    with TAILS.follow(wakeups.job_key(job.pk), after=look.hint) as hints:
        while look is not None:
            spoken = yield from _segment_audio(job, look, hints)
            if spoken is None:
                return
            # Looked for only now: a segment that let urgent work pass has become two meanwhile.
            segment = _segment_after(job, spoken.index, spoken.part)
            look = Look(segment, _running_attempt(segment)) if segment is not None else None
            pause_ms = pause_between_ms(job, spoken, segment) if segment is not None else 0
            if pause_ms:
                yield silence(duration_ms=pause_ms, sample_rate_hz=SAMPLE_RATE_HZ)


def _segment_after(job: SynthesisJob, index: int, part: int) -> Segment | None:
    later = Q(index__gt=index) | Q(index=index, part__gt=part)
    return _segments().filter(later, job_id=job.pk).order_by("index", "part").first()


def _segments() -> QuerySet[Segment]:
    """Without what no listener needs: a long query is what costs most where many listen."""
    return Segment.objects.only(
        "job_id", "index", "part", "state", "attempt_number", "text", "audio_key", "speaker", "chapter"
    )


def _running_attempt(segment: Segment) -> uuid.UUID | None:
    if segment.state != SegmentState.RUNNING:
        return None
    found = Attempt.objects.filter(segment=segment, attempt_number=segment.attempt_number)
    return found.values_list("pk", flat=True).first()


def _looked_again(look: Look) -> Look:
    # By its place: what was spoken of a segment that let urgent work pass is another row than its rest.
    seen = look.segment
    segment = _segments().get(job_id=seen.job_id, index=seen.index, part=seen.part)
    return Look(segment, _running_attempt(segment))


def _segment_audio(job: SynthesisJob, look: Look, hints: Tail) -> Generator[bytes, None, Segment | None]:
    """One segment's PCM; returns it as it was spoken (None: the job ended first)."""
    sent = 0
    heard: uuid.UUID | None = None
    live: _LiveAttempt | None = None
    with ExitStack() as following:
        while True:
            segment, attempt_id = look.segment, look.attempt_id
            if heard is not None and attempt_id != heard and _was_rejected(heard):
                # All of it was heard before it was found bad. What another seed makes of it does not go on from there.
                segment.part = LAST_PART
                return segment
            _let_go_of_database()
            if segment.state == SegmentState.SUCCEEDED:
                yield from _rest_of_file(segment.audio_key, sent)
                return segment
            if segment.state in (SegmentState.FAILED, SegmentState.CANCELED):
                return None
            # What is over is settled: the truth is looked at at once, and hints are waited for only where it lags.
            waits = live is None or live.is_over or attempt_id is None
            if attempt_id is not None:
                if live is None or live.attempt_id != attempt_id:
                    following.close()
                    key = wakeups.audio_key(attempt_id)
                    live = _LiveAttempt(attempt_id, following.enter_context(TAILS.follow(key)))
                    waits = False
                sent = yield from live.audio(sent)
                heard = attempt_id if sent else None
            yield b""
            if waits:
                hints.wait()
            look = _looked_again(look)


def _rest_of_file(key: str, sent: int) -> Generator[bytes]:
    """What is in a segment's file behind so many bytes of PCM."""
    if not key:
        return
    with storage.open_audio(key) as file, wave.open(file) as opened:
        opened.setpos(min(sent // SAMPLE_BYTES, opened.getnframes()))
        while pcm := opened.readframes(FILE_BLOCK_SAMPLES):
            yield pcm


def _was_rejected(attempt_id: uuid.UUID) -> bool:
    return Attempt.objects.filter(pk=attempt_id, error_code=SPEECH_REJECTED).exists()


class _LiveAttempt:
    """The PCM of a running attempt. `is_over`: it has said all, or Redis has forgotten what comes next, and the file
    has the rest."""

    def __init__(self, attempt_id: uuid.UUID, tail: Tail) -> None:
        self.attempt_id = attempt_id
        self.is_over = False
        self._tail = tail

    def audio(self, sent: int) -> Generator[bytes, None, int]:
        """What there is beyond `sent` bytes; returns how much of the segment is sent by now, when it is over, or
        silent for a second: the caller looks at the truth again."""
        while not self.is_over and (entries := self._tail.wait()):
            for _, fields in entries:
                at = int(fields.get(b"at", 0))
                if b"end" in fields or at > sent:
                    self.is_over = True
                    break
                fresh = fields[b"pcm"][sent - at :]
                if fresh:
                    sent += len(fresh)
                    yield fresh
        return sent
