"""Calls of CosyVoice's model, each with an end: in time, in tokens, in error, and with nothing left behind.

`model.tts` runs the language model in a thread of its own. Left alone, an error there goes to nobody: the caller gets
the audio until then as if it were all, or (streaming) waits forever. A call that is given up leaves its entries in the
model's dictionaries, its thread running, and the length of its chunks for the next call.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

EXIT_WEDGED = 5
"""The process's exit code when a call would not end."""

# What torch says where the model stopped before it had said anything.
TOO_FEW_TOKENS = "Kernel size can't be greater than actual input size"
DICTIONARIES = ("tts_speech_token_dict", "llm_end_dict", "hift_cache_dict")
Sound = NDArray[np.float32]


class CallFailed(Exception):
    """The call went wrong in a way that another seed may not: `reason` is a word for it, never a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class CallLimits:
    """`check` is called at every token, in the model's thread; what it raises ends the call and reaches the caller.

    `max_tokens` of speech (25 a second); `deadline_s` in all, and `wedged_s` more until the process is given up.
    """

    check: Callable[[], None]
    max_tokens: int
    deadline_s: float
    wedged_s: float


class _Call:
    """What is known of the call that runs."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self.keys: list[str] = []
        self.error: Optional[BaseException] = None
        self.tokens = 0
        self.expired = False
        self.closed = False
        self.over = threading.Event()
        self.thread_ended = threading.Event()

    def next_token(self) -> None:
        if self.closed:
            raise CallFailed("given_up")
        if self.expired:
            raise CallFailed("deadline")
        self.tokens += 1
        if self.tokens > self.limits.max_tokens:
            raise CallFailed("endless")
        self.limits.check()


class _WatchedTokens(list[Any]):
    """The list into which the model's thread puts its tokens: the one place that it passes at each of them."""

    def __init__(self, call: _Call) -> None:
        super().__init__()
        self._call = call

    def append(self, token: Any) -> None:
        self._call.next_token()
        super().append(token)


def _end_process() -> None:
    # Not sys.exit: the main thread hangs in the model, and so does the model's own, which would be waited for.
    os._exit(EXIT_WEDGED)


class ModelCalls:
    """One at a time. Wraps the model's `llm_job` for as long as the model lives."""

    def __init__(self, model: Any, *, on_wedged: Callable[[], None] = _end_process) -> None:
        self._model = model
        self._on_wedged = on_wedged
        self._job = model.llm_job
        self._first_hop = getattr(model, "token_hop_len", None)
        self._call: Optional[_Call] = None
        model.llm_job = self._watched_job

    def run(
        self, inputs: Mapping[str, Any], *, stream: bool, speed: float, limits: CallLimits
    ) -> Iterator[Sound]:
        """The sounds that a call of `model.tts` makes: one, or several where it streams. Closing it ends the call.

        Raises:
            CallFailed: `endless`, `deadline`, `no_tokens`.
            Whatever `limits.check` raised, and whatever went wrong in the model, in either thread.
        """
        call = self._call = _Call(limits)
        if self._first_hop is not None:
            # Each streamed call lengthens it, for all that follow.
            self._model.token_hop_len = self._first_hop
        threading.Thread(target=self._watch, args=(call,), name="call-watchdog", daemon=True).start()
        parts = self._model.tts(**inputs, stream=stream, speed=speed)
        try:
            for part in parts:
                _raise_from_thread(call, None)
                yield _sound(part)
            _raise_from_thread(call, None)
        except Exception as error:
            _raise_from_thread(call, error)
            if call.keys and (not call.tokens or TOO_FEW_TOKENS in str(error)):
                raise CallFailed("no_tokens") from error
            raise
        finally:
            with contextlib.suppress(Exception):  # what else went wrong is on its way already
                parts.close()
            self._let_go(call)

    def _watched_job(self, *arguments: Any, **named: Any) -> None:
        """Stands in for `model.llm_job`, in the model's thread."""
        call = self._call
        key = str(named["uuid"] if "uuid" in named else arguments[-1])
        if call is None:
            self._job(*arguments, **named)
            return
        call.keys.append(key)
        try:
            self._model.tts_speech_token_dict[key] = _WatchedTokens(call)
            self._job(*arguments, **named)
        except BaseException as error:
            if not call.closed:
                call.error = error
        finally:
            # Whoever waits for the end of the tokens finds it; whoever has gone does not find it again.
            self._model.llm_end_dict[key] = True
            if call.closed:
                self._forget(call)
            call.thread_ended.set()

    def _watch(self, call: _Call) -> None:
        """In a thread: end the call once its time is up, and the process where the call does not end even then."""
        if call.over.wait(call.limits.deadline_s):
            return
        call.expired = True
        for key in list(call.keys):
            # A reader that waits for more tokens goes on with those that there are.
            self._model.llm_end_dict[key] = True
        if not call.over.wait(call.limits.wedged_s):
            self._on_wedged()

    def _let_go(self, call: _Call) -> None:
        """Have the model's thread end (at its next token), and leave nothing of the call behind."""
        call.closed = True
        if call.keys and not call.thread_ended.wait(call.limits.wedged_s):
            self._on_wedged()
        self._forget(call)
        for name in DICTIONARIES:
            # One call at a time: whatever is still there is of one that failed before it had a thread.
            getattr(self._model, name, {}).clear()
        call.over.set()
        self._call = None

    def _forget(self, call: _Call) -> None:
        for name in DICTIONARIES:
            for key in call.keys:
                getattr(self._model, name, {}).pop(key, None)
        vllm = getattr(getattr(self._model, "llm", None), "vllm", None)
        if vllm is not None:
            # A request that is given up would be spoken on, for nobody.
            with contextlib.suppress(Exception):
                vllm.abort_request(call.keys)
            for key in call.keys:
                getattr(self._model.llm, "vllm_output_queue", {}).pop(key, None)


def _raise_from_thread(call: _Call, cause: Optional[BaseException]) -> None:
    if call.error is not None:
        raise call.error from cause
    if call.expired:
        raise CallFailed("deadline") from cause


def _sound(part: Mapping[str, Any]) -> Sound:
    """The samples of what the model yields: (1, N) on the CPU."""
    samples = part["tts_speech"].detach().float().cpu().numpy()
    return np.asarray(samples, np.float32).reshape(-1)


class TokenCheck:
    """`SpeakControl.check` for every token: as prompt, but with a sign of life now and then only."""

    SIGN_EVERY_S = 0.5

    def __init__(self, check: Callable[[], None], must_stop: Callable[[], bool]) -> None:
        self._check = check
        self._must_stop = must_stop
        self._signed_at = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if self._must_stop() or now - self._signed_at >= self.SIGN_EVERY_S:
            self._signed_at = now
            self._check()
