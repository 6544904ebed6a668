"""A request of the page as the same request to the REST API."""

from __future__ import annotations

import json
import shlex

from django.conf import settings

from tts.audio.formats import DEFAULT_FORMAT
from tts.services.quoting import SCRIPT
from tts.services.submit import JobRequest


def curl_command(request: JobRequest) -> str:
    """A command for a POSIX shell; it reads the key from $VOICEPOOL_API_KEY, so it can be shared."""
    body: dict[str, object] = {"voice_id": str(request.voice_id), "text": request.text}
    if request.language:
        body["language"] = request.language
    body["job_class"] = str(request.job_class)
    if request.speed != 1.0:
        body["speed"] = request.speed
    if request.mode == SCRIPT:
        body["mode"] = SCRIPT
        body["cast"] = {name: str(voice_id) for name, voice_id in request.cast.items()}
    if request.instruction:
        body["instruction"] = request.instruction
    if request.instruction_text:
        body["instruction_text"] = request.instruction_text
    if request.response_format != DEFAULT_FORMAT:
        body["response_format"] = request.response_format
    if request.sample_rate_hz is not None:
        body["sample_rate_hz"] = request.sample_rate_hz
    if request.loudness_lufs is not None:
        body["loudness_lufs"] = request.loudness_lufs
    if request.seed is not None:
        body["seed"] = request.seed
    data = json.dumps(body, ensure_ascii=False, indent=2)
    lines = [
        f"curl {settings.BASE_URL}/api/v1/jobs",
        '-H "Authorization: Bearer $VOICEPOOL_API_KEY"',
        '-H "Idempotency-Key: $(uuidgen)"',
        '-H "Content-Type: application/json"',
        f"--data {shlex.quote(data)}",
    ]
    return " \\\n  ".join(lines)
