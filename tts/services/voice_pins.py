"""Jobs and the versions of voices that they were quoted with: what waits or speaks keeps its recording."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.models import Exists, OuterRef

from tts.models import Segment, SynthesisJob, Voice, VoiceKind
from tts.states import JOB_LIVE, SEGMENT_LIVE
from tts.version_errors import VoiceChanged


def pin_versions(voices: Iterable[Voice]) -> None:
    """See to it that nobody deletes these voices' versions before the segments that say them are stored.

    Call in the transaction that stores those. Raises VoiceChanged where one is gone.
    """
    wanted = {(voice.pk, voice.version) for voice in voices if voice.kind == VoiceKind.CLONE}
    if not wanted:
        return
    with connection.cursor() as cursor:
        # As a foreign key would: it shuts out a deletion and nothing else.
        cursor.execute(
            "SELECT 1 FROM tts_voiceversion WHERE (voice_id, number) IN"
            " (SELECT * FROM unnest(%s::uuid[], %s::smallint[])) FOR KEY SHARE",
            [[voice_id for voice_id, _ in wanted], [number for _, number in wanted]],
        )
        found = len(cursor.fetchall())
    if found < len(wanted):
        raise VoiceChanged


def is_needed(voice: Voice, number: int) -> bool:
    """Whether anything that waits or speaks was quoted with this version."""
    if voice.workspace_id is None:
        raise ValueError("a preset voice has no versions")
    jobs = SynthesisJob.objects.filter(workspace_id=voice.workspace_id, state__in=JOB_LIVE)
    segments = Segment.objects.filter(job=OuterRef("pk"), voice_version=number, state__in=SEGMENT_LIVE)
    own = segments.filter(voice__isnull=True)
    return (
        jobs.filter(Exists(own), voice=voice.pk).exists()
        or jobs.filter(Exists(segments.filter(voice=voice.pk))).exists()
    )
