"""Any server with an OpenAI-shaped `/v1/audio/speech` as an engine: vLLM-Omni, SGLang-Omni, the Kokoro servers.

Settings: see `tts.engine.remote_settings`. What is measured as the device's time is the time from the request to the
last byte of its answer, less what the pool's own side takes to read it and less the waits that a busy server asked for:
whoever shares the server with others pays for waiting in its queue.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Optional

from tts.engine.base import Engine, LoadedEngine, SpeakControl
from tts.engine.capabilities import CLONE, INSTRUCT, PRESET, Capabilities
from tts.engine.errors import BACKEND_GONE, EngineError
from tts.engine.protocol import SpeakRequest
from tts.engine.remote_audio import RATE_HZ, AudioReader, PcmReader, WavReader
from tts.engine.remote_http import Exchange, RemoteFailure, get_json
from tts.engine.remote_settings import RemoteSettings

logger = logging.getLogger(__name__)

# So many requests in a row that came to nothing: the server is asked again from the beginning.
FAILURES_IN_A_ROW = 3
LONGEST_PAUSE_S = 5.0
FIRST_PAUSE_S = 0.5
# The answers that say something of what was asked, not of the server or of our settings.
REFUSED = (400, 413, 422)
MISCONFIGURED = (401, 403, 404, 405, 407, 410)
NOT_NOW = (408, 425, 429)
CHUNK_BYTES = RATE_HZ * 2 // 5  # 200 ms
MAX_VERSION = 60


class RemoteEngine(Engine):
    """See the module."""

    def __init__(self) -> None:
        self._settings: Optional[RemoteSettings] = None
        self._requests = 0
        self._failures = 0

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        """Ask the server for its models and voices, as far as the settings leave them open: the one engine whose load
        opens connections."""
        given = RemoteSettings.from_json(settings)
        try:
            ready = _with_voices(_with_model(given))
        except RemoteFailure as failure:
            raise EngineError(
                BACKEND_GONE, f"The speech server does not answer ({failure.kind}: {failure.detail})."
            ) from failure
        if not (ready.voices or ready.preset_folder):
            raise EngineError(
                "setting_wrong",
                "The speech server lists no voices: name some (voices), or, where it clones, give clips of the presets "
                "(preset_folder).",
            )
        modes = [PRESET, CLONE] if ready.clone else [PRESET]
        self._settings = ready
        return LoadedEngine(
            engine="remote",
            engine_version=ready.model[:MAX_VERSION],
            sample_rate_hz=RATE_HZ,
            languages=ready.languages,
            capabilities=Capabilities(
                languages=ready.languages,
                modes=tuple([*modes, INSTRUCT] if ready.instructions else modes),
                instructions="free" if ready.instructions else "none",
                real_clone=ready.clone,
                gpu_ms_per_audio_s=ready.gpu_ms_per_audio_s,
                obeys_speed=ready.speed,
            ),
        )

    def warm_up(self) -> None:
        """Nothing to do: the server is warm or is not."""

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        settings = self._settings
        if settings is None:
            raise EngineError("not_loaded", "The engine was asked to speak before it was loaded.")
        self._requests += 1
        body = _body(settings, request)
        try:
            yield from self._spoken(settings, body, control)
        except RemoteFailure as failure:
            self._failed(failure)
        self._failures = 0

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "requests": self._requests}

    def _spoken(
        self, settings: RemoteSettings, body: dict[str, Any], control: SpeakControl
    ) -> Iterator[bytes]:
        """The server's audio, once it is not too busy."""
        put_off_s, pause_s = 0.0, FIRST_PAUSE_S
        while True:
            with Exchange(settings, "POST", "/audio/speech", body) as exchange:
                head = exchange.head(control.check)
                if head.status == 200:
                    yield from _audio(settings, exchange, head.content_type, control)
                    return
            if head.status not in NOT_NOW or put_off_s >= settings.busy_wait_s:
                self._refused(head.status)
            pause_s = min(
                pause_s * 2 if head.retry_after_s is None else max(0.1, head.retry_after_s), LONGEST_PAUSE_S
            )
            pause_s = min(pause_s, settings.busy_wait_s - put_off_s)
            _pause(pause_s, control)
            put_off_s += pause_s

    def _refused(self, status: int) -> NoReturn:
        """What an answer other than audio means. What it says is not read: it may quote the text."""
        if status in REFUSED:
            # The same settings spoke the test sentence, so it is the text or the voice.
            raise EngineError(
                "remote_refused", f"The speech server refused the request ({status}).", blame="user"
            )
        if status in NOT_NOW:
            raise EngineError("remote_busy", f"The speech server is too busy ({status}).")
        if status in MISCONFIGURED or status < 400:
            raise EngineError(
                BACKEND_GONE, f"The speech server does not take requests as they are set up here ({status})."
            )
        self._failed(RemoteFailure("failed", f"status {status}"))

    def _failed(self, failure: RemoteFailure) -> NoReturn:
        self._failures += 1
        gone = failure.kind == "unreachable" or self._failures >= FAILURES_IN_A_ROW
        logger.warning("remote_failed %s %s", failure.kind, failure.detail)
        raise EngineError(
            BACKEND_GONE if gone else f"remote_{failure.kind}",
            f"The speech server did not speak ({failure.kind}: {failure.detail}).",
        ) from failure


