"""eSpeak NG as a phonemizer, in this process, by its C interface.

phonemizer would do the same with 0.5 s of imports more, a copy of the library per language and its own way with
punctuation; three functions of the library are all that is needed.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import espeakng_loader

# speak_lib.h
AUDIO_OUTPUT_SYNCHRONOUS = 2
DO_NOT_EXIT = 0x8000
CHARACTERS_UTF8 = 1
PHONEMES_IPA = 0x02
TIE_SET = 0x80
TIE_SHIFT = 8
# The library keeps its data path in a buffer of 160 bytes (N_PATH_HOME) and adds file names to it.
LONGEST_DATA_PATH = 120

TIE = "^"
"""Stands between the letters of one sound, such as t^ʃ."""


class Espeak:
    """The one instance of the library; it keeps its state in globals, so that a process has one only."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self._library.espeak_Initialize.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
        self._library.espeak_SetVoiceByName.argtypes = [ctypes.c_char_p]
        self._library.espeak_TextToPhonemes.argtypes = [
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_int,
            ctypes.c_int,
        ]
        self._library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        data_path = _short_path(espeakng_loader.get_data_path())
        if (
            self._library.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data_path), DO_NOT_EXIT)
            <= 0
        ):
            raise OSError("eSpeak NG did not find its data")
        self._voice = ""

    def phonemes(self, text: str, voice: str) -> str:
        """The IPA of a text without punctuation, words apart by spaces, stress marked, sounds tied by `TIE`."""
        if voice != self._voice:
            if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
                raise LookupError(f"eSpeak NG has no voice {voice!r}")
            self._voice = voice
        # The library stops at the first NUL, and moves the pointer on clause by clause until it is NULL.
        left = ctypes.c_char_p(text.replace("\0", " ").encode())
        mode = PHONEMES_IPA | TIE_SET | (ord(TIE) << TIE_SHIFT)
        clauses: list[str] = []
        while left.value is not None:
            clause = self._library.espeak_TextToPhonemes(ctypes.byref(left), CHARACTERS_UTF8, mode)
            if clause:
                clauses.append(clause.decode())
        return " ".join(clauses)


def _short_path(path: str) -> str:
    """The path, or a short link to it where it is too long for the library."""
    if len(os.fsencode(path)) <= LONGEST_DATA_PATH:
        return path
    link = Path(tempfile.mkdtemp(prefix="espeak-")) / "espeak-ng-data"
    link.symlink_to(path)
    return str(link)
