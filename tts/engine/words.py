"""Chinese text cut into words by jieba, with its dictionary read piece by piece.

jieba reads all of its half million words before the first cut, 0.6 s and 60 MB each time. Whatever it looks up begins
with a character of the text, so a dictionary grouped by first characters needs to be read for those only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jieba

DIGEST_LENGTH = 64


class WordFrequencies:
    """What jieba asks its dictionary: how often a word is, 0 for a mere beginning of words. Parsed where asked."""

    def __init__(self, groups: Mapping[str, str]) -> None:
        self._groups = groups
        self._parsed: dict[str, dict[str, int]] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._group(word[:1])

    def __getitem__(self, word: str) -> int:
        return self._group(word[:1])[word]

    def get(self, word: str, default: int | None = None) -> int | None:
        return self._group(word[:1]).get(word, default)

    def _group(self, first: str) -> dict[str, int]:
        if first not in self._groups:
            return {}
        if first not in self._parsed:
            self._parsed[first] = _with_beginnings(self._groups[first])
        return self._parsed[first]


def word_cutter(cache_folder: Path) -> jieba.Tokenizer:
    """jieba's cutter. Its grouped dictionary is kept in `cache_folder`, and made anew where missing or damaged.

    Several processes may ask at once: each writes a whole file. A folder that cannot be written to costs time only.
    """
    cutter = jieba.Tokenizer()
    total, groups = _grouped(cutter, cache_folder / f"jieba-{jieba.__version__}-grouped.json")
    cutter.FREQ, cutter.total, cutter.initialized = WordFrequencies(groups), total, True
    return cutter


def _grouped(cutter: jieba.Tokenizer, path: Path) -> tuple[int, dict[str, str]]:
    """The sum of all frequencies, and for each first character its words as "word frequency word frequency …"."""
    with contextlib.suppress(OSError, ValueError):
        return _decoded(path.read_bytes())
    with cutter.get_dict_file() as file:
        total, groups = _group(file.read().decode())
    with contextlib.suppress(OSError):
        _write(path, _encoded(total, groups))
    return total, groups


def _group(dictionary: str) -> tuple[int, dict[str, str]]:
    total = 0
    groups: dict[str, list[str]] = {}
    for line in dictionary.splitlines():
        word, frequency = line.strip().split(" ")[:2]
        total += int(frequency)
        groups.setdefault(word[0], []).append(f"{word} {frequency}")
    return total, {first: " ".join(entries) for first, entries in groups.items()}


def _with_beginnings(entries: str) -> dict[str, int]:
    fields = entries.split(" ")
    frequencies = {word: int(frequency) for word, frequency in zip(fields[::2], fields[1::2], strict=True)}
    for word in fields[::2]:
        for end in range(1, len(word)):
            frequencies.setdefault(word[:end], 0)
    return frequencies


def _encoded(total: int, groups: dict[str, str]) -> bytes:
    """The SHA-256 of what follows it, then JSON."""
    content = json.dumps([total, groups], ensure_ascii=False).encode()
    return hashlib.sha256(content).hexdigest().encode() + content


def _decoded(data: bytes) -> tuple[int, dict[str, str]]:
    """Raises ValueError where the file is not whole."""
    digest, content = data[:DIGEST_LENGTH], data[DIGEST_LENGTH:]
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ValueError("damaged")
    total, groups = json.loads(content)
    return total, groups


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="words-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
