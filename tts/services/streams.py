"""Following a job while it is spoken: its events, and its audio chunk by chunk.

PostgreSQL is the truth and is read again at every hint; Redis carries the hints and the audio of running attempts,
and may be emptied at any moment: a follower then only notices a second later.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import redis
from django.db import close_old_connections, connection
from django.db.models import Q

from portal.lib.queues import redis_connection
from tts import storage
from tts.audio.wav import read_wav, silence
from tts.failures import failure_text
from tts.models import Attempt, Segment, SynthesisJob
from tts.selectors.timeline import pause_between_ms
from tts.services import wakeups
from tts.services.attempts import SPEECH_REJECTED
from tts.services.fair_share import place_of
from tts.states import JOB_ENDED, JobState, SegmentState

logger = logging.getLogger(__name__)
LOOK_AGAIN_MS = 1000
HEARTBEAT_SECONDS = 10.0
# Behind every part of a segment: nothing more of it is looked for.
LAST_PART = 32_767
# Kokoro and CosyVoice 2 and 3 all speak at this rate; the canonical clips have it too.
SAMPLE_RATE_HZ = 24_000


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


Entries = list[tuple[bytes, dict[bytes, bytes]]]


def _wait(keys: dict[str, str]) -> dict[str, Entries]:
    """Wait up to a second for something new in these streams; empty when there was nothing, or no Redis."""
    try:
        reply = redis_connection().xread(cast(Any, keys), block=LOOK_AGAIN_MS, count=64)
    except redis.RedisError as error:
        logger.warning("follow_without_redis", extra={"error": type(error).__name__})
        time.sleep(LOOK_AGAIN_MS / 1000)
        return {}
    return {key.decode(): entries for key, entries in cast("list[tuple[bytes, Entries]]", reply)}


def job_events(job: SynthesisJob, *, after: str = "0") -> Iterator[JobEvent]:
    """What happens to the job, from its present state to its end.

    Every event says how things stand, so that one who comes late, or comes back with Last-Event-ID (`after`), misses
    nothing by starting from the present. Kinds: queued, running, segment, first_audio, succeeded, failed, canceled,
    and `heartbeat` every 10 s, so that a connection that is gone is noticed.
    """
    key, last_hint = wakeups.job_key(job.pk), "0"
    told: dict[str, str] = {}
    number = int(after) if after.isdigit() else 0
    spoke_at = time.monotonic()
    while True:
        ended = False
        for kind, name, data in _snapshot(job.pk):
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
        entries = _wait({key: last_hint}).get(key)
        if entries:
            last_hint = entries[-1][0].decode()


def _snapshot(job_id: uuid.UUID) -> list[tuple[str, str, dict[str, Any]]]:
    """How the job stands, as (kind, what it is about, data)."""
    job = SynthesisJob.objects.filter(pk=job_id).first()
    if job is None:
        return [(JobState.CANCELED, "state", {})]
    facts: list[tuple[str, str, dict[str, Any]]] = []
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
    rows = (
        Segment.objects.filter(job_id=job_id).order_by("index", "part").values_list("index", "part", "state")
    )
    facts += [
        ("segment", f"segment {index}.{part}", {"index": index, "part": part, "state": state})
        for index, part, state in rows
    ]
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


def job_audio(job: SynthesisJob) -> Iterator[bytes]:
    """The job's audio as PCM (24 kHz, mono, signed 16-bit little-endian), in order, while it is made.

    Ends with the job. Speech that was found bad after it was heard is not said again; the file has what was spoken
    instead. When an attempt dies in the middle, its successor makes the same bytes (same text, voice,
    settings and seed), and the stream goes on where it stopped. While nothing is made, an empty chunk comes about
    every second, so that whoever sends them can look whether anybody still listens.
    """
    segment = _segment_after(job, -1, 0)
    while segment is not None:
        spoken = yield from _segment_audio(job, segment.index, segment.part)
        if spoken is None:
            return
        # Looked for only now: a segment that let urgent work pass has become two meanwhile.
        segment = _segment_after(job, spoken.index, spoken.part)
        pause_ms = pause_between_ms(job, spoken, segment) if segment is not None else 0
        if pause_ms:
            yield silence(duration_ms=pause_ms, sample_rate_hz=SAMPLE_RATE_HZ)


def _segment_after(job: SynthesisJob, index: int, part: int) -> Segment | None:
    later = Q(index__gt=index) | Q(index=index, part__gt=part)
    return Segment.objects.filter(later, job_id=job.pk).order_by("index", "part").first()


def _segment_audio(job: SynthesisJob, index: int, part: int) -> Generator[bytes, None, Segment | None]:
    """One segment's PCM; returns it as it was spoken (None: the job ended first)."""
    sent = 0
    heard: uuid.UUID | None = None
    hint_key, last_hint = wakeups.job_key(job.pk), "0"
    while True:
        segment = Segment.objects.get(job_id=job.pk, index=index, part=part)
        attempt = (
            Attempt.objects.filter(segment=segment, attempt_number=segment.attempt_number).first()
            if segment.state == SegmentState.RUNNING
            else None
        )
        if heard is not None and (attempt is None or attempt.pk != heard) and _was_rejected(heard):
            # All of it was heard before it was found bad. What another seed makes of it does not go on from there.
            segment.part = LAST_PART
            return segment
        _let_go_of_database()
        if segment.state == SegmentState.SUCCEEDED:
            pcm = read_wav(storage.read(segment.audio_key)).pcm if segment.audio_key else b""
            if len(pcm) > sent:
                yield pcm[sent:]
            return segment
        if segment.state in (SegmentState.FAILED, SegmentState.CANCELED):
            return None
        if attempt is not None:
            sent = yield from _attempt_audio(attempt.pk, sent=sent)
            heard = attempt.pk if sent else None
        yield b""
        entries = _wait({hint_key: last_hint}).get(hint_key)
        if entries:
            last_hint = entries[-1][0].decode()


def _was_rejected(attempt_id: uuid.UUID) -> bool:
    return Attempt.objects.filter(pk=attempt_id, error_code=SPEECH_REJECTED).exists()


def _attempt_audio(attempt_id: uuid.UUID, *, sent: int) -> Generator[bytes, None, int]:
    """The PCM of a running attempt beyond `sent` bytes; returns how much of the segment is sent by now.

    Returns when the attempt says that it is done, or says nothing for a second, or when Redis has forgotten what comes
    next: the caller looks at the truth again, and has the rest from the file in the end.
    """
    key, last = wakeups.audio_key(attempt_id), "0"
    while True:
        entries = _wait({key: last}).get(key)
        if not entries:
            return sent
        for entry_id, fields in entries:
            last = entry_id.decode()
            if b"end" in fields:
                return sent
            at = int(fields[b"at"])
            if at > sent:
                return sent
            fresh = fields[b"pcm"][sent - at :]
            if fresh:
                sent += len(fresh)
                yield fresh
