"""Another recording of a voice: what was submitted before speaks with the one that it was quoted with."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from accounts.models import ConsentRecord, User, Workspace
from tests.audio.clips import noise, wav
from tests.factories import keep_version, make_voice
from tests.pool.conftest import Submit, make_device
from tests.pool.voice_recordings import (
    clone,
    engine,
    everything,
    files,
    recording,
    replace,
    speak_next,
    upload,
)
from tts import storage
from tts.audio.errors import ClipRejected
from tts.audio.wav import read_wav
from tts.engine.process import EngineProcess
from tts.errors import (
    ConsentRequired,
    PresetVoiceFixed,
    SpokenConsentMissing,
    SpokenConsentUnusable,
    StorageFull,
    VoiceNotFound,
)
from tts.models import Segment, Voice, VoiceVersion
from tts.selectors.voice_versions import with_number
from tts.services.jobs import cancel_job, repeat_request
from tts.services.revisions import SegmentEdit, revise_job
from tts.services.stored import BYTES_PER_MS, stored_bytes
from tts.services.voice_features import keep_features, read_features
from tts.services.voice_versions import MAX_VERSIONS, delete_version, use_version
from tts.services.voices import create_voice, delete_voice
from tts.states import JobState
from tts.version_errors import (
    TooManyVoiceVersions,
    VoiceVersionCurrent,
    VoiceVersionNeeded,
    VoiceVersionNotFound,
)

__all__ = ["clone", "engine", "recording"]
TEXT = "Two boats are waiting for us."
SCRIPT = "Alice: Good morning.\nBob: And a good evening."


def test_a_job_speaks_with_the_recording_that_it_was_quoted_with(
    workspace: Workspace,
    customer: User,
    submit: Submit,
    clone: Voice,
    recording: bytes,
    engine: EngineProcess,
) -> None:
    make_device()
    submit(TEXT, voice_id=clone.pk, seed=7)
    _, first_audio = speak_next(engine)
    # Two wait: one for each recording.
    before = submit(TEXT + " Before.", voice_id=clone.pk, seed=7)
    current = replace(workspace, customer, clone, recording)
    after = submit(TEXT + " Before.", voice_id=clone.pk, seed=7)
    assert (before.voice_version, after.voice_version, current.version) == (1, 2, 2)
    assert before.segments.get().phrase != after.segments.get().phrase
    old, old_audio = speak_next(engine)
    new, new_audio = speak_next(engine)
    assert (old.work.job.pk, new.work.job.pk) == (before.pk, after.pk)
    assert old_audio != new_audio
    asked = [speaking._request(0, TEXT).voice for speaking in (old, new)]
    assert [(voice.transcript, voice.language) for voice in asked] == [
        ("The first words.", "en"),
        ("The second words.", "zh"),
    ]
    assert [voice.reference_sha256 for voice in asked] == [clone.clip_sha256, current.clip_sha256]
    # What was spoken stands for its own recording: said again with either, it costs nothing and sounds the same.
    use_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    for text, audio in ((TEXT, first_audio), (TEXT + " Before.", old_audio)):
        again = submit(text, voice_id=clone.pk, seed=7)
        assert (again.state, again.voice_version, again.reused_count) == (JobState.SUCCEEDED, 1, 1)
        assert read_wav(storage.read(again.audio_key)).pcm == audio


def test_nothing_spoken_with_one_recording_is_used_for_another(
    workspace: Workspace,
    customer: User,
    submit: Submit,
    clone: Voice,
    recording: bytes,
    engine: EngineProcess,
) -> None:
    make_device()
    waiting = submit(TEXT, voice_id=clone.pk, seed=7)
    replace(workspace, customer, clone, recording)
    speak_next(engine)
    waiting.refresh_from_db()
    assert waiting.state == JobState.SUCCEEDED
    job = submit(TEXT, voice_id=clone.pk, seed=7)
    assert (job.state, job.reused_count, job.voice_version) == (JobState.QUEUED, 0, 2)


def test_every_voice_of_a_script_is_pinned(
    workspace: Workspace,
    customer: User,
    submit: Submit,
    voice: Voice,
    clone: Voice,
    recording: bytes,
    engine: EngineProcess,
) -> None:
    make_device()
    cast = {"Alice": clone.pk, "Bob": voice.pk}
    job = submit(SCRIPT, mode="script", cast=cast)
    current = replace(workspace, customer, clone, recording)
    spoken = {
        speaking.work.segment.speaker: speaking for speaking, _ in (speak_next(engine), speak_next(engine))
    }
    assert (
        spoken["Alice"]._request(0, TEXT).voice.reference_sha256 == clone.clip_sha256 != current.clip_sha256
    )
    assert spoken["Bob"]._request(0, TEXT).voice.preset_key == voice.preset_key
    assert set(job.segments.values_list("speaker", "voice_version")) == {("Alice", 1), ("Bob", 1)}
    again = submit(SCRIPT, mode="script", cast=cast)
    assert set(again.segments.values_list("speaker", "voice_version")) == {("Alice", 2), ("Bob", 1)}


def test_a_revision_keeps_to_its_jobs_recording_while_there_is_one_and_a_repetition_takes_the_current(
    workspace: Workspace,
    customer: User,
    submit: Submit,
    clone: Voice,
    recording: bytes,
    engine: EngineProcess,
) -> None:
    make_device()
    job = submit(TEXT, voice_id=clone.pk)
    speak_next(engine)
    current = replace(workspace, customer, clone, recording)

    def revised(text: str) -> Segment:
        revise_job(
            workspace=workspace,
            user=customer,
            api_key=None,
            job_id=job.pk,
            edits=[SegmentEdit(0, text)],
            idempotency_key=None,
            client_address=None,
            request_id="test",
        )
        speaking, _ = speak_next(engine)
        segment = speaking.work.segment
        sha = clone.clip_sha256 if segment.voice_version == 1 else current.clip_sha256
        assert speaking._request(0, text).voice.reference_sha256 == sha
        assert speaking.work.job.voice_version == segment.voice_version
        return segment

    assert revised("Three boats.").voice_version == 1
    assert submit(**vars(repeat_request(job))).voice_version == 2
    speak_next(engine)
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    assert revised("Four boats.").voice_version == 2


def test_replacing_keeps_the_voice_and_everything_of_the_version_before(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    size = stored_bytes(workspace.pk)
    current = replace(workspace, customer, clone, recording, transcript="  The second words. ")
    assert (current.pk, current.name, current.shared, current.created_at) == (
        clone.pk,
        clone.name,
        clone.shared,
        clone.created_at,
    )
    first, second = VoiceVersion.objects.filter(voice=clone).order_by("number")
    assert (first.clip_key, first.consent_id, first.transcript) == (
        clone.clip_key,
        clone.consent_id,
        "The first words.",
    )
    for name in (
        "language",
        "transcript",
        "clip_key",
        "clip_sha256",
        "clip_ms",
        "quality",
        "peaks",
        "consent_id",
    ):
        assert getattr(current, name) == getattr(second, name), name
    assert (second.number, second.created_by_id, second.transcript) == (2, customer.pk, "The second words.")
    consent = ConsentRecord.objects.get(pk=second.consent_id)
    assert (consent.voice_id, consent.clip_sha256, consent.user_id) == (
        clone.pk,
        second.clip_sha256,
        customer.pk,
    )
    assert storage.exists(first.clip_key)
    assert storage.exists(second.clip_key)
    assert stored_bytes(workspace.pk) == size + second.clip_ms * BYTES_PER_MS


def test_an_earlier_recording_is_used_again_and_numbers_are_given_once(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    replace(workspace, customer, clone, recording)
    back = use_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    for name in (
        "version",
        "clip_key",
        "clip_sha256",
        "transcript",
        "consent_id",
        "quality",
        "peaks",
        "language",
    ):
        assert getattr(back, name) == getattr(clone, name), name
    before = everything()
    use_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    assert everything() == before
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=2)
    assert replace(workspace, customer, clone, recording).version == 3
    assert list(clone.versions.order_by("number").values_list("number", flat=True)) == [1, 3]


def test_a_deleted_version_leaves_neither_file_nor_features(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes, engine: EngineProcess
) -> None:
    loaded = engine.loaded
    assert loaded is not None
    keep_features(voice=clone, engine=loaded, content=b"of the first")
    current = replace(workspace, customer, clone, recording, spoken_consent=upload(recording))
    second = VoiceVersion.objects.get(voice=clone, number=2)
    assert storage.exists(second.spoken_key)
    use_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=2)
    assert not storage.exists(second.clip_key)
    assert not storage.exists(second.spoken_key)
    assert storage.exists(clone.clip_key)
    assert read_features(voice=clone, engine=loaded) == b""
    assert ConsentRecord.objects.filter(pk=second.consent_id).exists()
    # A worker that lost its attempt long ago sends what it has computed of the deleted one.
    keep_features(voice=current, engine=loaded, content=b"too late")
    assert read_features(voice=current, engine=loaded) == b""
    keep_features(voice=clone, engine=loaded, content=b"anew")
    assert read_features(voice=clone, engine=loaded) == b"anew"


def test_a_deleted_voice_leaves_nothing_of_any_version(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes, engine: EngineProcess
) -> None:
    assert engine.loaded is not None
    replace(workspace, customer, clone, recording, spoken_consent=upload(recording))
    current = replace(workspace, customer, clone, recording)
    keep_features(voice=clone, engine=engine.loaded, content=b"first")
    keep_features(voice=current, engine=engine.loaded, content=b"third")
    assert len(files()) == 6
    delete_voice(workspace=workspace, user=customer, voice_id=clone.pk)
    assert files() == []
    assert not VoiceVersion.objects.exists()
    assert ConsentRecord.objects.count() == 3
    assert stored_bytes(workspace.pk) == 0


def test_a_version_that_jobs_wait_for_stays(
    workspace: Workspace,
    customer: User,
    submit: Submit,
    voice: Voice,
    clone: Voice,
    recording: bytes,
    engine: EngineProcess,
) -> None:
    make_device()
    alone = submit(TEXT, voice_id=clone.pk)
    cast = submit(SCRIPT, mode="script", cast={"Alice": clone.pk, "Bob": voice.pk})
    replace(workspace, customer, clone, recording)
    before = everything()

    def refused() -> None:
        with pytest.raises(VoiceVersionNeeded):
            delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)

    refused()
    assert everything() == before
    speak_next(engine)
    alone.refresh_from_db()
    assert alone.state == JobState.SUCCEEDED
    refused()
    cancel_job(workspace=workspace, job_id=cast.pk)
    submit(TEXT, voice_id=clone.pk)
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    assert not storage.exists(clone.clip_key)


def test_what_is_refused_leaves_nothing(
    workspace: Workspace,
    customer: User,
    voice: Voice,
    clone: Voice,
    recording: bytes,
) -> None:
    before = everything()
    with pytest.raises(ConsentRequired):
        replace(workspace, customer, clone, recording, consent=False)
    with pytest.raises(ClipRejected):
        replace(workspace, customer, clone, wav(noise(4.0, rms=0.1)))
    with pytest.raises(SpokenConsentUnusable):
        replace(workspace, customer, clone, recording, spoken_consent=upload(b"no sound"))
    with pytest.raises(PresetVoiceFixed):
        replace(workspace, customer, voice, recording)
    spoken = {**settings.VOICEPOOL, "SPOKEN_CONSENT": True}
    with override_settings(VOICEPOOL=spoken), pytest.raises(SpokenConsentMissing):
        replace(workspace, customer, clone, recording)
    workspace.storage_bytes_limit = stored_bytes(workspace.pk) + 1
    with pytest.raises(StorageFull):
        replace(workspace, customer, clone, recording)
    workspace.storage_bytes_limit = None
    for number in (0, 2, 10**20):
        for act in (use_version, delete_version):
            with pytest.raises(VoiceVersionNotFound):
                act(workspace=workspace, user=customer, voice_id=clone.pk, number=number)
    with pytest.raises(VoiceVersionCurrent):
        delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=1)
    assert everything() == before


def test_a_voice_has_ten_versions_at_most(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    for number in range(2, MAX_VERSIONS):
        keep_version(with_number(clone, number))
    Voice.objects.filter(pk=clone.pk).update(last_version=MAX_VERSIONS - 1)
    assert replace(workspace, customer, clone, recording).version == MAX_VERSIONS == 10
    before = everything()
    with pytest.raises(TooManyVoiceVersions):
        replace(workspace, customer, clone, recording)
    assert everything() == before
    delete_version(workspace=workspace, user=customer, voice_id=clone.pk, number=4)
    assert replace(workspace, customer, clone, recording).version == 11


def test_a_draft_has_no_versions_to_arrange(
    workspace: Workspace, customer: User, recording: bytes, clone: Voice
) -> None:
    Voice.objects.filter(pk=clone.pk).update(state="draft")
    before = everything()
    with pytest.raises(VoiceNotFound):
        replace(workspace, customer, clone, recording)
    assert everything() == before


def test_what_there_was_before_versions_becomes_the_first(
    workspace: Workspace, customer: User, clone: Voice, recording: bytes
) -> None:
    spoken = create_voice(
        workspace=workspace,
        user=customer,
        upload=upload(recording),
        name="Agreed aloud",
        language="zh",
        transcript="Its words.",
        consent=True,
        locale="en",
        address=None,
        spoken_consent=upload(recording),
    )
    gone = make_voice(workspace, customer)
    delete_voice(workspace=workspace, user=customer, voice_id=gone.pk)
    own = ("id", "created_at")
    columns = [field.attname for field in VoiceVersion._meta.concrete_fields if field.attname not in own]
    rows = VoiceVersion.objects.order_by("voice_id").values_list(*columns)
    made = list(rows)
    assert {row[0] for row in made} == {clone.pk, spoken.pk}
    VoiceVersion.objects.all().delete()
    migration = import_module("tts.migrations.0027_voice_versions")
    with connection.cursor() as cursor:
        cursor.execute(migration.FIRST_VERSIONS)
    assert list(rows.all()) == made
    assert all(storage.exists(version.clip_key) for version in VoiceVersion.objects.all())
    assert storage.exists(VoiceVersion.objects.get(voice=spoken).spoken_key)
