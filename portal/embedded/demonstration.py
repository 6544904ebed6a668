"""`python -m portal.embedded.demonstration`: the product's main job once, through its public REST API alone.

Clones a voice from a clip that the built-in engine makes, speaks a Mandarin and an English sentence with it,
writes both as WAV files under `DATA/demonstration`, and prints a receipt for each.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import subprocess
import sys
import time
import uuid
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.embedded.console import fail, say
from portal.embedded.layout import ROOT, DataFolder

VOICE_NAME = "Demonstration 示例"
SENTENCES = {
    "zh": "你好，这里是声池。只要几秒钟的录音，就能让文字用你的声音说出来。",
    "en": "Hello, this is VoicePool. A few seconds of a recording are enough to speak any text.",
}
REQUEST_TIMEOUT_S = 60.0
JOB_TIMEOUT_S = 300.0
POLL_S = 0.2
# Between what was charged and what was delivered: the pauses between segments.
AUDIO_TOLERANCE_MS = 500


class Refused(Exception):
    """The API answered with an error, or a job did not succeed; the message says what it said."""


@dataclass(frozen=True)
class Api:
    """Version 1 of the REST API at one address, with one key."""

    address: str
    key: str

    def get(self, path: str) -> Any:
        return json.loads(self.request("GET", path))

    def post_json(self, path: str, values: Mapping[str, object], **headers: str) -> Any:
        body = json.dumps(values).encode()
        return json.loads(self.request("POST", path, body, {"Content-Type": "application/json", **headers}))

    def post_form(self, path: str, fields: Mapping[str, str], *, file: bytes, file_name: str) -> Any:
        """Post a form with one file in its field "file"."""
        boundary = uuid.uuid4().hex
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in fields.items()
        ]
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file_name}"\r\n'
            "Content-Type: audio/wav\r\n\r\n".encode()
        )
        body = b"".join(parts) + file + f"\r\n--{boundary}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return json.loads(self.request("POST", path, body, headers))

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the body of a good answer.

        Raises:
            Refused: the server cannot be reached, or answered with a problem.
        """
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=REQUEST_TIMEOUT_S)
        try:
            connection.request(
                method, f"/api/v1{path}", body, {"Authorization": f"Bearer {self.key}", **(headers or {})}
            )
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Refused(f"{method} {path}: {self.address} cannot be reached ({error}).") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise Refused(f"{method} {path}: {response.status} {_problem(answer)}")
        return answer


def _problem(answer: bytes) -> str:
    """What a problem document says, with its code."""
    try:
        problem = json.loads(answer)
        return f"{problem.get('detail') or problem.get('title')} ({problem.get('code')})"
    except (ValueError, AttributeError):
        return answer[:200].decode(errors="replace")


def demonstrate(api: Api, folder: DataFolder) -> None:
    """Clone, speak, write and print.

    Raises:
        Refused: something did not work; what was written before stays.
    """
    say(f"Demonstration, through the REST API at {api.address}/api/v1/")
    folder.demonstration.mkdir(mode=0o700, exist_ok=True)
    voice = find_or_clone_voice(api, folder)
    receipts = {language: speak(api, folder, voice["id"], language) for language in SENTENCES}
    folder.demonstration_marker.write_text(json.dumps(receipts, indent=1) + "\n")


def find_or_clone_voice(api: Api, folder: DataFolder) -> Any:
    """Return the demonstration's voice, cloned from a clip made now unless it is there already."""
    for voice in api.get("/voices?kind=clone")["results"]:
        if voice["name"] == VOICE_NAME:
            say(f"  The voice “{VOICE_NAME}” is there already.")
            return voice
    clip = folder.demonstration / "clip.wav"
    transcript = make_clip(clip)
    began = time.monotonic()
    voice = api.post_form(
        "/voices",
        {"name": VOICE_NAME, "language": "zh", "transcript": transcript, "consent": "true"},
        file=clip.read_bytes(),
        file_name=clip.name,
    )
    quality = voice["quality"]
    say(
        f"  Cloned the voice “{VOICE_NAME}” in {time.monotonic() - began:.1f} s from {clip}: "
        f"{quality['speech_s']:.1f} s of speech, verdict: {quality['verdict']}"
    )
    return voice


def make_clip(path: Path) -> str:
    """Have the built-in engine make a clip of a made-up speaker and return what is said in it."""
    made = subprocess.run(
        [sys.executable, "-m", "tts.engine.demonstration_clip", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise Refused(f"The clip could not be made:\n{made.stderr.strip()}")
    return made.stdout.strip()


def speak(api: Api, folder: DataFolder, voice_id: str, language: str) -> dict[str, Any]:
    """Speak one sentence, write it as `LANGUAGE.wav`, print its receipt and return it."""
    text = SENTENCES[language]
    say(f"  Speaking: {text}")
    job = api.post_json(
        "/jobs",
        {"voice_id": voice_id, "text": text, "language": language},
        **{"Idempotency-Key": f"demonstration-{uuid.uuid4()}"},
    )
    job = wait_for_end(api, job["id"])
    if job["state"] != "succeeded":
        error = job["error"] or {}
        raise Refused(f"The job ended as {job['state']}: {error.get('message')} ({error.get('code')})")
    audio = api.request("GET", f"/jobs/{job['id']}/audio")
    path = folder.demonstration / f"{language}.wav"
    path.write_bytes(audio)
    with wave.open(io.BytesIO(audio)) as file:
        written_s = file.getnframes() / file.getframerate()
    receipt: dict[str, Any] = job["receipt"]
    if abs(written_s * 1000 - receipt["audio_ms"]) > AUDIO_TOLERANCE_MS:
        raise Refused(
            f"The file holds {written_s:.2f} s of audio, the receipt says {receipt['audio_ms']} ms."
        )
    charged = receipt["charged"]
    say(
        f"    written to {path} ({written_s:.1f} s)\n"
        f"    receipt: {receipt['characters']} characters, {receipt['audio_ms'] / 1000:.1f} s of audio, "
        f"{receipt['gpu_ms']} GPU milliseconds, {charged['amount']} {charged['currency']}"
    )
    return receipt


def wait_for_end(api: Api, job_id: str) -> Any:
    """Return the job once it has ended."""
    deadline = time.monotonic() + JOB_TIMEOUT_S
    while time.monotonic() < deadline:
        job = api.get(f"/jobs/{job_id}")
        if job["state"] in {"succeeded", "failed", "canceled"}:
            return job
        time.sleep(POLL_S)
    raise Refused(f"The job did not end within {JOB_TIMEOUT_S:g} s.")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.embedded.demonstration", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(".data"), help="data folder of a stack that runs")
    folder = DataFolder(Path(os.path.abspath(parser.parse_args().data)))
    address, key = folder.read_state().get("address"), folder.secrets.read("demonstration_api_key")
    if not address or not key:
        fail(f"No stack runs on {folder.path}. Start one with: make run")
        return 1
    try:
        demonstrate(Api(address, key), folder)
    except Refused as refused:
        fail(f"The demonstration did not succeed. {refused}\nTry it again with: make demo")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
