"""`python -m tts.engine.host ENGINE`: the child process that holds one engine. Started by
`tts.engine.process`.

Frames come on standard input and leave on what was standard output. Before anything else is imported, file
descriptor 1 is pointed at standard error, so that a library that prints cannot break a frame.

One thread reads frames all the time, so that a cancel is seen while the engine speaks; the main thread works.
The process dies with its parent: by the kernel's word (PR_SET_PDEATHSIG), and when standard input ends.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from io import BufferedWriter, FileIO
from typing import Any

from tts.engine.base import BudgetUsedUp, Canceled, Engine, LoadedEngine, SpeakControl
from tts.engine.capabilities import Capabilities
from tts.engine.catalogue import capabilities_of
from tts.engine.delivery import delivered
from tts.engine.errors import OUT_OF_MEMORY, EngineError
from tts.engine.processor_watch import ProcessorWatch
from tts.engine.protocol import (
    PARENT_VARIABLE,
    ByteReader,
    ByteWriter,
    Frame,
    ProtocolError,
    SpeakRequest,
    read_frame,
    write_frame,
)
from tts.engine.registry import engine_class

logger = logging.getLogger("tts.engine.host")

PR_SET_PDEATHSIG = 1  # linux/prctl.h
BYTES_PER_SAMPLE = 2
EXIT_PARENT_GONE = 3
EXIT_DEVICE_LOST = 4


class Channel:
    """The way out: whole frames, from any thread."""

    def __init__(self, stream: ByteWriter) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, op: str, payload: bytes = b"", **fields: Any) -> None:
        """Write one frame. Ends the process when the parent is gone: nobody is left to speak to."""
        with self._lock:
            try:
                write_frame(self._stream, {"op": op, **fields}, payload)
            except OSError:
                os._exit(EXIT_PARENT_GONE)


class Cancellations:
    """Which requests are canceled. A cancel overtakes nothing, but may come after its request has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, threading.Event] = {}

    def expect(self, request_id: str) -> None:
        """Called by the reader when a request arrives, before any cancel for it can."""
        with self._lock:
            self._events[request_id] = threading.Event()

    def cancel(self, request_id: str) -> None:
        with self._lock:
            event = self._events.get(request_id)
        if event is not None:
            event.set()

    def event(self, request_id: str) -> threading.Event:
        with self._lock:
            return self._events[request_id]

    def forget(self, request_id: str) -> None:
        with self._lock:
            self._events.pop(request_id, None)


