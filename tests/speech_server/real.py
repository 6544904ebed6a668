"""`python -m tests.speech_server.real FOLDER PORT`: fastkokoro with the model that the built-in engine has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from tts.engine.kokoro_model import LONGEST_INPUT, load_styles
from tts.engine.weights import joined_weights

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv" / "speech-server"
PROGRAM = ENVIRONMENT / "bin" / "fastkokoro"
# Its names of voices say the language; the model's own styles stand behind them.
VOICES = {"af_heart": "jf_alpha", "am_adam": "jm_kumo", "zf_xiaoxiao": "jf_nezumi"}


def main(folder: Path, port: int) -> None:
    """Become the server."""
    styles = load_styles()
    np.savez(
        folder / "voices.npz",
        **{name: styles[style].reshape(LONGEST_INPUT, 1, 256) for name, style in VOICES.items()},  # type: ignore[arg-type]
    )
    settings = {
        "FASTKOKORO_MODEL_PATH": str(joined_weights(folder)),
        "FASTKOKORO_VOICES_PATH": str(folder / "voices.npz"),
        "FASTKOKORO_CACHE_DIR": str(folder),
        "FASTKOKORO_DEFAULT_VOICE": "af_heart",
        "FASTKOKORO_HOST": "127.0.0.1",
        "FASTKOKORO_PORT": str(port),
        "FASTKOKORO_ONNX_INTRA_OP_NUM_THREADS": "2",
        "FASTKOKORO_JIT": "false",
        "FASTKOKORO_WARMUP": "false",
        "HF_HUB_OFFLINE": "1",
    }
    os.execve(PROGRAM, [str(PROGRAM)], {**os.environ, **settings})  # noqa: S606 - our own environment's program


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
