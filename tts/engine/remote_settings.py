"""What an operator says of a speech server: where it is, what it takes, and how long it may take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlsplit

from tts.engine.errors import EngineError

FORMATS = ("pcm", "wav")
_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]+")
_SPEECH_PATH = "/audio/speech"


@dataclass(frozen=True)
class RemoteSettings:
    """Times are seconds, sizes bytes. `key` never appears in a text."""

    url: str = ""
    """The base of its API, with or without the `/v1`."""
    key: str = field(default="", repr=False)
    model: str = ""
    """"" is the first of those that it lists."""
    voices: Mapping[str, str] = field(default_factory=dict)
    """From the keys of the platform's presets to its voices; "*" is for all others. Empty: the first that it lists."""
    languages: tuple[str, ...] = ("zh", "en")
    preset_folder: str = ""
    """For servers that only clone: clips of the platform's presets, KEY.wav beside KEY.txt with what each says."""
    clone: bool = False
    """Whether it takes `ref_audio` and `ref_text`, as vLLM-Omni does."""
    instructions: bool = False
    """Whether it takes OpenAI's `instructions`."""
    speed: bool = True
    """Whether it obeys OpenAI's `speed`; where not, it is not asked to, and the pool changes the speed."""
    format: str = "pcm"
    sample_rate_hz: int = 24_000
    """Of its PCM; WAV says it itself."""
    stream: bool = True
    """Whether to ask it (`stream: true`) to send audio while it speaks."""
    language_field: str = ""
    """The field in which it is told the language; "" for none."""
    language_names: Mapping[str, str] = field(default_factory=dict)
    """What it calls the languages, where not by their codes: `{"zh": "Chinese"}`."""
    seed_field: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of every request."""
    gpu_ms_per_audio_s: int = 1000
    connect_s: float = 5.0
    first_byte_s: float = 60.0
    idle_s: float = 20.0
    total_s: float = 240.0
    busy_wait_s: float = 10.0
    """How long one request may be put off in all by a server that is too busy (429)."""
    max_audio_s: float = 180.0
    """A segment has at most 300 characters: who speaks longer than that does not stop."""

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> RemoteSettings:
        """
        Raises:
            EngineError: a setting is unknown or wrong; says which.
        """
        known = {one.name: one for one in fields(cls)}
        if unknown := sorted(set(given) - set(known)):
            raise EngineError("setting_unknown", f"The remote engine has no setting {unknown}.")
        values = {name: _checked(name, value, getattr(cls(), name)) for name, value in given.items()}
        made = cls(**values)
        base_of(made.url)
        if made.format not in FORMATS:
            raise EngineError("setting_wrong", f"format is one of {', '.join(FORMATS)}.")
        if not 8_000 <= made.sample_rate_hz <= 192_000:
            raise EngineError("setting_wrong", "sample_rate_hz is 8000 to 192000.")
        if made.preset_folder and not made.clone:
            raise EngineError("setting_wrong", "preset_folder is for servers that clone: set clone.")
        for name in ("connect_s", "first_byte_s", "idle_s", "total_s", "max_audio_s"):
            if getattr(made, name) <= 0:
                raise EngineError("setting_wrong", f"{name} is above 0.")
        return made

    @property
    def base(self) -> Base:
        return base_of(self.url)

    def voice_of(self, preset_key: str) -> str:
        """Its voice for a preset of the platform; "" for none."""
        return self.voices.get(preset_key) or self.voices.get("*") or ""


@dataclass(frozen=True)
class Base:
    """Where a server is. `path` begins the path of every call: "/v1"."""

    secure: bool
    host: str
    port: int
    path: str


def base_of(url: str) -> Base:
    """The parts of a server's address.

    Raises:
        EngineError: it is not a plain http or https address.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EngineError("setting_wrong", "The server's url cannot be read.") from error
    plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise EngineError("setting_wrong", "url is such as http://host:8880, without a name or key in it.")
    if not _HOST.fullmatch(parts.hostname):
        raise EngineError("setting_wrong", "The host in url cannot be read.")
    path = parts.path.rstrip("/")
    path = path[: -len(_SPEECH_PATH)] if path.endswith(_SPEECH_PATH) else path
    secure = parts.scheme == "https"
    return Base(secure, parts.hostname, port or (443 if secure else 80), path or "/v1")


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value in its setting's own type."""
    wrong = EngineError("setting_wrong", f"The setting {name} of the remote engine is of the wrong type.")
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise wrong
        return value
    if isinstance(default, tuple):
        if not (isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value) and value):
            raise wrong
        return tuple(value)
    if isinstance(default, dict):
        if not isinstance(value, dict):
            raise wrong
        return dict(value)
    if isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong
        return float(value)
    if type(value) is not type(default):
        raise wrong
    return value
