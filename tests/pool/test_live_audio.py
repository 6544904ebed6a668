"""Live audio when Redis forgets it: what a listener gets is always the file's bytes, and nothing stays behind."""

from __future__ import annotations

from portal.lib.queues import redis_connection
from tests.pool.conftest import Submit
from tests.pool.processes import Pool, wait_for
from tests.pool.test_processes import ended
from tts import storage
from tts.audio.wav import read_wav
from tts.models import Attempt
from tts.selectors.devices import ready_device_count
from tts.services.streams import job_audio
from tts.services.wakeups import audio_key
from tts.states import JobState

# A chunk of 200 ms of audio, one character, every 50 ms.
STEADY = {"real_time": True, "ms_per_character": 50, "chunk_ms": 200}
SENTENCE = "Somebody listens to this sentence while the store of its audio is emptied."


def test_a_listener_gets_the_right_bytes_when_redis_is_emptied_while_chunks_wait(
    pool: Pool, submit: Submit
) -> None:
    pool.start_node(engine_settings=STEADY)
    pool.start_clock()
    wait_for(ready_device_count, what="a ready device")
    job = submit(SENTENCE)
    live = job_audio(job)
    heard = b""
    while not heard:
        heard += next(live)
    attempt = Attempt.objects.get(job=job)
    told = redis_connection().xlen(audio_key(attempt.pk))
    wait_for(lambda: redis_connection().xlen(audio_key(attempt.pk)) > told + 3, what="chunks that wait")
    redis_connection().flushall()
    heard += b"".join(live)
    assert ended(job).state == JobState.SUCCEEDED
    assert heard == read_wav(storage.read(job.audio_key)).pcm


def test_a_stream_that_nobody_ends_goes_away_by_itself(pool: Pool, submit: Submit) -> None:
    pool.start_node(engine_settings=STEADY)
    wait_for(ready_device_count, what="a ready device")
    job = submit(SENTENCE)
    attempt = wait_for(lambda: Attempt.objects.filter(job=job).first(), what="an attempt")
    key = audio_key(attempt.pk)
    wait_for(lambda: redis_connection().xlen(key), what="the first chunk")
    assert 0 < redis_connection().ttl(key) <= 3600
