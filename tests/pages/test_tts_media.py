"""Audio and events for the page session: ranges, validators, headers, live events, the cap on open streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from portal.lib.ranges import NotSatisfiable, byte_range, content_disposition
from portal.lib.sse import OPEN_STREAMS
from tests.factories import finish_job, make_voice, personal_workspace
from tts import storage
from tts.audio.wav import read_wav
from tts.models import SynthesisJob, Voice
from tts.selectors.voices import preset_voices
from tts.states import JobState


@pytest.fixture
def spoken(alices_job: SynthesisJob) -> tuple[str, bytes]:
    """The address of a job's audio, and the file."""
    audio = finish_job(alices_job)
    return reverse("job_audio_page", args=[alices_job.pk]), audio


def body(response: Any) -> bytes:
    """All of it; the test client closes what was read to its end."""
    return b"".join(response.streaming_content) if response.streaming else response.content


def test_the_whole_file_is_private_and_cannot_be_misread(
    alice_client: Client, spoken: tuple[str, bytes]
) -> None:
    url, audio = spoken
    response = alice_client.get(url)
    assert body(response) == audio
    assert response.headers["Content-Type"] == "audio/wav"
    assert response.headers["Content-Length"] == str(len(audio))
    assert response.headers["Accept-Ranges"] == "bytes"
    assert response.headers["Cache-Control"] == "private, no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Disposition"].startswith('inline; filename="voicepool-')
    download = alice_client.get(url, {"download": "1"})
    assert download.headers["Content-Disposition"].startswith('attachment; filename="voicepool-')
    assert download.headers["Content-Disposition"].endswith(".wav")
    body(download)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-99", 0, 99),
        ("bytes=100-", 100, None),
        ("bytes=-50", -50, None),
        ("bytes=10-999999999", 10, None),
    ],
)
def test_a_range_is_answered_exactly(
    alice_client: Client, spoken: tuple[str, bytes], asked: str, first: int, last: int | None
) -> None:
    url, audio = spoken
    response = alice_client.get(url, headers={"Range": asked})
    expected = audio[first:] if last is None else audio[first : last + 1]
    start = len(audio) + first if first < 0 else first
    assert response.status_code == 206
    assert body(response) == expected
    assert response.headers["Content-Length"] == str(len(expected))
    assert response.headers["Content-Range"] == f"bytes {start}-{start + len(expected) - 1}/{len(audio)}"


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0"])
def test_a_range_behind_the_end_is_416(alice_client: Client, spoken: tuple[str, bytes], asked: str) -> None:
    url, audio = spoken
    response = alice_client.get(url, headers={"Range": asked})
    assert response.status_code == 416
    assert response.headers["Content-Range"] == f"bytes */{len(audio)}"
    assert response.content == b""


MEANINGLESS = ["bytes=0-1,5-6", "bytes=9-3", "bytes=a-b", "bytes=", "items=0-5", "bytes=-", "x" * 9000]


@pytest.mark.parametrize("asked", MEANINGLESS)
def test_a_range_that_means_nothing_gets_the_whole_file(
    alice_client: Client, spoken: tuple[str, bytes], asked: str
) -> None:
    url, audio = spoken
    response = alice_client.get(url, headers={"Range": asked})
    assert response.status_code == 200
    assert body(response) == audio


def test_validators(alice_client: Client, spoken: tuple[str, bytes]) -> None:
    url, audio = spoken
    first = alice_client.get(url)
    body(first)
    etag = first.headers["ETag"]
    same = alice_client.get(url, headers={"If-None-Match": f'"other", W/{etag}'})
    assert (same.status_code, same.content) == (304, b"")
    part = alice_client.get(url, headers={"Range": "bytes=0-9", "If-Range": etag})
    assert (part.status_code, body(part)) == (206, audio[:10])
    changed = alice_client.get(url, headers={"Range": "bytes=0-9", "If-Range": '"older"'})
    assert (changed.status_code, body(changed)) == (200, audio)


def test_head_tells_the_length_and_sends_nothing(alice_client: Client, spoken: tuple[str, bytes]) -> None:
    url, audio = spoken
    response = alice_client.head(url)
    assert response.status_code == 200
    assert response.headers["Content-Length"] == str(len(audio))
    assert body(response) == b""


def test_nginx_sends_the_file_where_settings_ask(
    alice_client: Client, alices_job: SynthesisJob, settings: Any
) -> None:
    finish_job(alices_job)
    settings.VOICEPOOL = {**settings.VOICEPOOL, "ACCEL_REDIRECT": "/protected/"}
    response = alice_client.get(reverse("job_audio_page", args=[alices_job.pk]))
    assert response.headers["X-Accel-Redirect"] == f"/protected/{alices_job.audio_key}"
    assert response.content == b""


def test_a_job_without_audio_says_so(alice_client: Client, alices_job: SynthesisJob) -> None:
    response = alice_client.get(reverse("job_audio_page", args=[alices_job.pk]))
    assert response.status_code == 409
    assert "no audio" in response.content.decode()


