"""Speech that is used again: within one workspace, what was spoken with the same voice, settings and seed.

There is no store beside the segments: what may be used again is the workspace's own segments that still have their
audio, so whoever deletes a job deletes it from here too. A segment says what decides how it sounds as a keyed digest
(`phrase`), and which engine and version spoke it (`spoken_by`), where that may stand for it: nothing was found in its
speech, and it has the seed that was asked for.

Only what is paid is used, of jobs that have ended: a job that fails by our fault gives all its money back, and what it
had spoken would be had for nothing the next time.

Only what the pool would make now is used: audio of an engine or version that speaks no more would not fit the rest.
Where several of them speak, a job is used again whole or not at all. What a model on trial spoke is not used.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac

from tts.models import Device, ModelShare, Segment, Voice
from tts.services.closing import maker_name
from tts.services.yielding import pieces_of
from tts.states import DEVICE_HEARTBEAT_SECONDS, JOB_ENDED, DeviceState, JobState, SegmentState
from tts.text.instructions import sentence_of

_SALT = "tts.services.phrases"


@dataclass(frozen=True)
class Reusable:
    """A spoken segment whose audio may stand for another one."""

    audio_key: str
    audio_ms: int
    spoken_by: str


@dataclass(frozen=True)
class Manner:
    """What decides how a job's segments sound, besides their texts, voices and seeds."""

    workspace_id: uuid.UUID
    job_class: str
    language: str
    speed: float
    instruction: str
    instruction_text: str


def phrase_of(*, manner: Manner, voice: Voice, text: str, spoken: str, seed: int) -> str:
    """The digest of all that decides how a segment sounds but the engine: 64 hexadecimal digits.

    Keyed, as the digest of a short text tells the text to whoever tries all of them. `spoken` is what the engine is
    given for `text`; batch work is given sentence by sentence, with a rest between them.
    """
    pieces = pieces_of(text, job_class=manner.job_class)
    facts = [
        str(manner.workspace_id),
        str(voice.pk),
        voice.preset_key,
        voice.clip_sha256,
        voice.transcript,
        voice.language,
        spoken,
        [len(piece) for piece in pieces] if len(pieces) > 1 else [],
        manner.language,
        repr(float(manner.speed)),
        manner.instruction_text or sentence_of(manner.instruction),
        seed,
    ]
    return salted_hmac(_SALT, json.dumps(facts), algorithm="sha256").hexdigest()


def makers_now(needs: Collection[str]) -> set[str]:
    """Which engines and versions the pool would speak this with now, as `Segment.spoken_by` says it. Two queries."""
    ready = Device.objects.filter(
        state=DeviceState.READY, heartbeat_at__gte=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS)
    ).values_list("engine", "engine_version", "offers")
    able = {
        (engine, version)
        for engine, version, offers in ready
        if engine and (not offers or set(needs) <= set(offers))
    }
    on_trial = set(ModelShare.objects.values_list("engine", flat=True))
    # A model on trial speaks everything while no other one is ready (tts_bind).
    own = {(engine, version) for engine, version in able if engine not in on_trial} or able
    return {maker_name(engine, version) for engine, version in own}


def find_spoken(
    *, workspace_id: uuid.UUID, phrases: Sequence[str], needs: Collection[str]
) -> dict[int, Reusable]:
    """For which of these phrases, by their places, the workspace has audio that may be used. Three queries at most."""
    makers = makers_now(needs)
    if not makers:
        return {}
    rows = (
        Segment.objects.filter(
            ~Q(spoken_by=""),
            workspace_id=workspace_id,
            state=SegmentState.SUCCEEDED,
            phrase__in=set(phrases) - {""},
            spoken_by__in=makers,
            job__state__in=JOB_ENDED,
        )
        .exclude(audio_key="")
        # Given back, as a whole (tts.services.endings). Where speech costs nothing there is nothing to be had by that.
        .exclude(job__state=JobState.FAILED, job__charged_micros=0)
        .order_by("phrase", "spoken_by", "-pk")
        .distinct("phrase", "spoken_by")
    )
    by_maker: dict[str, dict[str, Reusable]] = defaultdict(dict)
    for phrase, spoken_by, audio_key, audio_ms in rows.values_list(
        "phrase", "spoken_by", "audio_key", "audio_ms"
    ):
        by_maker[spoken_by][phrase] = Reusable(audio_key, audio_ms, spoken_by)
    if len(makers) == 1:
        return _places(phrases, by_maker[next(iter(makers))])
    # Whoever speaks the rest is not known before: only a maker that has all of it fits itself.
    whole = (found for _, found in sorted(by_maker.items()) if set(phrases) <= found.keys())
    return _places(phrases, next(whole, {}))


def _places(phrases: Sequence[str], found: Mapping[str, Reusable]) -> dict[int, Reusable]:
    return {place: found[phrase] for place, phrase in enumerate(phrases) if phrase in found}
