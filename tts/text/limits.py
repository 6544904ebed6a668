"""Limits of texts."""

from __future__ import annotations

from typing import Final

MAX_JOB_CHARACTERS: Final = 5000
MAX_SEGMENT_CHARACTERS: Final = 300
