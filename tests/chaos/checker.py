"""Holds what is left in database and storage against what was promised and what the engine must have made."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db.models import Sum

from accounts.models import Workspace
from billing.models import Hold, LedgerEntry, LedgerTransaction, TransactionKind, UsageRecord
from billing.pricing import price_gpu_ms
from billing.selectors.prices import rate_for
from tests.billing.books import assert_books_agree
from tests.chaos.history import Heard, History
from tests.chaos.stack import AUDIO_MS_PER_CHARACTER
from tests.pool.fair_pool import assert_counters_are_true
from tts import storage
from tts.audio.wav import HEADER_BYTES, join_pcm, read_wav
from tts.engine.simulated import SAMPLE_RATE_HZ, tone, tone_period
from tts.models import Attempt, Segment, SynthesisJob
from tts.services.yielding import pieces_of
from tts.states import JOB_ENDED, MAX_ATTEMPTS, AttemptState, JobState
from tts.text.pauses import pause_after_ms
from tts.text.segmentation import segment as cut_into_segments


@dataclass
class Findings:
    """The figures that must be zero, and in words what is wrong."""

    lost: int = 0
    charged_twice: int = 0
    holds_left: int = 0
    ledger_sum: int = 0
    wrong_audio: int = 0
    words: list[str] = field(default_factory=list)
    """Everything that is wrong, also what no figure counts."""

    def say(self, words: str) -> None:
        self.words.append(words)


def check(history: History) -> Findings:
    """Look at everything. The pool is at rest, or has ended."""
    found = Findings()
    for contradiction in history.contradictions:
        found.say(contradiction)
    jobs = list(SynthesisJob.objects.select_related("voice", "price_version"))
    _check_ends(jobs, history, found)
    for job in jobs:
        _check_audio(job, found)
        _check_charges(job, found)
    for heard in history.heard:
        _check_heard(heard, found)
    _check_attempts(found)
    _check_books(found)
    _check_deleted(history, found)
    try:
        assert_counters_are_true()
    except AssertionError as error:
        found.say(f"the counters of the fair share are wrong: {error}")
    return found


def expected_pcm(job: SynthesisJob) -> bytes:
    """What the simulated engine must have made of a job whose text is there."""
    segments = cut_into_segments(job.text)
    return join_pcm(
        [_segment_pcm(job, text) for text in segments],
        pauses_ms=[pause_after_ms(text, speed=job.speed) for text in segments],
        sample_rate_hz=SAMPLE_RATE_HZ,
    )


def _segment_pcm(job: SynthesisJob, text: str) -> bytes:
    pieces = pieces_of(text, job_class=job.job_class)
    return join_pcm(
        [_piece_pcm(job, piece) for piece in pieces],
        pauses_ms=[pause_after_ms(piece, speed=job.speed) for piece in pieces],
        sample_rate_hz=SAMPLE_RATE_HZ,
    )


def _piece_pcm(job: SynthesisJob, text: str) -> bytes:
    audio_ms = max(1, round(len(text) * AUDIO_MS_PER_CHARACTER / job.speed))
    period = tone_period(text=text, voice_key=job.voice.preset_key, seed=job.seed)
    return tone(period=period, samples=audio_ms * SAMPLE_RATE_HZ // 1000)


def _check_ends(jobs: list[SynthesisJob], history: History, found: Findings) -> None:
    states = {job.pk: job.state for job in jobs}
    for key, job_id in history.accepted.items():
        if job_id not in states:
            found.lost += 1
            found.say(f"job {job_id} was taken in under {key} and is gone")
    for job_id, state in states.items():
        if state not in JOB_ENDED:
            found.lost += 1
            found.say(f"job {job_id} is {state}")
    for job in jobs:
        if job.state == JobState.FAILED and not _was_given_up(job):
            found.lost += 1
            found.say(
                f"job {job.pk} failed as {job.error_code} without having been tried {MAX_ATTEMPTS} times"
            )
        if job.state == JobState.CANCELED and job.cancel_requested_at is None:
            found.lost += 1
            found.say(f"job {job.pk} was canceled by nobody")


def _was_given_up(job: SynthesisJob) -> bool:
    """Whether one of its segments was begun as often as it may be, and each time somebody was killed over it."""
    if job.error_code != "engine_failed":
        return False
    begun = Counter(
        Attempt.objects.filter(
            job=job, started_at__isnull=False, state__in=[AttemptState.FAILED, AttemptState.LOST]
        ).values_list("segment_id", flat=True)
    )
    return max(begun.values(), default=0) >= MAX_ATTEMPTS


def _check_audio(job: SynthesisJob, found: Findings) -> None:
    if job.deleted_at is not None:
        return
    succeeded = job.state == JobState.SUCCEEDED
    if not job.audio_key:
        if succeeded:
            found.wrong_audio += 1
            found.say(f"job {job.pk} succeeded without audio")
        return
    try:
        pcm = read_wav(storage.read(job.audio_key)).pcm
    except (OSError, ValueError) as error:
        found.wrong_audio += 1
        found.say(f"the audio of job {job.pk} cannot be read: {error!r}")
        return
    expected = expected_pcm(job)
    # What was kept of a canceled job is the beginning of it.
    if pcm != expected[: len(pcm)] or (succeeded and len(pcm) != len(expected)):
        found.wrong_audio += 1
        found.say(
            f"the audio of job {job.pk} ({job.job_class}, {job.state}, {job.segment_count} segments) is wrong:"
            f" {len(pcm)} of {len(expected)} bytes, the first {_same(pcm, expected)} right"
        )


def _check_heard(heard: Heard, found: Findings) -> None:
    job = SynthesisJob.objects.select_related("voice").get(pk=heard.job_id)
    if job.deleted_at is not None:
        return
    pcm, expected = heard.content[HEADER_BYTES:], expected_pcm(job)
    whole = heard.whole and job.state == JobState.SUCCEEDED
    if pcm != expected[: len(pcm)] or (whole and len(pcm) != len(expected)):
        found.wrong_audio += 1
        found.say(
            f"a listener of job {job.pk} ({job.job_class}, {job.state}) heard the wrong audio:"
            f" {len(pcm)} of {len(expected)} bytes, the first {_same(pcm, expected)} right"
        )


def _same(one: bytes, other: bytes) -> int:
    """How many bytes are the same from the beginning on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _check_charges(job: SynthesisJob, found: Findings) -> None:
    """Each attempt was charged what it used, once, and nothing else was charged."""
    rate = rate_for(price=job.price_version, job_class=job.job_class)
    captured = _posted(job.pk, TransactionKind.CAPTURE, account="revenue")
    refunded = -_posted(job.pk, TransactionKind.REFUND, account="revenue")
    used = UsageRecord.objects.filter(job_id=job.pk, billable=True)
    price = sum(price_gpu_ms(gpu_ms=ms, rate=rate) for ms in used.values_list("gpu_ms", flat=True))
    if captured != min(price, job.held_micros):
        found.say(f"job {job.pk} used {price} micros and was charged {captured}")
        found.charged_twice += captured > price
    if job.charged_micros != captured - refunded:
        found.say(f"job {job.pk} says {job.charged_micros} micros, the books {captured} less {refunded}")
    if job.state == JobState.FAILED and captured != refunded:
        found.say(f"job {job.pk} failed by our fault and cost {captured - refunded} micros")
    paid = Counter(
        Attempt.objects.filter(pk__in=used.values("attempt_id")).values_list("segment_id", flat=True)
    )
    for segment_id, count in paid.items():
        if count > 1:
            found.charged_twice += 1
            found.say(f"segment {segment_id} of job {job.pk} was paid for {count} times")
    if job.state == JobState.SUCCEEDED:
        spoken = set(Segment.objects.filter(job=job).values_list("pk", flat=True))
        if spoken != set(paid):
            found.say(f"of {len(spoken)} segments of job {job.pk}, {len(paid)} were paid for")


