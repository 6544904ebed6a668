"""Cutting Chinese into words: as jieba does, from a dictionary that is read piece by piece and kept in a file."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import jieba
import pytest

from tts.engine.process import PROJECT_FOLDER
from tts.engine.words import word_cutter

TEXTS = (
    "清晨的阳光慢慢照进窗户楼下不知哪里开了一扇门",
    "长春市长春节致词",
    "结婚的和尚未结婚的",
    "他来到了网易杭研大厦",
    "龘靐齉爩𠮷",
    "啊",
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the dictionary is kept."""
    folder = tmp_path_factory.mktemp("words")
    word_cutter(folder)
    return folder


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_it_knows_what_jieba_knows_and_cuts_as_it_does(kept: Path, tmp_path: Path):
    jieba.setLogLevel(logging.WARNING)
    theirs = jieba.Tokenizer()
    theirs.tmp_dir = str(tmp_path)
    theirs.initialize()
    ours = word_cutter(kept)
    assert ours.total == theirs.total
    assert [word for word, frequency in theirs.FREQ.items() if ours.FREQ.get(word) != frequency] == []
    for text in TEXTS:
        assert ours.lcut(text, HMM=False) == theirs.lcut(text, HMM=False)
    assert "清晨的" not in ours.FREQ
    assert ours.FREQ.get("清晨的") is None


def test_a_damaged_dictionary_is_made_anew(kept: Path, tmp_path: Path):
    whole = only_file(kept).read_bytes()
    file = tmp_path / only_file(kept).name
    middle = len(whole) // 2
    for damaged in (b"", whole[:-1], whole[:middle] + b"\0" + whole[middle + 1 :]):
        file.write_bytes(damaged)
        assert word_cutter(tmp_path).lcut("长春市长春节致词", HMM=False) == ["长春", "市长", "春节", "致词"]
        assert file.read_bytes() == whole
    assert only_file(tmp_path) == file


def test_two_processes_at_once_make_one_whole_dictionary(kept: Path, tmp_path: Path):
    folder = tmp_path / "a cache"
    script = f"from pathlib import Path; from tts.engine.words import word_cutter; word_cutter(Path({str(folder)!r}))"
    makers = [subprocess.Popen([sys.executable, "-c", script], cwd=PROJECT_FOLDER) for _ in range(2)]
    assert [maker.wait(60) for maker in makers] == [0, 0]
    assert only_file(folder).read_bytes() == only_file(kept).read_bytes()


def test_a_folder_that_cannot_be_written_to_costs_time_only(tmp_path: Path):
    (tmp_path / "file").touch()
    # Nobody can make a folder in a file, not even the administrator.
    assert word_cutter(tmp_path / "file" / "cache").lcut("你好世界", HMM=False) == ["你好", "世界"]
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    assert word_cutter(folder).lcut("你好世界", HMM=False) == ["你好", "世界"]
    assert os.geteuid() == 0 or list(folder.iterdir()) == []