def test_audio_that_is_gone_from_storage_is_no_fault(alice_client: Client, alices_job: SynthesisJob) -> None:
    finish_job(alices_job)
    storage.delete(alices_job.audio_key)
    assert alice_client.get(reverse("job_audio_page", args=[alices_job.pk])).status_code == 409


def test_a_voices_clip_is_heard_by_its_owner_only(
    alice_client: Client, charlie_client: Client, client: Client, alices_voice: Voice
) -> None:
    url = reverse("voice_audio", args=[alices_voice.pk])
    assert body(alice_client.get(url)) == storage.read(alices_voice.clip_key)
    assert charlie_client.get(url).status_code == 404
    assert client.get(url).status_code == 302


def test_a_preset_without_a_sample_is_404_and_with_one_is_heard(alice_client: Client) -> None:
    preset = preset_voices().first()
    assert preset is not None
    url = reverse("voice_audio", args=[preset.pk])
    key = storage.preset_sample_key(preset.preset_key)
    storage.delete(key)  # a clock of another test may have had it spoken
    assert alice_client.get(url).status_code == 404
    storage.save(key, b"RIFF not really a sample")
    try:
        assert body(alice_client.get(url)) == b"RIFF not really a sample"
    finally:
        storage.delete(key)


def events_of(response: Any) -> list[tuple[str, str, Any]]:
    """(id, kind, data) of each event in a response that ends by itself."""
    found = []
    for block in body(response).decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            found.append((lines["id"], lines["event"], json.loads(lines["data"])))
    return found


def test_events_of_an_ended_job_tell_how_it_stands_and_end(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job)
    url = reverse("job_events_page", args=[alices_job.pk])
    response = alice_client.get(url)
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response.headers["Cache-Control"] == "private, no-store"
    assert response.headers["X-Accel-Buffering"] == "no"
    events = events_of(response)
    assert [kind for _, kind, _ in events] == ["segment", "first_audio", "succeeded"]
    assert events[-1][2]["charged_micros"] == 50
    assert OPEN_STREAMS.count == 0
    again = events_of(alice_client.get(url, headers={"Last-Event-ID": events[-1][0]}))
    assert int(again[0][0]) == int(events[-1][0]) + 1
    nonsense = events_of(alice_client.get(url, headers={"Last-Event-ID": "1; drop table"}))
    assert nonsense[0][0] == "1"


# Without a transaction around it: a stream gives its database connection back.
@pytest.mark.django_db(transaction=True)
def test_a_closed_connection_gives_its_place_back(
    alice_client: Client, alices_job: SynthesisJob, settings: Any
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "OPEN_STREAMS_PER_PROCESS": 1}
    url = reverse("job_events_page", args=[alices_job.pk])
    waiting = alice_client.get(url)
    stream: Iterator[bytes] = iter(waiting.streaming_content)  # type: ignore[arg-type]
    assert next(stream) == b"retry: 2000\n\n"
    assert b"event: queued\n" in next(stream)
    refused = alice_client.get(url)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    assert OPEN_STREAMS.count == 1
    waiting.close()
    assert OPEN_STREAMS.count == 0
    # One that was never read gives it back as well.
    alice_client.get(url).close()
    assert OPEN_STREAMS.count == 0


def test_the_live_stream_of_a_finished_job_is_its_whole_audio(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    audio = finish_job(alices_job)
    response = alice_client.get(reverse("job_stream_page", args=[alices_job.pk]))
    streamed = body(response)
    assert streamed[44:] == read_wav(audio).pcm
    assert streamed[:4] == b"RIFF"
    assert OPEN_STREAMS.count == 0


def test_the_live_stream_of_a_job_that_left_nothing_is_refused(
    alice_client: Client, alices_job: SynthesisJob
) -> None:
    finish_job(alices_job, state=JobState.FAILED)
    assert alice_client.get(reverse("job_stream_page", args=[alices_job.pk])).status_code == 409


def test_no_name_of_a_user_reaches_a_header(alice: User, alice_client: Client) -> None:
    voice = make_voice(personal_workspace(alice), alice, name='x"; evil="1')
    response = alice_client.get(reverse("voice_audio", args=[voice.pk]))
    body(response)
    assert "evil" not in str(response.headers)


@given(st.text(max_size=80))
def test_a_disposition_is_one_plain_header_line_whatever_the_name(name: str) -> None:
    value = content_disposition(name.encode("utf-8", "replace").decode(), download=True)
    assert value.isascii()
    assert not set("\r\n") & set(value)
    assert value.count('"') == 2


RANGE_HEADERS = st.one_of(st.text(max_size=40), st.from_regex(r"bytes=\d{0,5}-\d{0,5}", fullmatch=True))


@given(header=RANGE_HEADERS, size=st.integers(0, 9999))
def test_a_range_lies_within_the_file(header: str, size: int) -> None:
    try:
        found = byte_range(header, size)
    except NotSatisfiable:
        return
    if found is not None:
        assert 0 <= found[0] <= found[1] < size