def _posted(job_id: uuid.UUID, kind: TransactionKind, *, account: str) -> int:
    entries = LedgerEntry.objects.filter(transaction__job_id=job_id, transaction__kind=kind, account=account)
    return entries.aggregate(sum=Sum("amount_micros"))["sum"] or 0


def _check_attempts(found: Findings) -> None:
    live = Attempt.objects.filter(state__in=[AttemptState.BOUND, AttemptState.RUNNING]).count()
    if live:
        found.say(f"{live} attempts never ended")
    kept = Counter(
        LedgerTransaction.objects.filter(kind=TransactionKind.CAPTURE).values_list(
            "idempotency_key", flat=True
        )
    )
    used = Counter(UsageRecord.objects.filter(billable=True).values_list("attempt_id", flat=True))
    if set(kept) != {f"capture:{attempt_id}" for attempt_id in used}:
        found.say("the captures are not those of the attempts that were used")
    for counted in (kept, used):
        found.charged_twice += sum(count - 1 for count in counted.values())


def _check_books(found: Findings) -> None:
    found.holds_left = Hold.objects.filter(state="open").count()
    if found.holds_left:
        found.say(f"{found.holds_left} holds are open")
    found.ledger_sum = LedgerEntry.objects.aggregate(sum=Sum("amount_micros"))["sum"] or 0
    for workspace_id in Workspace.objects.values_list("pk", flat=True):
        try:
            assert_books_agree(workspace_id)
        except AssertionError as error:
            found.say(f"the books of workspace {workspace_id} do not agree: {error}")


def _check_deleted(history: History, found: Findings) -> None:
    """Nothing is left of what was deleted, not even what a worker was storing at that moment."""
    for job_id in history.deleted:
        job = SynthesisJob.objects.get(pk=job_id)
        texts = [job.text, *Segment.objects.filter(job=job).values_list("text", flat=True)]
        if any(texts):
            found.say(f"a text of job {job_id} is left, which was deleted")
        folder = (
            Path(settings.DATA_DIR) / "media" / "workspaces" / str(job.workspace_id) / "jobs" / str(job_id)
        )
        files = [path for path in folder.rglob("*") if path.is_file()]
        if files:
            found.say(f"{len(files)} files of job {job_id} are left, which was deleted")
