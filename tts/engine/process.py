"""The worker's side of an engine: a child process that can be killed at any moment.

    engine = EngineProcess(None, "kokoro", settings={}, environment={})
    engine.start(); engine.load(60); engine.warm_up(60)
    for part in engine.speak(request, no_progress_s=20, deadline_s=120, on_idle=None): …

Not thread-safe but for `cancel`, `kill`, `pid` and `alive`. Start it from a thread that outlives it: the
kernel kills the child when the thread that started it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Union

from tts.engine.base import LoadedEngine
from tts.engine.capabilities import Capabilities
from tts.engine.errors import (
    BudgetExhausted,
    EngineCanceled,
    EngineDied,
    EngineError,
    EngineFailure,
    EngineHung,
)
from tts.engine.patience import Patience
from tts.engine.protocol import (
    PARENT_VARIABLE,
    Frame,
    ProtocolError,
    SpeakRequest,
    VoiceReference,
    encode_frame,
    read_frame,
)
from tts.engine.replies import Chunk, Done, Features, error_of, result_of

__all__ = [
    "BudgetExhausted",
    "Chunk",
    "Done",
    "EngineCanceled",
    "EngineDied",
    "EngineError",
    "EngineFailure",
    "EngineHung",
    "EngineProcess",
    "Features",
    "SpeakRequest",
    "VoiceReference",
]

PROJECT_FOLDER = Path(__file__).resolve().parents[2]
IDLE_S = 0.1  # how often `on_idle` is called at least
KILL_S = 10.0  # a process that outlives SIGKILL by this much hangs in the kernel: the device is suspect
CANCEL_S = 1.0
# Some seconds of audio: an engine works on while its chunk is read. Linux's limit for ordinary users.
PIPE_BYTES = 1 << 20
# An engine runs other people's code: it sees what it needs to find its libraries, and none of the portal's
# secrets. By VOICEPOOL_STACK an embedded stack knows its own processes again.
INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "VOICEPOOL_STACK",
)
INHERITED_PREFIXES = (
    *("LC_", "XDG_", "PYTHON"),
    *("CUDA_", "NVIDIA_", "NCCL_", "OMP_", "MKL_", "OPENBLAS_", "NVPL_", "COSYVOICE_"),
)


class EngineProcess:
    """One engine in a child process. Every method that waits has a limit, and none waits on a process that
    ended."""

    def __init__(
        self,
        command: Sequence[str] | None,
        engine: str,
        settings: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        """`command` runs the host up to the engine's name; None is this interpreter. `environment` is added
        to the few variables that an engine inherits."""
        self._command = list(command) if command else [sys.executable, "-m", "tts.engine.host"]
        self.loaded: Union[LoadedEngine, None] = None  # what it said of itself
        self.engine = engine
        self._settings = dict(settings)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: queue.SimpleQueue[Frame | ProtocolError | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._ending = threading.Lock()
        self._loading = False

    @property
    def pid(self) -> int | None:
        """The process id, also that of its process group; None before `start`."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None and not self._has_ended()

    def start(self) -> None:
        """Start the child. Returns at once; `load` says whether it came up."""
        if self._process is not None:
            raise RuntimeError("an engine process is started once")
        self._process = subprocess.Popen(
            [*self._command, self.engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT_FOLDER,
            env=self._child_environment(),
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        assert self._process.stdout is not None  # noqa: S101 - likewise
        os.set_blocking(self._process.stdin.fileno(), False)
        # A kernel that grants no more leaves what there is: then the engine waits while a chunk is read.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._process.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        reader = threading.Thread(
            target=_read_frames, args=(self._process.stdout, self._frames), name="engine-frames", daemon=True
        )
        reader.start()

    def begin_loading(self) -> None:
        """Ask the child to load and return at once; `load` then only waits for its answer.

        Before anything else is asked: the question lies in the pipe until the child has come up.
        """
        process = self._process
        if process is None or process.stdin is None:
            raise EngineDied("the engine process was not started")
        self._loading = True
        # A child that ended already is told of by `load`.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(encode_frame({"op": "load", "settings": self._settings}, b""))

    def load(self, timeout_s: float) -> LoadedEngine:
        """Wait for the engine to be loaded.

        Raises:
            EngineError: it cannot be loaded with these settings.
            EngineHung, EngineDied: it did not come up.
        """
        question = None if self._loading else {"op": "load", "settings": self._settings}
        self._loading = False
        header = self._ask(question, "loaded", timeout_s).header
        self.loaded = LoadedEngine(
            engine=str(header["engine"]),
            engine_version=str(header["engine_version"]),
            sample_rate_hz=int(header["sample_rate_hz"]),
            languages=tuple(str(language) for language in header["languages"]),
            capabilities=Capabilities.from_json(header["capabilities"]),
        )
        return self.loaded

    def warm_up(self, timeout_s: float) -> None:
        """Speak something short inside the engine. Raises like `load`."""
        self._ask({"op": "warm_up"}, "warmed", timeout_s)

    def stats(self, timeout_s: float = 10.0) -> dict[str, Any]:
        """The engine's figures. Raises like `load`. Not while it speaks: it answers after the request."""
        return dict(self._ask({"op": "stats"}, "stats", timeout_s).header["stats"])

    def speak(
        self,
        request: SpeakRequest,
        *,
        no_progress_s: float,
        deadline_s: float,
        on_idle: Callable[[], None] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Iterator[Union[Chunk, Features, Done]]:
        """Chunks as they are made, and a `Done` at the end. `Features` come once, where they were computed.

        `on_sent` is called once the engine has the request, `on_idle` at least every 100 ms while waiting. A
        consumer that stops early cancels the request.

        Raises:
            EngineDied: the process ended; nothing more can be asked of it.
            EngineHung: no sign of life for `no_progress_s`, or not done within `deadline_s`. Kill it.
            EngineError: refused or failed; see `blame`.
            EngineCanceled, BudgetExhausted: stopped early, with what was used.
        """
        patience = Patience(no_progress_s=no_progress_s, deadline_s=deadline_s)
        ended = False
        try:
            self._send(request.to_header(), request.payload, patience, on_idle)
            _call(on_sent)
            while not ended:
                frame = self._next_frame(patience, on_idle)
                if frame.header.get("request_id") != request.request_id:
                    continue  # the rest of a request that was given up
                patience.renew()
                ended = frame.op not in ("chunk", "progress", "features")
                result = result_of(frame)
                if result is not None:
                    yield result
        except (EngineDied, EngineHung):
            ended = True
            raise
        finally:
            if not ended:
                self.cancel(request.request_id)

    def cancel(self, request_id: str) -> bool:
        """Ask the engine to stop a request between two pieces of work. Any thread. Whether the word was
        passed on."""
        try:
            self._send({"op": "cancel", "request_id": request_id}, b"", Patience(CANCEL_S, CANCEL_S), None)
        except (EngineDied, EngineHung):
            return False
        return True

    def give_up(self, request_id: str, within_s: float) -> bool:
        """Cancel a request that hung. Whether the engine let go of it in time: then it is not stuck in a call."""
        patience = Patience(no_progress_s=within_s, deadline_s=within_s)
        try:
            self._send({"op": "cancel", "request_id": request_id}, b"", patience, None)
            while True:
                frame = self._next_frame(patience, None)
                if frame.header.get("request_id") == request_id and frame.op not in ("chunk", "progress"):
                    return True
        except (EngineDied, EngineHung):
            return False

    def stop(self, grace_s: float) -> None:
        """Let the engine end by itself within `grace_s`, else kill it."""
        if self._process is None:
            return
        with contextlib.suppress(EngineFailure):
            self._ask({"op": "stop"}, "stopped", grace_s)
            _wait_until(self._has_ended, grace_s)
        self.kill()

    def kill(self) -> bool:
        """SIGKILL to the whole process group. Whether the process was gone within 10 s. Any thread, any
        number of times."""
        process = self._process
        if process is None:
            return True
        with self._ending:
            if process.returncode is not None:
                return True
            # Before the process is reaped: until then its group cannot be another's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            try:
                process.wait(KILL_S)
            except subprocess.TimeoutExpired:
                return False
        with self._writing:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        return True

    def _child_environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in INHERITED or name.startswith(INHERITED_PREFIXES)
        }
        # Nothing is fetched at run time: libraries that would ask a hub are told so.
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        return {**kept, **offline, **self._environment, PARENT_VARIABLE: str(os.getpid())}

    def _has_ended(self) -> bool:
        """Whether the process has ended, without reaping it (see `kill`)."""
        process = self._process
        if process is None or process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _ask(self, header: Union[dict[str, Any], None], answer: str, timeout_s: float) -> Frame:
        """Send a question that is no request, unless it was sent before, and wait for its answer."""
        patience = Patience(no_progress_s=timeout_s, deadline_s=timeout_s)
        if header is not None:
            self._send(header, b"", patience, None)
        while True:
            frame = self._next_frame(patience, None)
            if frame.op == answer:
                return frame
            if frame.op == "error" and not frame.header.get("request_id"):
                raise error_of(frame)

    def _send(
        self, header: dict[str, Any], payload: bytes, patience: Patience, on_idle: Callable[[], None] | None
    ) -> None:
        """Write a frame, however long the other side takes to read it, within `patience`."""
        process = self._process
        if process is None or process.stdin is None:
            raise EngineDied("the engine process was not started")
        left = memoryview(encode_frame(header, payload))
        while not self._writing.acquire(timeout=IDLE_S):
            patience.check()
        broken: OSError | None = None
        try:
            writable = select.poll()
            if not process.stdin.closed:
                writable.register(process.stdin, select.POLLOUT)
            while left:
                if process.stdin.closed:
                    raise EngineDied("the engine process was stopped", process.returncode)
                if not writable.poll(IDLE_S * 1000):
                    patience.check()
                    _call(on_idle)
                    continue
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(process.stdin.fileno(), left) :]
        except OSError as error:
            broken = error
        finally:
            self._writing.release()
        if broken is not None:
            # Only now: killing takes the lock.
            raise self._died("the engine process ended") from broken

    def _next_frame(self, patience: Patience, on_idle: Callable[[], None] | None) -> Frame:
        while True:
            ended = self._has_ended()
            try:
                frame = self._frames.get(timeout=IDLE_S)
            except queue.Empty:
                if ended:  # and yet the pipe is open: it left children behind
                    raise self._died("the engine process ended") from None
                patience.check()
                _call(on_idle)
                continue
            if isinstance(frame, ProtocolError):
                raise self._died(f"the engine process broke the protocol: {frame}") from frame
            if frame is None:
                raise self._died("the engine process ended")
            # Also between frames that follow fast: a cancel must not wait for the end of the speech.
            patience.check_deadline()
            _call(on_idle)
            return frame

    def _died(self, reason: str) -> EngineDied:
        """Make sure that it is dead, and say so."""
        self.kill()
        return EngineDied(reason, self._process.returncode if self._process else None)


def _read_frames(stream: IO[bytes], frames: queue.SimpleQueue[Frame | ProtocolError | None]) -> None:
    """Body of the reading thread: every frame into the queue, then the reason why there are no more."""
    with stream:
        try:
            while (frame := read_frame(stream)) is not None:
                frames.put(frame)
        except ProtocolError as error:
            frames.put(error)
        except (OSError, ValueError):
            pass  # closed under our hands
    frames.put(None)


def _call(on_idle: Callable[[], None] | None) -> None:
    if on_idle is not None:
        on_idle()


def _wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
