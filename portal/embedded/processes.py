"""Child processes that cannot outlive their stack, and the leftovers of one that was killed.

Every child is the leader of a session of its own, so that Ctrl-C reaches the supervisor alone and the order
of stopping is ours. On Linux the kernel signals each child when its parent dies (PR_SET_PDEATHSIG). Each is
recorded under `DATA/run` with process id, start time and command line, and each carries the stack's token in
its environment, which its own children inherit: so a later start can tell what is left of this stack and what
is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from portal.lib.child_process import die_with_parent

TOKEN_VARIABLE = "VOICEPOOL_STACK"  # noqa: S105 - the name of a variable, not a secret
PROC = Path("/proc")


@dataclass(frozen=True)
class Account:
    """The user and group that a child runs as."""

    uid: int
    gid: int


@dataclass(frozen=True)
class ProcessIdentity:
    """What tells one process from any other that had or will have its process id."""

    pid: int
    started: str  # opaque; equal only for the same process of the same boot
    command: str


def identify(pid: int) -> ProcessIdentity | None:
    """Return who `pid` is now, or None when it has ended (a zombie has ended)."""
    if not PROC.joinpath("self/stat").exists():
        return _identify_with_ps(pid)
    try:
        # The name in parentheses may hold spaces and parentheses itself: fields are counted after the last
        # one.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return ProcessIdentity(pid=pid, started=f"{boot}/{fields[19]}", command=command)


def _identify_with_ps(pid: int) -> ProcessIdentity | None:
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not shown or shown.startswith("Z"):
        return None
    # stat, then five words of date, then the command.
    words = shown.split(None, 6)
    return ProcessIdentity(pid=pid, started=" ".join(words[1:6]), command=words[6] if len(words) > 6 else "")


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    output: int,
    errors: int = subprocess.STDOUT,
    directory: Path | None = None,
    account: Account | None = None,
    stdin: int = subprocess.DEVNULL,
    keep_open: Sequence[int] = (),
    parent_death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a child as leader of its own session, which is sent `parent_death_signal` if this process dies.

    `output` is a file descriptor (or subprocess.PIPE) for standard output; errors go to the same place unless
    `errors` names another. The directory is entered before the account is taken on, so it may lie where that
    account cannot go. Call it from the main thread: the kernel counts the death of the *thread* that started
    the child.
    """
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        cwd=directory,
        stdin=stdin,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        pass_fds=tuple(keep_open),
        preexec_fn=die_with_parent(parent_death_signal),
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended. It is not reaped here, so that its process id stays its own until `stop`."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def stop(process: subprocess.Popen[bytes], *, first: signal.Signals, grace_s: float) -> int:
    """Send `first`, wait up to `grace_s`, then kill what is left of the session; return its status."""
    if process.returncode is None and not has_ended(process):
        os.kill(process.pid, first)
    return wait_and_end(process, grace_s=grace_s)


def wait_and_end(
    process: subprocess.Popen[bytes], *, grace_s: float, in_a_hurry: Callable[[], bool] = lambda: False
) -> int:
    """Wait up to `grace_s` for a child's end, then kill what is left of its session; return its status."""
    if process.returncode is not None:
        return process.returncode
    deadline = time.monotonic() + grace_s
    while not has_ended(process) and time.monotonic() < deadline and not in_a_hurry():
        time.sleep(0.01)
    # Also after an orderly end: whatever stayed in the session would keep files and ports.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


class ProcessRecords:
    """The processes of one stack as files `NAME.json` in a folder, and the end of those that a dead stack
    left.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, name: str, pid: int, *, token: str) -> None:
        """Record a child that was just started, under the stack's token."""
        identity = identify(pid)
        if identity is None:
            return
        text = json.dumps({"token": token, **asdict(identity)})
        temporary = self.folder / f".{name}.json"
        temporary.write_text(text)
        temporary.replace(self.folder / f"{name}.json")

    def forget(self, name: str) -> None:
        (self.folder / f"{name}.json").unlink(missing_ok=True)

    def end_leftovers(self, *, grace_s: float = 10.0) -> list[str]:
        """End what an earlier stack on this folder left running; return the names of what was found.

        Call it only with the folder's lock in hand. A recorded process is signalled only where process id,
        start time and command line all agree, any other only where it carries the recorded stack's random
        token.
        """
        found: list[str] = []
        leftovers: dict[int, ProcessIdentity] = {}
        tokens: set[str] = set()
        for path in self.folder.glob("*.json"):
            recorded, token = _read_record(path)
            if token:
                tokens.add(token)
            if recorded is not None and identify(recorded.pid) == recorded:
                leftovers[recorded.pid] = recorded
                found.append(path.stem)
        for identity in _carriers(tokens):
            if identity.pid not in leftovers:
                leftovers[identity.pid] = identity
                found.append(identity.command.partition("\0")[0])
        _end(leftovers.values(), grace_s=grace_s)
        for path in self.folder.glob("*.json"):
            path.unlink(missing_ok=True)
        return found


def _read_record(path: Path) -> tuple[ProcessIdentity | None, str]:
    """The identity and the token in one record; a record cut short by a kill names nothing."""
    try:
        values = json.loads(path.read_text())
        return ProcessIdentity(int(values["pid"]), values["started"], values["command"]), values["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _carriers(tokens: set[str]) -> Iterator[ProcessIdentity]:
    """Processes, this one aside, whose environment at their start held one of the tokens."""
    if not tokens or not PROC.joinpath("self/environ").exists():
        return
    marks = {f"{TOKEN_VARIABLE}={token}".encode() for token in tokens}
    for entry in PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # ended meanwhile, or somebody else's
            continue
        if marks.intersection(variables):
            identity = identify(int(entry.name))
            if identity is not None:
                yield identity


def _end(leftovers: Iterable[ProcessIdentity], *, grace_s: float) -> None:
    processes = list(leftovers)
    # SIGINT is an orderly end for all of ours, and for PostgreSQL the only one that does not wait for
    # clients.
    for death_signal in (signal.SIGINT, signal.SIGKILL):
        for identity in processes:
            # Looked up again right before the signal: the process id may have gone to another in between.
            if identify(identity.pid) == identity:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(identity.pid, death_signal)
        deadline = time.monotonic() + grace_s
        while processes and time.monotonic() < deadline:
            processes = [item for item in processes if identify(item.pid) == item]
            if processes:
                time.sleep(0.02)
        if not processes:
            return
