"""A job said again with some of its segments changed: only those are spoken and paid, the rest keeps its sound."""

from __future__ import annotations

import secrets
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

from django.db import IntegrityError

from accounts.errors import WorkspaceSuspended
from accounts.models import ApiKey, User, Workspace
from portal.lib.errors import DomainError
from tts.errors import (
    AudioGone,
    JobNotSucceeded,
    NotOffered,
    RevisionInvalid,
    SegmentTwice,
    SegmentUnknown,
    TextBlocked,
)
from tts.models import Segment, SynthesisJob, Voice
from tts.selectors.engines import PoolOffer, pool_offer
from tts.selectors.jobs import jobs_of, spoken_job_of
from tts.selectors.pronunciations import dictionary
from tts.selectors.voice_versions import voice_as_before, with_number
from tts.selectors.voices import refuse_private_voices, voice_of
from tts.services.attempts import SEEDS
from tts.services.blame import is_any_blocked
from tts.services.instructions import check_is_taken
from tts.services.phrases import Manner, Reusable
from tts.services.pricing_limit import count_priced
from tts.services.quotes import Quote, SegmentPlan
from tts.services.quoting import HOUR_MS, Planner, priced_plan, spoken_before
from tts.services.revised_texts import Revised, revised_chapters, title_said_by, whole_text
from tts.services.stored import check_storage
from tts.services.storing import store_job
from tts.services.submit import Submission, check_key, check_length, earlier_job, request_digest
from tts.states import JobState
from tts.text.annotations import silence_ms
from tts.text.cleaning import clean_text
from tts.text.errors import SpeechTooLong, TextEmpty, TextTooLong, TextTooManyParts
from tts.text.estimate import estimate_audio_ms
from tts.text.language import languages_of
from tts.text.limits import (
    FIRST_SEGMENT_MS,
    MAX_JOB_AUDIO_MS,
    MAX_JOB_SEGMENTS,
    MAX_SEGMENT_MS,
    PREFERRED_SEGMENT_MS,
    max_job_characters,
)
from tts.text.segmentation import segment as cut_into_segments


@dataclass(frozen=True)
class SegmentEdit:
    """What becomes of the segment `index`. `text` None: what it says stays; blank: it is left out. `seed` None: a text
    that is changed keeps the seed, one that stays is said with another."""

    index: int
    text: str | None = None
    seed: int | None = None


def quote_revision(
    *, workspace: Workspace, user: User | None, job_id: uuid.UUID, edits: Sequence[SegmentEdit]
) -> Quote:
    """What a revision would cost. Stores nothing.

    Raises:
        JobNotFound, JobNotSucceeded, VoiceNotFound (another member keeps a voice of it private), AudioGone,
        RevisionInvalid, NotOffered, TextEmpty, TextTooLong, TextTooManyParts,
        SpeechTooLong, TooManyCharactersPriced.
    """
    _count(workspace, job_id, edits)
    return _priced(workspace, user, _source(workspace, user, job_id), edits)


def revise_job(
    *,
    workspace: Workspace,
    user: User | None,
    api_key: ApiKey | None,
    job_id: uuid.UUID,
    edits: Sequence[SegmentEdit],
    idempotency_key: str | None,
    client_address: str | None,
    request_id: str,
) -> Submission:
    """Make a new job of a done one, in which these segments are spoken and all others keep their audio; the old job
    stays as it is.

    The same key with the same request returns the job that it made (`created` False). Locks the credit account.

    Raises:
        As `quote_revision` and tts.services.submit.submit_job. Nothing was changed then.
    """
    if workspace.suspended_at is not None:
        raise WorkspaceSuspended
    check_key(idempotency_key)
    fingerprint = _fingerprint(job_id, edits)
    if earlier := earlier_job(workspace, idempotency_key, fingerprint):
        return Submission(job=earlier, created=False)
    _count(workspace, job_id, edits)
    source = _source(workspace, user, job_id)
    priced = _priced(workspace, user, source, edits)
    _check(workspace, source, priced)
    job = _build(source, priced)
    job.created_by, job.api_key = user, api_key
    job.idempotency_key, job.request_sha256 = idempotency_key, fingerprint
    job.client_address, job.request_id = client_address, request_id
    kept = [place for place, part in enumerate(priced.plan) if part.kept is not None]
    try:
        # It goes on with the model that spoke the rest; where that is gone, tts_bind gives it to another.
        store_job(job, priced, engine=source.engine, required=kept)
    except IntegrityError:
        if earlier := earlier_job(workspace, idempotency_key, fingerprint):
            return Submission(job=earlier, created=False)
        raise
    return Submission(job=job, created=True)