class Host:
    """Drives one engine by the frames that arrive."""

    def __init__(self, engine: Engine, incoming: ByteReader, outgoing: ByteWriter) -> None:
        self._engine = engine
        self._incoming = incoming
        self._channel = Channel(outgoing)
        self._cancellations = Cancellations()
        self._work: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._loaded: LoadedEngine | None = None
        self._capabilities = Capabilities(languages=("und",))

    def run(self) -> None:
        """Work until told to stop. The reader ends the process when the parent is gone."""
        threading.Thread(target=self._read, name="frames", daemon=True).start()
        while True:
            frame = self._work.get()
            if frame.op == "stop":
                self._engine.close()
                self._channel.send("stopped")
                return
            self._handle(frame)

    def _read(self) -> None:
        try:
            while (frame := read_frame(self._incoming)) is not None:
                if frame.op == "cancel":
                    self._cancellations.cancel(str(frame.header.get("request_id")))
                    continue
                if frame.op == "speak":
                    self._cancellations.expect(str(frame.header.get("request_id")))
                self._work.put(frame)
        except ProtocolError:
            logger.exception("engine_host_protocol_error")
        # Not sys.exit: the main thread may be deep in a model.
        os._exit(EXIT_PARENT_GONE)

    def _handle(self, frame: Frame) -> None:
        request_id = str(frame.header.get("request_id", ""))
        try:
            if frame.op == "load":
                self._load(frame)
            elif frame.op == "warm_up":
                self._engine.warm_up()
                self._channel.send("warmed")
            elif frame.op == "speak":
                self._speak(SpeakRequest.from_frame(frame))
            elif frame.op == "stats":
                self._channel.send("stats", stats=self._engine.stats())
            else:
                self._send_error(request_id, EngineError("unknown_operation", "There is no such operation."))
        except EngineError as error:
            self._send_error(request_id, error)
        except ProtocolError:
            logger.exception("engine_host_bad_frame")
            self._send_error(request_id, EngineError("bad_request", "The request was not understood."))
        except Exception as error:
            # The type alone: a model's message may quote the customer's text.
            logger.error("engine_host_operation_failed %s %s", frame.op, type(error).__name__)
            self._send_error(request_id, _engine_error(error))

    def _load(self, frame: Frame) -> None:
        loaded = self._engine.load(dict(frame.header.get("settings", {})))
        capabilities = capabilities_of(loaded)
        self._loaded, self._capabilities = loaded, capabilities
        self._channel.send(
            "loaded",
            engine=self._loaded.engine,
            engine_version=self._loaded.engine_version,
            sample_rate_hz=self._loaded.sample_rate_hz,
            languages=list(self._loaded.languages),
            capabilities=capabilities.as_json(),
        )

    def _speak(self, request: SpeakRequest) -> None:
        if self._loaded is None:
            raise EngineError("not_loaded", "The engine was asked to speak before it was loaded.")
        if request.instruction and not self._engine.takes_instructions:
            # It would be spoken as if nothing had been asked for; another device may do better.
            self._cancellations.forget(request.request_id)
            raise EngineError("mode_not_supported", "This engine takes no instructions.")
        spoken = _Spoken(self._channel, request.request_id, self._loaded.sample_rate_hz)
        control = self._control(request)
        again = False
        try:
            try:
                outcome = self._watched(request, control, spoken)
            except Exception as error:
                # What has been sent cannot be taken back, so it cannot be made in another way.
                if spoken.audio_ms or not is_out_of_memory(error):
                    raise
                again = True
            if again:
                # Only now: until the handler has ended, the error holds on to the tensors of the first try.
                logger.warning("engine_host_out_of_memory")
                self._engine.free_memory()
                # With a clock of its own: the first try was our fault, and costs nobody anything.
                control = self._control(request, save_memory=True)
                outcome = self._watched(request, control, spoken)
        except EngineError as error:
            error.gpu_ms = error.gpu_ms or control.clock.elapsed_ms()
            raise
        except Exception as error:
            logger.error("engine_host_speak_failed %s", type(error).__name__)
            failed = _engine_error(error)
            failed.gpu_ms = control.clock.elapsed_ms()
            raise failed from error
        finally:
            self._cancellations.forget(request.request_id)
        figures: dict[str, Any] = {"gpu_ms": control.clock.elapsed_ms(), "audio_ms": spoken.audio_ms}
        if outcome == "done":
            figures.update(
                peak_memory_bytes=self._engine.peak_memory_bytes(),
                seed=request.seed if control.seed_used is None else control.seed_used,
                ran_out_of_memory=again,
                written_off_ms=control.clock.written_off_ms,
                similarity=self._similarity(),
            )
        self._channel.send(outcome, request_id=request.request_id, **figures)

    def _similarity(self) -> float | None:
        """Of what was just spoken to its reference, outside of the device's time. Its failure is nobody's loss."""
        try:
            return self._engine.similarity()
        except Exception as error:
            logger.warning("engine_similarity_failed %s", type(error).__name__)
            return None

    def _control(self, request: SpeakRequest, *, save_memory: bool = False) -> SpeakControl:
        return SpeakControl(
            max_gpu_ms=request.max_gpu_ms,
            canceled=self._cancellations.event(request.request_id),
            report_progress=lambda: self._channel.send("progress", request_id=request.request_id),
            save_memory=save_memory,
            report_features=lambda features: self._channel.send(
                "features", features, request_id=request.request_id
            ),
        )

    def _watched(self, request: SpeakRequest, control: SpeakControl, spoken: _Spoken) -> str:
        if not self._engine.works_on_cpu:
            return self._deliver(request, control, spoken)
        with ProcessorWatch(control.report_progress):
            return self._deliver(request, control, spoken)

    def _deliver(self, request: SpeakRequest, control: SpeakControl, spoken: _Spoken) -> str:
        """Speak and send; return how it ended: done, canceled or budget_exhausted."""
        chunks = delivered(self._engine, request, control, self._capabilities)
        try:
            control.check()
            while True:
                control.clock.resume()
                try:
                    pcm = next(chunks, None)
                finally:
                    # A reader that is slow must not cost the customer device time.
                    control.clock.pause()
                if pcm is None:
                    return "done"
                spoken.send(pcm, gpu_ms=control.clock.elapsed_ms())
        except Canceled:
            return "canceled"
        except BudgetUsedUp:
            return "budget_exhausted"

    def _send_error(self, request_id: str, error: EngineError) -> None:
        self._channel.send(
            "error",
            request_id=request_id,
            code=error.code,
            message=error.message,
            blame=error.blame,
            gpu_ms=error.gpu_ms,
        )


