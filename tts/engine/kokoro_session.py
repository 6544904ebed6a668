"""The model's session in ONNX Runtime, made from a graph that was optimised before.

ONNX Runtime takes 0.4 s to optimise the graph, each time to the same end. So the first session that is made in a cache
folder leaves its optimised graph there for the later ones, which then speak the very same bytes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import onnxruntime

logger = logging.getLogger(__name__)


def make_session(weights: Path, threads: int) -> onnxruntime.InferenceSession:
    """A session of the model, on `threads` threads. The optimised graph is kept beside `weights`.

    It is used where it can be read, made anew where it is missing or damaged, and done without where it cannot be
    written. Several processes may ask at once: one writes, the others do without.
    """
    optimised = optimised_path(weights)
    if optimised.exists():
        with contextlib.suppress(Exception):  # onnxruntime has a class of its own for each way to be damaged
            options = _options(threads)
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            return _session(optimised, options)
        logger.warning("engine_optimised_graph_damaged")
    with _writer_of(optimised) as part:
        if part is not None:
            # A disk may be full, for one.
            with contextlib.suppress(Exception):
                return _written(weights, threads, part, optimised)
    return _session(weights, _options(threads))


def optimised_path(weights: Path) -> Path:
    """Where the optimised graph of these weights is kept: good for one version of ONNX Runtime on one processor."""
    key = hashlib.sha256(f"{onnxruntime.__version__}\n{_processor()}".encode()).hexdigest()[:16]
    return weights.with_name(f"{weights.stem}-optimised-{key}.onnx")


def _processor() -> str:
    """What this processor can do: optimisation goes by that."""
    abilities = ""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        abilities = next((line for line in file if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()} {abilities}"


def _options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # a damaged graph is no error: it is made anew
    # Threads that spin while they wait take the cores from the web server and the database beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _session(graph: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    # The fallback would try the same again, and print that it does.
    return onnxruntime.InferenceSession(
        str(graph), sess_options=options, providers=["CPUExecutionProvider"], enable_fallback=0
    )


@contextlib.contextmanager
def _writer_of(optimised: Path) -> Iterator[Path | None]:
    """The path to write to, for the one process that may; None for all others, and where nobody can."""
    try:
        lock = open(optimised.with_name("optimise.lock"), "w")  # noqa: SIM115 (kept while the session is made)
    except OSError:
        yield None
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        # One name, so that what a killed writer left is written over.
        part = optimised.with_suffix(".part")
        try:
            yield part
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _written(weights: Path, threads: int, part: Path, optimised: Path) -> onnxruntime.InferenceSession:
    """A session from the weights, whose graph is then at `optimised`: whole, also after a crash of the machine."""
    options = _options(threads)
    options.optimized_model_filepath = str(part)
    session = _session(weights, options)
    with contextlib.suppress(OSError):
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, optimised)
    return session
