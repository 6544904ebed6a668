"""Bringing CosyVoice's package into this process: complete, in versions that are known to work, offline, quiet."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tts.engine.cosyvoice_settings import CosyVoiceSettings
from tts.engine.errors import EngineError

logger = logging.getLogger("tts.engine.cosyvoice")

MATCHA = Path("third_party") / "Matcha-TTS"
YAML = {2: "cosyvoice2.yaml", 3: "cosyvoice3.yaml"}
WEIGHTS = ("llm.pt", "flow.pt", "hift.pt", "campplus.onnx")
SPEECH_TOKENIZER = {2: "speech_tokenizer_v2.onnx", 3: "speech_tokenizer_v3.onnx"}
LANGUAGE_MODEL = "CosyVoice-BlankEN"
LANGUAGE_MODEL_FILES = ("config.json", "vocab.json", "merges.txt")
TRT_SOURCE = "flow.decoder.estimator.fp32.onnx"
# Read at both ends of each file for its share in the engine's version: a whole read of 4 GB takes longer than loading.
SAMPLED_BYTES = 1 << 20
# From 4.53 on the cached steps of Qwen2 take another mask than CosyVoice gives them, and speak gibberish; without a
# mask they are exactly as before. Seen on 4.53.1 and 4.57.1; nobody has looked at 5.
MASK_CHANGED = (4, 53)
NOT_VERIFIED = (5,)
# From 2.9 on torchaudio reads files by torchcodec alone.
NEEDS_TORCHCODEC = (2, 9)


def model_version(settings: CosyVoiceSettings) -> int:
    """2 or 3, by the model's own file.

    Raises:
        EngineError: `model_missing` naming the file that is not there; `model_unknown` for CosyVoice 1.
    """
    folder = Path(settings.model_dir)
    if (folder / "cosyvoice.yaml").exists():
        # Its filters are cached under the same name as those of its successors.
        raise EngineError("model_unknown", "This is CosyVoice 1. The engine speaks with CosyVoice 2 and 3.")
    for version, name in sorted(YAML.items()):
        if (folder / name).exists():
            _check_files(settings, folder, version)
            return version
    raise EngineError("model_missing", f"model_dir has no file {YAML[3]} (nor {YAML[2]}).")


def _check_files(settings: CosyVoiceSettings, folder: Path, version: int) -> None:
    needed = [*WEIGHTS, SPEECH_TOKENIZER[version]]
    needed += [f"{LANGUAGE_MODEL}/{name}" for name in LANGUAGE_MODEL_FILES]
    if settings.load_trt:
        needed.append(TRT_SOURCE)
    if settings.load_jit:
        needed.append(f"flow.encoder.{'fp16' if settings.fp16 else 'fp32'}.zip")
    for name in needed:
        if not (folder / name).is_file() or not (folder / name).stat().st_size:
            raise EngineError("model_missing", f"model_dir has no file {name}, or an empty one.")
    if not any((folder / LANGUAGE_MODEL).glob("*.safetensors")) and not any(
        (folder / LANGUAGE_MODEL).glob("*.bin")
    ):
        raise EngineError("model_missing", f"model_dir has no weights in {LANGUAGE_MODEL}.")
    home = Path(settings.home)
    if not (home / "cosyvoice" / "cli" / "cosyvoice.py").is_file():
        raise EngineError("model_missing", "home has no file cosyvoice/cli/cosyvoice.py.")
    if not (home / MATCHA / "matcha").is_dir():
        raise EngineError("model_missing", f"home has no {MATCHA}: check out the submodules too.")


def fingerprint(settings: CosyVoiceSettings, version: int) -> str:
    """Twelve hexadecimal digits that change with the weights, the package's source, and what changes the sound."""
    digest = hashlib.sha256(
        repr((version, settings.fp16, settings.load_trt, settings.load_vllm, settings.load_jit)).encode()
    )
    folder = Path(settings.model_dir)
    for name in (YAML[version], *WEIGHTS, SPEECH_TOKENIZER[version]):
        digest.update(f"{name}\0{(folder / name).stat().st_size}\0".encode())
        digest.update(_sample(folder / name))
    for path in sorted((Path(settings.home) / "cosyvoice").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _sample(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(SAMPLED_BYTES)
        file.seek(max(0, path.stat().st_size - SAMPLED_BYTES))
        return head + file.read(SAMPLED_BYTES)


def import_package(settings: CosyVoiceSettings) -> Any:
    """CosyVoice's module `cosyvoice.cli.cosyvoice`, from `home`, without what importing it does to this process.

    Raises:
        EngineError: `library_missing` or `library_unfit`.
    """
    for folder in (settings.home, str(Path(settings.home) / MATCHA)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        with quiet():
            transformers = importlib.import_module("transformers")
            torchaudio = importlib.import_module("torchaudio")
            module = importlib.import_module("cosyvoice.cli.cosyvoice")
            language_model = importlib.import_module("cosyvoice.llm.llm")
    except ImportError as error:
        raise EngineError(
            "library_missing",
            f"CosyVoice needs the package {error.name}; see deploy/requirements-cosyvoice.txt.",
        ) from error
    check_torchaudio(str(torchaudio.__version__))
    if needs_patch(str(transformers.__version__)):
        language_model.Qwen2Encoder.forward_one_step = _forward_one_step
    return module


def needs_patch(transformers_version: str) -> bool:
    """Whether the language model's steps have to go without a mask.

    Raises:
        EngineError: `library_unfit`: nobody knows how this version reads.
    """
    number = version_number(transformers_version)
    if number >= NOT_VERIFIED:
        raise EngineError(
            "library_unfit",
            f"CosyVoice was not verified with transformers {transformers_version}. Install 4.51.3.",
        )
    return number >= MASK_CHANGED


def check_torchaudio(version: str) -> None:
    """
    Raises:
        EngineError: `library_unfit`: it could not read a clip.
    """
    if version_number(version) >= NEEDS_TORCHCODEC and importlib.util.find_spec("torchcodec") is None:
        raise EngineError(
            "library_unfit", f"torchaudio {version} needs torchcodec. Install 2.3.1 or torchcodec."
        )


def version_number(version: str) -> tuple[int, ...]:
    """(4, 53) of "4.53.1+local"."""
    parts = version.split("+")[0].split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


def _forward_one_step(encoder: Any, xs: Any, masks: Any, cache: Any = None) -> tuple[Any, Any]:
    """`Qwen2Encoder.forward_one_step` without a mask: each step attends to all that came before it anyway."""
    del masks
    outputs = encoder.model(
        inputs_embeds=xs,
        attention_mask=None,
        output_hidden_states=True,
        return_dict=True,
        use_cache=True,
        past_key_values=cache,
    )
    return outputs.hidden_states[-1], outputs.past_key_values


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Put the root logger back as it was: CosyVoice has it log everything, customers' texts included."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler in [kept for kept in root.handlers if kept not in handlers]:
            root.removeHandler(handler)


@contextlib.contextmanager
def no_network() -> Iterator[None]:
    """While it is entered, this process reaches nothing but itself: a library that would download fails at once."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def local_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(str(address[0])):
            raise ConnectionRefusedError("the engine opens no connection while it loads")
        connect(self, address)

    def local_resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name and not _is_local(str(name)):
            raise socket.gaierror(socket.EAI_FAIL, "the engine opens no connection while it loads")
        return resolve(host, *arguments, **named)

    socket.socket.connect = local_connect  # type: ignore[method-assign,assignment]
    socket.getaddrinfo = local_resolve
    try:
        yield
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = resolve


def _is_local(host: str) -> bool:
    if host in ("localhost", "", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