class _Spoken:
    """Chunks numbered, sent and counted."""

    def __init__(self, channel: Channel, request_id: str, sample_rate_hz: int) -> None:
        self._channel = channel
        self._request_id = request_id
        self._sample_rate_hz = sample_rate_hz
        self._sequence = 0
        self._bytes = 0

    def send(self, pcm: bytes, *, gpu_ms: int) -> None:
        if not pcm:
            return
        self._channel.send("chunk", pcm, request_id=self._request_id, sequence=self._sequence, gpu_ms=gpu_ms)
        self._sequence += 1
        self._bytes += len(pcm)

    @property
    def audio_ms(self) -> int:
        """Whole milliseconds of audio sent, rounded up."""
        return math.ceil(self._bytes * 1000 / BYTES_PER_SAMPLE / self._sample_rate_hz)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether host or device had no memory left. By name: torch's own error cannot be imported here."""
    return isinstance(error, MemoryError) or any(
        kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__
    )


def _engine_error(error: Exception) -> EngineError:
    """What a library's exception means to the worker, without its message.

    Ends the process where the device's context is lost: after such an error every call fails, and says nothing true.
    """
    if isinstance(error, RuntimeError) and str(error).startswith("CUDA error"):
        os._exit(EXIT_DEVICE_LOST)
    if is_out_of_memory(error):
        return EngineError(OUT_OF_MEMORY, "There was not enough memory.")
    return EngineError("engine_exception", f"{type(error).__name__} in the engine.")


def claim_channel() -> tuple[FileIO, BufferedWriter]:
    """Keep the two pipes for frames; what the process reads or prints from now on goes elsewhere."""
    # Unbuffered: a thread that waits inside a buffered reader can break the interpreter's end.
    incoming = os.fdopen(os.dup(0), "rb", buffering=0)
    outgoing = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends; go now when it has ended already.

    The kernel means the parent's thread: whoever starts an engine does so from a thread that outlives it.
    """
    expected = int(os.environ.get(PARENT_VARIABLE, "0"))
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if expected and os.getppid() != expected:
        os._exit(EXIT_PARENT_GONE)


class _BrokenEngine(Engine):
    """In place of an engine that there is not: says why when it is asked to load."""

    def __init__(self, error: EngineError) -> None:
        self._error = error

    def load(self, settings: dict[str, Any]) -> LoadedEngine:
        raise self._error

    def warm_up(self) -> None:
        raise self._error

    def speak(self, request: SpeakRequest, control: SpeakControl) -> Iterator[bytes]:
        raise self._error


def made_engine(name: str) -> Engine:
    """The engine of that name; where it cannot be made, one that says so when it is asked to load."""
    try:
        return engine_class(name)()
    except EngineError as error:
        logger.error("engine_not_made %s", error)
        return _BrokenEngine(error)
    except Exception as error:
        # The type alone, as everywhere here; the traceback of a broken package goes to its log.
        logger.exception("engine_not_made")
        return _BrokenEngine(
            EngineError("engine_broken", f"The engine {name} cannot be made ({type(error).__name__}).")
        )


def main(arguments: list[str]) -> None:
    """Hold the engine that the first argument names until told to stop."""
    die_with_parent()
    incoming, outgoing = claim_channel()
    # A terminal's Ctrl-C is for the worker, which stops its engine in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    Host(made_engine(arguments[0]), incoming, outgoing).run()
    # Not sys.exit: the teardown of a model's libraries can hang, and there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
