"""The label in words: spoken by the pool itself, and heard before what is delivered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import User, Workspace
from tests.api.test_media import body_of
from tests.cast import api_of
from tests.pool.conftest import Submit, make_device
from tests.pool.test_attempts import assert_books_balance, claim_next, spoken
from tts import storage
from tts.audio.explicit import tone_label
from tts.audio.wav import read_wav
from tts.models import Attempt, SynthesisJob
from tts.services.attempts import finish_attempt
from tts.services.spoken_labels import LABEL_TEXTS, ensure_spoken_labels
from tts.services.sweep import sweep

REST = bytes(24_000)  # half a second at 24 kHz


@pytest.fixture(autouse=True)
def no_labels() -> Iterator[None]:
    for language in LABEL_TEXTS:
        storage.delete(storage.spoken_label_key(language))
    yield
    for language in LABEL_TEXTS:
        storage.delete(storage.spoken_label_key(language))


def speak_what_waits() -> None:
    while Attempt.objects.filter(state="bound").exists():
        work = claim_next()
        finish_attempt(work=work, outcome=spoken(work))
        sweep()


def test_the_words_lead_what_is_delivered_once_they_are_spoken(
    customer: User, workspace: Workspace, submit: Submit
) -> None:
    make_device()
    job = submit("The lake is quiet this morning.")
    speak_what_waits()
    job.refresh_from_db()
    master = read_wav(storage.read(job.audio_key)).pcm
    ensure_spoken_labels()
    assert SynthesisJob.objects.count() == 1, "nobody wants the words"

    Workspace.objects.filter(pk=workspace.pk).update(explicit_label="spoken")
    api, path = api_of(customer), f"/api/v1/jobs/{job.pk}/audio"
    tone = tone_label(24_000).tobytes()
    assert read_wav(body_of(api.get(f"{path}?format=wav"))).pcm == tone + REST + master
    ensure_spoken_labels()
    ensure_spoken_labels()
    asked = SynthesisJob.objects.exclude(pk=job.pk)
    assert sorted(asked.values_list("text", flat=True)) == sorted(LABEL_TEXTS.values())
    assert set(asked.values_list("job_class", flat=True)) == {"batch"}
    speak_what_waits()
    ensure_spoken_labels()

    words = read_wav(storage.read(storage.spoken_label_key("en"))).pcm
    assert len(words) > 24_000
    assert body_of(api.get(f"{path}?format=pcm")) == words + REST + master
    ensure_spoken_labels()
    assert asked.count() == len(LABEL_TEXTS)
    assert_books_balance()


def test_what_an_operator_has_put_there_stays(customer: User, settings: Any) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "EXPLICIT_LABEL": "spoken"}
    for language in LABEL_TEXTS:
        storage.save(storage.spoken_label_key(language), language.encode())
    make_device()
    ensure_spoken_labels()
    assert not SynthesisJob.objects.exists()
    assert storage.read(storage.spoken_label_key("zh")) == b"zh"