def _pause(pause_s: float, control: SpeakControl) -> None:
    """Wait for a busy server, on nobody's account."""
    control.clock.pause()
    try:
        left_s = pause_s
        while left_s > 0:
            control.check()
            control.canceled.wait(min(0.1, left_s))
            left_s -= 0.1
    finally:
        control.clock.resume()


def _audio(
    settings: RemoteSettings, exchange: Exchange, content_type: str, control: SpeakControl
) -> Iterator[bytes]:
    """The answer's audio in pieces of about 200 ms."""
    if content_type.startswith(("application/json", "text/")):
        raise RemoteFailure("broken", f"{content_type.split(';')[0]} instead of audio")
    is_wav = settings.format == "wav" or "wav" in content_type
    reader: AudioReader = WavReader() if is_wav else PcmReader(settings.sample_rate_hz)
    most_bytes = int(settings.max_audio_s * RATE_HZ) * 2
    # Eight channels of 32-bit samples at the highest rate would be 128 times that; nobody sends it.
    most_raw_bytes = most_bytes * 8
    waiting, made, came = b"", 0, 0
    for block in exchange.blocks(control.check):
        came += len(block)
        waiting += reader.push(block)
        if came > most_raw_bytes or made + len(waiting) > most_bytes:
            raise RemoteFailure("too_large", f"more than {settings.max_audio_s:g} s of audio")
        if len(waiting) >= CHUNK_BYTES:
            made += len(waiting)
            yield waiting
            waiting = b""
    waiting += reader.finish()
    if not made and not waiting:
        raise RemoteFailure("broken", "no audio")
    if waiting:
        yield waiting


def _body(settings: RemoteSettings, request: SpeakRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        **settings.extra,
        "model": settings.model,
        "input": request.text,
        "response_format": settings.format,
    }
    if settings.stream:
        body["stream"] = True
    if request.speed != 1.0:
        body["speed"] = request.speed
    _add_voice(settings, request, body)
    language = request.language or request.voice.language
    if settings.language_field and language:
        body[settings.language_field] = settings.language_names.get(language, language)
    if settings.seed_field:
        body[settings.seed_field] = request.seed
    if settings.instructions and request.instruction:
        body["instructions"] = request.instruction
    return body


def _add_voice(settings: RemoteSettings, request: SpeakRequest, body: dict[str, Any]) -> None:
    """One of the server's voices, or a clip to clone with what it says."""
    clip, transcript = request.reference_wav, request.voice.transcript
    if request.voice.kind != CLONE:
        key = request.voice.preset_key
        if voice := settings.voice_of(key):
            body["voice"] = voice
            return
        clip, transcript = _preset_clip(settings.preset_folder, key)
    elif not settings.clone:
        raise EngineError("voice_unknown", "The speech server does not clone.")
    body["ref_audio"] = f"data:audio/wav;base64,{base64.b64encode(clip).decode()}"
    if transcript:
        body["ref_text"] = transcript


def _preset_clip(folder: str, key: str) -> tuple[bytes, str]:
    if folder and key.isidentifier():
        clip = Path(folder) / f"{key}.wav"
        if clip.is_file():
            words = clip.with_suffix(".txt")
            return clip.read_bytes(), words.read_text(encoding="utf-8").strip() if words.is_file() else ""
    raise EngineError("voice_unknown", "The speech server has no voice for this preset.")


def _with_model(settings: RemoteSettings) -> RemoteSettings:
    """The settings with a model. Also finds out whether the server is there and takes the key."""
    status, content = get_json(settings, "/models")
    if status in (401, 403):
        raise EngineError(BACKEND_GONE, f"The speech server refuses the key ({status}).")
    if status >= 500:
        raise RemoteFailure("failed", f"status {status}")
    if settings.model:
        return settings
    listed = content.get("data") if isinstance(content, dict) else None
    names = [str(one["id"]) for one in listed or [] if isinstance(one, dict) and one.get("id")]
    if not names:
        raise EngineError("setting_wrong", "The speech server lists no models: name one (model).")
    return replace(settings, model=names[0])


def _with_voices(settings: RemoteSettings) -> RemoteSettings:
    """The settings with a voice for every preset, where the server has any."""
    status, content = get_json(settings, "/audio/voices")
    listed = content.get("voices") if isinstance(content, dict) else content
    names: list[str] = []
    if status == 200 and isinstance(listed, list):
        for one in listed:
            name = (
                one
                if isinstance(one, str)
                else one.get("id") or one.get("name")
                if isinstance(one, dict)
                else ""
            )
            names += [str(name)] if name else []
    if not settings.voices:
        return replace(settings, voices={"*": names[0]}) if names else settings
    # A mix such as "one+other" is for the server to judge.
    missing = sorted({voice for voice in settings.voices.values() if voice.isidentifier()} - set(names))
    if names and missing:
        raise EngineError("setting_wrong", f"The speech server has no voice {', '.join(missing)}.")
    return settings
