"""Models fetched from a hub on this machine, over cut connections, damaged files and full stops."""

from __future__ import annotations

import fcntl
import json
import random
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.model_store.hub import LocalHub
from tts.model_store.errors import SourceUnreachable
from tts.model_store.fetching import TRIES, fetch_file
from tts.model_store.sources import RemoteFile, list_files
from tts.model_store.store import MANIFEST, stored_models

PSEUDORANDOM = random.Random(7)
FILES = {
    "cosyvoice3.yaml": b"sample_rate: 24000\n",
    "llm.pt": PSEUDORANDOM.randbytes(300_000),
    "flow.pt": PSEUDORANDOM.randbytes(200_001),
    "hift.pt": PSEUDORANDOM.randbytes(5_000),
    "campplus.onnx": PSEUDORANDOM.randbytes(5_000),
    "speech_tokenizer_v3.onnx": PSEUDORANDOM.randbytes(5_000),
    "CosyVoice-BlankEN/config.json": b"{}",
    "CosyVoice-BlankEN/merges.txt": b"a b\n",
    "flow.decoder.estimator.fp32.onnx": PSEUDORANDOM.randbytes(2_000),
    "README.md": b"not part of the model",
}
NEEDED = sorted(set(FILES) - {"README.md", "flow.decoder.estimator.fp32.onnx"})


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    made = LocalHub(dict(FILES))
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two tries nothing is waited for: what is tried is on this machine."""
    monkeypatch.setattr("tts.model_store.fetching.FIRST_PAUSE_S", 0.0)


def fetch(hub: LocalHub, root: Path, *arguments: str) -> str:
    said = StringIO()
    call_command(
        "fetch_model",
        "cosyvoice3",
        "--endpoint",
        hub.url,
        "--to",
        str(root),
        *arguments,
        stdout=said,
        stderr=StringIO(),
    )
    return said.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and one.name != MANIFEST
    }


def expected(*more: str) -> dict[str, bytes]:
    return {name: FILES[name] for name in [*NEEDED, *more]}


@pytest.mark.parametrize("source", ["modelscope", "huggingface"])
def test_a_model_comes_whole_with_the_files_that_its_engine_loads(source: str, hub: LocalHub, tmp_path: Path):
    said = fetch(hub, tmp_path, "--source", source, "--with", "tensorrt")
    assert contents(tmp_path / "cosyvoice3") == expected("flow.decoder.estimator.fp32.onnx")
    (stored,) = stored_models(tmp_path)
    assert stored.version in said
    assert stored.source == f"{source}:FunAudioLLM/Fun-CosyVoice3-0.5B-2512"
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")] == []


def test_a_cut_connection_is_gone_on_with_where_it_broke(hub: LocalHub, tmp_path: Path):
    hub.cut_after, hub.cuts = 60_000, 6
    fetch(hub, tmp_path)
    assert contents(tmp_path / "cosyvoice3") == expected()
    assert [asked for name, asked in hub.asked if name == "flow.pt"][:3] == [
        "",
        "bytes=60000-",
        "bytes=120000-",
    ]


def test_a_command_that_was_stopped_goes_on_at_the_next_call(hub: LocalHub, tmp_path: Path):
    hub.cut_after, hub.cuts = 0, 10_000
    part = tmp_path / ".cosyvoice3.part"
    part.mkdir()
    (part / "llm.pt.part").write_bytes(FILES["llm.pt"][:123_456])
    with pytest.raises(CommandError, match="run the command again"):
        fetch(hub, tmp_path)
    assert not (tmp_path / "cosyvoice3").exists()
    hub.cuts = 0
    hub.asked.clear()
    fetch(hub, tmp_path)
    assert contents(tmp_path / "cosyvoice3") == expected()
    assert ("llm.pt", "bytes=123456-") in hub.asked


def test_a_source_without_ranges_sends_the_whole_again(hub: LocalHub, tmp_path: Path):
    hub.ranges = False
    hub.cut_after, hub.cuts = 150_000, 2
    fetch(hub, tmp_path)
    assert contents(tmp_path / "cosyvoice3") == expected()


def test_a_damaged_file_is_fetched_again_and_given_up_the_second_time(hub: LocalHub, tmp_path: Path):
    hub.damaged = {"hift.pt": 1}
    fetch(hub, tmp_path / "once")
    assert contents(tmp_path / "once" / "cosyvoice3") == expected()
    hub.damaged = {"hift.pt": 2}
    with pytest.raises(CommandError, match=r"hift\.pt does not have the checksum"):
        fetch(hub, tmp_path / "twice")
    assert stored_models(tmp_path / "twice") == []


def test_what_is_here_is_not_fetched_again_unless_asked_for(hub: LocalHub, tmp_path: Path):
    fetch(hub, tmp_path)
    hub.asked.clear()
    assert "is here already" in fetch(hub, tmp_path)
    assert hub.asked == []
    # Something that it did not have before is.
    fetch(hub, tmp_path, "--with", "tensorrt")
    assert "flow.decoder.estimator.fp32.onnx" in contents(tmp_path / "cosyvoice3")


def test_a_failed_update_leaves_the_model_that_was_here(hub: LocalHub, tmp_path: Path):
    fetch(hub, tmp_path)
    hub.files = {**FILES, "llm.pt": b"a new version" * 1000}
    hub.damaged = {"llm.pt": 2}
    with pytest.raises(CommandError):
        fetch(hub, tmp_path, "--again")
    assert contents(tmp_path / "cosyvoice3") == expected()
    fetch(hub, tmp_path, "--again")
    assert contents(tmp_path / "cosyvoice3")["llm.pt"] == hub.files["llm.pt"]


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (
            {"Data": {"Files": [{"Path": "../etc/x", "Type": "blob", "Size": 1, "Sha256": "0" * 64}]}},
            "impossible path",
        ),
        ({"Data": {"Files": [{"Path": "llm.pt", "Type": "blob", "Size": 1, "Sha256": ""}]}}, "no checksum"),
        (
            {"Data": {"Files": [{"Path": "llm.pt", "Type": "blob", "Size": "1", "Sha256": "0" * 64}]}},
            "how long",
        ),
        ({"Code": 404}, "as expected"),
        ({"Data": {"Files": []}}, "does not have"),
    ],
)
def test_a_listing_that_cannot_be_used_is_refused(listing: Any, said: str, hub: LocalHub, tmp_path: Path):
    hub.listing = listing
    with pytest.raises(CommandError, match=said):
        fetch(hub, tmp_path)
    assert hub.asked == []
    assert stored_models(tmp_path) == []


def test_a_source_that_fails_is_tried_some_times(hub: LocalHub, tmp_path: Path):
    (file, *_) = [
        one
        for one in list_files(source="modelscope", model_id="a/b", endpoint=hub.url)
        if one.path == "llm.pt"
    ]
    hub.status = 503
    pauses: list[float] = []
    with pytest.raises(SourceUnreachable, match="503"):
        fetch_file(file, tmp_path / "llm.pt", report=lambda _: None, pause=pauses.append)
    assert len(pauses) == TRIES - 1
    hub.status = 404
    with pytest.raises(CommandError, match="404"):
        fetch(hub, tmp_path)


def test_a_source_that_is_not_there_is_told_with_the_way_around(hub: LocalHub, tmp_path: Path):
    hub.stop()
    with pytest.raises(CommandError, match="--from FOLDER"):
        fetch(hub, tmp_path)


def test_two_do_not_fetch_into_one_folder_at_once(hub: LocalHub, tmp_path: Path):
    with (tmp_path / ".cosyvoice3.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match="by another process"):
            fetch(hub, tmp_path)
    assert hub.asked == []


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tts.model_store.store.SPARE_BYTES", 1 << 60)
    with pytest.raises(CommandError, match="are free"):
        fetch(hub, tmp_path)
    assert hub.asked == []


# --- from a folder ------------------------------------------------------------------------------------------------


def fill(folder: Path) -> Path:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_behind_a_firewall_a_folder_does(hub: LocalHub, tmp_path: Path):
    fetch(hub, tmp_path / "models", "--from", str(fill(tmp_path / "brought")))
    assert contents(tmp_path / "models" / "cosyvoice3") == expected()
    assert hub.asked == []


def test_a_folder_that_lacks_a_file_is_refused(hub: LocalHub, tmp_path: Path):
    brought = fill(tmp_path / "brought")
    (brought / "flow.pt").unlink()
    with pytest.raises(CommandError, match=r"flow\.pt"):
        fetch(hub, tmp_path / "models", "--from", str(brought))
    assert stored_models(tmp_path / "models") == []


def test_a_model_that_was_carried_over_is_held_against_its_checksums(hub: LocalHub, tmp_path: Path):
    fetch(hub, tmp_path / "there")
    carried = tmp_path / "there" / "cosyvoice3"
    fetch(hub, tmp_path / "here", "--from", str(carried))
    there, here = stored_models(tmp_path / "there")[0], stored_models(tmp_path / "here")[0]
    assert (here.version, here.source) == (there.version, there.source)
    (carried / "llm.pt").write_bytes(FILES["llm.pt"][:-1] + b"?")
    with pytest.raises(CommandError, match=r"llm\.pt"):
        fetch(hub, tmp_path / "elsewhere", "--from", str(carried))


# --- manage.py models ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_list_of_models_says_what_is_complete_and_what_is_damaged(hub: LocalHub, tmp_path: Path):
    def listed(*arguments: str) -> str:
        said = StringIO()
        call_command("models", "--to", str(tmp_path), *arguments, stdout=said, stderr=StringIO())
        return said.getvalue()

    assert "No models" in listed()
    fetch(hub, tmp_path)
    assert "complete" in listed("--verify")
    path = tmp_path / "cosyvoice3" / "flow.pt"
    path.write_bytes(FILES["flow.pt"][:-1] + b"?")
    assert "complete" in listed()
    with pytest.raises(CommandError, match="cosyvoice3"):
        listed("--verify")
    path.unlink()
    with pytest.raises(CommandError, match="cosyvoice3"):
        listed()


def test_a_file_of_git_is_held_against_gits_checksum(hub: LocalHub, tmp_path: Path):
    files = {one.path: one for one in list_files(source="huggingface", model_id="a/b", endpoint=hub.url)}
    small = files["cosyvoice3.yaml"]
    assert (small.sha256, len(small.git_sha1)) == ("", 40)
    fetch_file(small, tmp_path / "small", report=lambda _: None)
    assert (tmp_path / "small").read_bytes() == FILES["cosyvoice3.yaml"]
    other = RemoteFile(small.path, small.size_bytes, small.url, git_sha1="0" * 40)
    with pytest.raises(Exception, match="checksum"):
        fetch_file(other, tmp_path / "other", report=lambda _: None)


def test_the_manifest_is_plain_json(hub: LocalHub, tmp_path: Path):
    fetch(hub, tmp_path)
    manifest = json.loads((tmp_path / "cosyvoice3" / MANIFEST).read_text())
    assert sorted(one["path"] for one in manifest["files"]) == NEEDED
