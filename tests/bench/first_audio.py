"""What the portal adds to the engine's own time until the first audio: job created to the first byte of speech.

A whole embedded stack with the simulated engine taking its time for real. Each round submits a sentence of 20
characters over the REST API, follows the live stream, and takes the clock when the first byte after the WAV header
is there. Off that goes what the engine itself had used when it made its first chunk. `portal_added` counts from the
job's `created_at`, `from_request` from the moment when its request was sent: authentication, throttling and the quote
lie between.
"""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.embedded.stack import Stack, environment_for_stack

ROUNDS = 60
WARM_UP_ROUNDS = 5
WAV_HEADER_BYTES = 44
SENTENCE = "今天天气很好我们一起去公园里散步喝茶吧。"
ENGINE_SETTINGS = {"real_time": True, "ms_per_character": 10, "chunk_ms": 400}


def run() -> dict[str, float]:
    """Return `portal_added_p50_ms` and its 95th percentile, `from_request_p50_ms`, and `submit_p50_ms`: the request."""
    assert len(SENTENCE) == 20
    with tempfile.TemporaryDirectory(prefix="voicepool-bench-") as folder:
        stack = Stack(
            Path(folder) / "data",
            environment=environment_for_stack(
                VOICEPOOL_CPU_ENGINE_SETTINGS=json.dumps(ENGINE_SETTINGS),
                VOICEPOOL_PRESET_SAMPLES="false",
                REQUESTS_PER_MINUTE="100000",
                SUBMITS_PER_MINUTE="100000",
            ),
        )
        try:
            stack.wait_until_ready()
            return _measure(stack)
        finally:
            stack.close()


def _measure(stack: Stack) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {stack.folder.secrets.read('demonstration_api_key')}"}
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    voices = _json(connection, "GET", "/api/v1/voices", headers)
    voice_id = voices["results"][0]["id"]
    added, from_request, submits = [], [], []
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        began = time.monotonic()
        job = _json(connection, "POST", "/api/v1/jobs", headers, {"voice_id": voice_id, "text": SENTENCE})
        accepted = time.monotonic()
        first_byte, first_byte_at = _follow(connection, f"/api/v1/jobs/{job['id']}/stream", headers)
        settled = _wait_for_end(connection, f"/api/v1/jobs/{job['id']}", headers)
        engine_ms = settled["segments"][0]["attempts"][-1]["first_chunk_gpu_ms"]
        if number >= WARM_UP_ROUNDS:
            created_at = datetime.fromisoformat(settled["created_at"]).timestamp()
            added.append((first_byte_at - created_at) * 1000 - engine_ms)
            from_request.append((first_byte - began) * 1000 - engine_ms)
            submits.append((accepted - began) * 1000)
    connection.close()
    return {
        "portal_added_p50_ms": round(statistics.median(added), 1),
        "portal_added_p95_ms": round(sorted(added)[int(len(added) * 0.95)], 1),
        "from_request_p50_ms": round(statistics.median(from_request), 1),
        "submit_p50_ms": round(statistics.median(submits), 1),
    }


def _json(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    headers: dict[str, str],
    body: dict[str, Any] | None = None,
) -> Any:
    payload = None if body is None else json.dumps(body)
    connection.request(method, path, payload, {**headers, "Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status >= 400:
        raise RuntimeError(f"{method} {path}: {response.status} {answer}")
    return answer


def _follow(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
) -> tuple[float, float]:
    """When the first byte of speech was there: monotonic and wall time. Reads the stream to its end."""
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status} {response.read()!r}")
    if len(response.read(WAV_HEADER_BYTES)) != WAV_HEADER_BYTES or not response.read(1):
        raise RuntimeError("the stream ended before any speech")
    moment = time.monotonic(), time.time()
    response.read()
    return moment


def _wait_for_end(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> Any:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        job = _json(connection, "GET", path, headers)
        if job["state"] == "succeeded":
            return job
        if job["state"] in ("failed", "canceled"):
            raise RuntimeError(f"the job ended as {job['state']}")
        time.sleep(0.01)
    raise RuntimeError("the job did not end in 30 s")
