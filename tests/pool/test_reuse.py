"""Which speech stands for a segment: what was spoken in the same way, by what the pool speaks with now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accounts.models import Workspace
from billing.models import Hold
from tests.factories import make_job, make_user, personal_workspace
from tests.pool.conftest import Submit, make_device
from tests.pool.spoken_before import (
    GOOD,
    GREETING,
    LONG,
    REST,
    Say,
    say,
    speak_all,
)
from tts.models import Device, ModelShare, Segment, Voice
from tts.services.quoting import quote
from tts.services.yielding import pieces_of
from tts.states import JobState

__all__ = ["say"]


def test_without_a_seed_nothing_is_looked_for_and_the_drawn_one_can_be_asked_for(
    say: Say, submit: Submit
) -> None:
    make_device()
    first = say(seed=None)
    assert say(seed=None).reused_count == 0
    assert submit(GREETING, seed=first.seed).reused_count == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 8},
        {"speed": 1.25},
        {"language": "en"},
        {"text": GREETING.replace("thank", "thanks")},
    ],
)
def test_another_text_seed_or_setting_is_spoken(say: Say, submit: Submit, changed: dict[str, Any]) -> None:
    make_device()
    say()
    job = submit(**{"text": GREETING, "seed": 7, **changed})
    assert (job.state, job.reused_count) == (JobState.QUEUED, 0)
    assert Hold.objects.filter(job_id=job.pk, state="open").exists()


def test_another_voice_is_spoken(say: Say, submit: Submit) -> None:
    make_device()
    say()
    other = Voice.objects.filter(kind="preset").order_by("pk")[1]
    assert submit(GREETING, seed=7, voice_id=other.pk).reused_count == 0


def test_format_loudness_and_urgency_do_not_change_what_is_spoken(say: Say, submit: Submit) -> None:
    make_device()
    say()
    job = submit(GREETING, seed=7, response_format="mp3", loudness_lufs=-16.0, job_class="batch")
    assert (job.state, job.reused_count, job.response_format) == (JobState.SUCCEEDED, 1, "mp3")


def test_batch_work_of_several_sentences_is_another_phrase(
    say: Say, workspace: Workspace, voice: Voice
) -> None:
    """It is given sentence by sentence, with a rest between them."""
    make_device()
    whole = say(LONG)
    texts = list(Segment.objects.filter(job=whole).order_by("index").values_list("text", flat=True))
    given_whole = {place for place, text in enumerate(texts) if pieces_of(text, job_class="batch") == [text]}
    assert 0 in given_whole
    assert len(given_whole) < len(texts)
    priced = quote(workspace=workspace, user=None, voice_id=voice.pk, text=LONG, seed=7, job_class="batch")
    assert priced.reused.keys() == given_whole
    urgent = quote(workspace=workspace, user=None, voice_id=voice.pk, text=LONG, seed=7)
    assert (urgent.is_all_reused, urgent.held_micros, urgent.estimate_micros) == (True, 0, 0)


def test_another_workspace_never_hears_it(say: Say, voice: Voice) -> None:
    make_device()
    first = say()
    stranger = make_user("charlie")
    theirs = personal_workspace(stranger)
    job = make_job(theirs, stranger, voice, text=GREETING, seed=7)
    assert (job.state, job.reused_count) == (JobState.QUEUED, 0)
    mine, other = Segment.objects.get(job=first), Segment.objects.get(job=job)
    assert len(mine.phrase) == 64
    assert mine.phrase != other.phrase
    priced = quote(workspace=theirs, user=None, voice_id=voice.pk, text=GREETING, seed=7)
    assert not priced.reused


@pytest.mark.parametrize(
    "outcome",
    [
        {"check": replace(GOOD, findings=("long_silence",))},
        {"check": None},
        {"seed": 1007},
        {"engine_version": "0"},
        {"engine": "another"},
    ],
)
def test_what_was_found_in_it_or_another_seed_or_model_keeps_it_from_being_used(
    submit: Submit, outcome: dict[str, Any]
) -> None:
    make_device()
    submit(GREETING, seed=7)
    speak_all(**outcome)
    assert submit(GREETING, seed=7).reused_count == 0


def test_a_new_version_of_the_engine_speaks_anew(say: Say, submit: Submit) -> None:
    device = make_device()
    say()
    Device.objects.filter(pk=device.pk).update(engine_version="2")
    assert submit(GREETING, seed=7).reused_count == 0


def test_two_engines_in_the_pool_use_a_job_whole_or_not_at_all(say: Say, submit: Submit) -> None:
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    other = make_device("cpu:1@here")
    Device.objects.filter(pk=other.pk).update(engine="another", engine_version="5")
    assert submit(opening + REST * 3, seed=7).reused_count == 0
    again = submit(LONG, seed=7)
    assert (again.state, again.reused_count) == (JobState.SUCCEEDED, again.segment_count)


def test_what_a_model_on_trial_spoke_is_not_used(say: Say, submit: Submit) -> None:
    make_device()
    say()
    ModelShare.objects.create(engine="simulated", share=0)
    other = make_device("cpu:1@here")
    Device.objects.filter(pk=other.pk).update(engine="another", engine_version="5")
    assert submit(GREETING, seed=7).reused_count == 0


def test_without_a_device_nobody_knows_what_the_pool_would_speak_with(say: Say, submit: Submit) -> None:
    device = make_device()
    say()
    Device.objects.filter(pk=device.pk).update(state="stopped")
    assert submit(GREETING, seed=7).reused_count == 0


def test_one_that_was_put_on_trial_meanwhile_draws_no_model_for_what_it_uses_again(
    say: Say, submit: Submit
) -> None:
    """One job speaks with one model: what is new goes with what is used again."""
    make_device()
    whole = say(LONG)
    opening = Segment.objects.get(job=whole, index=0).text
    other = make_device("cpu:1@here")
    Device.objects.filter(pk=other.pk).update(engine="another", engine_version="5")
    ModelShare.objects.create(engine="another", share=10_000)
    job = submit(opening + REST * 3, seed=7)
    assert (job.engine, job.reused_count) == ("", 1)
    assert submit(REST, seed=7).engine == "another"