def _count(workspace: Workspace, job_id: uuid.UUID, edits: Sequence[SegmentEdit]) -> None:
    """What is kept is read, not priced, which takes about a quarter of the time. Raises TooManyCharactersPriced."""
    kept = jobs_of(workspace).filter(pk=job_id).values_list("characters", flat=True).first() or 0
    edited = sum(len(edit.text or "") for edit in edits)
    count_priced(workspace_id=workspace.pk, characters=edited + kept // 4)


def _fingerprint(job_id: uuid.UUID, edits: Sequence[SegmentEdit]) -> str:
    return request_digest({"revision_of": job_id, "segments": [asdict(edit) for edit in edits]})


def _source(workspace: Workspace, user: User | None, job_id: uuid.UUID) -> SynthesisJob:
    source = spoken_job_of(workspace, job_id)
    if source.state != JobState.SUCCEEDED:
        raise JobNotSucceeded
    spoken_by = (segment.voice_id for segment in source.segments.all())
    refuse_private_voices(workspace, user, [source.voice_id, *filter(None, spoken_by)])
    return source


def _check(workspace: Workspace, source: SynthesisJob, priced: Quote) -> None:
    if not priced.is_all_reused:
        check_is_taken(
            mode=source.mode,
            instruction=source.instruction,
            instruction_text=source.instruction_text,
            needs=priced.needs,
        )
    check_length(workspace, priced)
    check_storage(workspace, adds_ms=priced.estimate_audio_ms)
    if is_any_blocked(part.text for place, part in enumerate(priced.plan) if place not in priced.reused):
        raise TextBlocked


def _priced(
    workspace: Workspace, user: User | None, source: SynthesisJob, edits: Sequence[SegmentEdit]
) -> Quote:
    engine = pool_offer()
    revised = _revised(workspace, user, source, edits, engine)
    chapters, plan = revised_chapters(source, revised)
    anew = [part for part in plan if part.kept is None]
    if not all(engine.suits(part.needs) for part in anew):
        raise NotOffered
    kept = {
        place: Reusable(part.kept.audio_key, part.kept.audio_ms, part.kept.spoken_by)
        for place, part in enumerate(plan)
        if part.kept is not None
    }
    priced = priced_plan(
        manner=Manner(
            workspace_id=workspace.pk,
            job_class=source.job_class,
            language=source.language,
            speed=source.speed,
            instruction=source.instruction,
            instruction_text=source.instruction_text,
        ),
        voice=voice_as_before(source.voice, source.voice_version),
        text=whole_text(source, _changed(edits, revised)),
        characters=sum(part.characters for part in plan),
        plan=plan,
        chapters=chapters,
        speakers=[],
        needs=sorted(set().union(*(part.needs for part in anew))),
        estimate_audio_ms=_audio_ms(source, anew) + sum(one.audio_ms for one in kept.values()),
        pronunciation_version=source.pronunciation_version,
    )
    _check_size(source, priced)
    # The job's own audio comes first, whoever spoke it.
    return priced.with_reused({**spoken_before(priced, source.seed), **kept})


def _audio_ms(source: SynthesisJob, anew: Sequence[SegmentPlan]) -> int:
    said = sum(estimate_audio_ms(part.text) + silence_ms(part.text) for part in anew)
    return round(said / source.speed)


def _check_size(source: SynthesisJob, priced: Quote) -> None:
    """As for every text."""
    if not priced.plan:
        raise TextEmpty
    limit = max_job_characters(source.job_class)
    if priced.characters > limit:
        raise TextTooLong(characters=priced.characters, limit=limit)
    if len(priced.plan) > MAX_JOB_SEGMENTS:
        raise TextTooManyParts(parts=len(priced.plan), limit=MAX_JOB_SEGMENTS)
    if priced.estimate_audio_ms > MAX_JOB_AUDIO_MS:
        hours = priced.estimate_audio_ms // HOUR_MS + 1
        raise SpeechTooLong(hours=hours, limit_hours=MAX_JOB_AUDIO_MS // HOUR_MS)


def _changed(edits: Sequence[SegmentEdit], revised: Sequence[Revised]) -> dict[int, str]:
    """What the segments say now whose text was changed, as it is spoken; "" for one that is left out."""
    changed = {edit.index: "" for edit in edits if edit.text is not None}
    for one in revised:
        if one.index in changed:
            changed[one.index] += one.plan.text
    return changed


def _revised(
    workspace: Workspace,
    user: User | None,
    source: SynthesisJob,
    edits: Sequence[SegmentEdit],
    engine: PoolOffer,
) -> list[Revised]:
    """The segments of the new job in order. Raises RevisionInvalid, AudioGone."""
    parts: dict[int, list[Segment]] = defaultdict(list)
    for segment in source.segments.all():
        parts[segment.index].append(segment)
    named = Counter(edit.index for edit in edits)
    faults: list[tuple[int, DomainError]] = [
        (index, SegmentUnknown() if index not in parts else SegmentTwice())
        for index, times in named.items()
        if index not in parts or times > 1
    ]
    by_index = {edit.index: edit for edit in edits}
    find_voice = cache(lambda voice_id, number: voice_as_before(voice_of(workspace, user, voice_id), number))
    revised: list[Revised] = []
    for index, whole in parts.items():
        edit = by_index.get(index)
        if edit is None:
            if not all(segment.audio_key for segment in whole):
                raise AudioGone
            revised += [Revised(index, _kept(source, segment)) for segment in whole]
            continue
        try:
            revised += [
                Revised(index, part) for part in _spoken_anew(source, whole, edit, engine, find_voice)
            ]
        except DomainError as fault:
            faults.append((index, fault))
    if faults:
        raise RevisionInvalid(faults=sorted(faults, key=lambda fault: fault[0]))
    return revised


def _kept(source: SynthesisJob, segment: Segment) -> SegmentPlan:
    return SegmentPlan(
        text=segment.text,
        voice=with_number(segment.voice or source.voice, segment.voice_version),
        needs=segment.needs,
        characters=segment.characters,
        estimate_gpu_ms=0,
        held_gpu_ms=0,
        speaker=segment.speaker,
        chapter=segment.chapter,
        language=source.language,
        seed=segment.seed,
        kept=segment,
    )


def _spoken_anew(
    source: SynthesisJob,
    whole: Sequence[Segment],
    edit: SegmentEdit,
    engine: PoolOffer,
    find_voice: Callable[[uuid.UUID, int], Voice],
) -> list[SegmentPlan]:
    """The segments that an edited one becomes: none where it is left out. `whole` has all of its parts."""
    first, before = whole[0], "".join(segment.text for segment in whole)
    text, seed = before, edit.seed
    if edit.text is None:
        pieces = [before]
        seed = secrets.randbelow(SEEDS) if seed is None else seed
    elif not edit.text.strip():
        return []
    else:
        clean = clean_text(edit.text, supported_languages=engine.languages, language=source.language)
        # The line ends behind it say how long the speaker rests.
        text = clean.text + before[len(before.rstrip()) :]
        pieces = _pieces(source, first, text)
        seed = first.seed if seed is None else seed
    planner = Planner(
        # With the recording that the rest was spoken with, where it is still there.
        voices={first.speaker: find_voice(first.voice_id or source.voice_id, first.voice_version)},
        languages=languages_of(text, asked=source.language),
        language=source.language,
        gpu_ms_per_audio_s=engine.gpu_ms_per_audio_s,
        speed=source.speed,
        # As the rest of it was spoken, whatever was saved since.
        pronunciations=dictionary(source.workspace_id, source.pronunciation_version),
    )
    return [
        replace(planner.planned(piece, speaker=first.speaker, chapter=first.chapter), seed=seed)
        for piece in pieces
    ]


def _pieces(source: SynthesisJob, first: Segment, text: str) -> list[str]:
    """A title is one segment, as in every text: its chapter is called by what the first piece says."""
    if title_said_by(source, chapter=first.chapter, index=first.index):
        line = " ".join(text.split())
        return cut_into_segments(
            line + text[len(text.rstrip()) :], preferred_ms=MAX_SEGMENT_MS, first_ms=MAX_SEGMENT_MS
        )
    return cut_into_segments(text, first_ms=PREFERRED_SEGMENT_MS if first.index else FIRST_SEGMENT_MS)


def _build(source: SynthesisJob, priced: Quote) -> SynthesisJob:
    """The new job: the old one's request, but for the text."""
    return SynthesisJob(
        workspace=source.workspace,
        voice=priced.voice,
        voice_version=priced.voice.version,
        job_class=source.job_class,
        mode=source.mode,
        instruction=source.instruction,
        instruction_text=source.instruction_text,
        text=priced.text,
        cast=source.cast,
        chapters=[asdict(chapter) for chapter in priced.chapters],
        language=source.language,
        pronunciation_version=priced.pronunciation_version,
        seed=source.seed,
        speed=source.speed,
        response_format=source.response_format,
        sample_rate_hz=source.sample_rate_hz,
        loudness_lufs=source.loudness_lufs,
        characters=priced.characters,
        price_version=priced.price,
        revision_of=source,
    )
