"""What the commands about models share: the folder, and a bar that says how far it is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.conf import settings

from portal.lib.env import env_text

WIDTH = 30
REDRAW_S = 0.2
MEGABYTE = 1_000_000


def models_folder(given: str = "") -> Path:
    """The folder of models on this host: the one given, VOICEPOOL_MODELS, or DATA/models."""
    return Path(given or env_text("VOICEPOOL_MODELS", "") or Path(settings.DATA_DIR) / "models")


class ProgressBar:
    """On a terminal one line that is drawn anew, elsewhere a line for each tenth."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._is_terminal = bool(getattr(stream, "isatty", lambda: False)())
        self._drawn_at = 0.0
        self._tenths = -1
        self._is_open = False

    def show(self, path: str, done: int, whole: int) -> None:
        """`done` of `whole` bytes are there; `path` is the file that is being worked on."""
        share = done / whole if whole else 1.0
        if self._is_terminal:
            now = time.monotonic()
            if now - self._drawn_at >= REDRAW_S or done >= whole:
                self._drawn_at, self._is_open = now, True
                filled = "█" * round(share * WIDTH)
                self._stream.write(
                    f"\r\033[K{filled:░<{WIDTH}} {share:6.1%} {done / MEGABYTE:.0f}/{whole / MEGABYTE:.0f} MB {path}",
                    ending="",
                )
                self._stream.flush()
        elif int(share * 10) > self._tenths:
            self._tenths = int(share * 10)
            self._stream.write(f"{share:4.0%} {done}/{whole} bytes {path}")

    def end(self) -> None:
        """Leave the line."""
        if self._is_open:
            self._is_open = False
            self._stream.write("")
