"""How a request to an engine can end other than well. No Django here: the worker maps these to the job's
fate."""

from __future__ import annotations

OUT_OF_MEMORY = "gpu_oom"
"""The code of an `EngineError` for want of memory: the engine has let go of what it could, and is best replaced."""

FEATURES_UNREADABLE = "features_unreadable"
"""The code of an `EngineError` for stored features that are to be computed anew from the clip."""


BACKEND_GONE = "backend_gone"
"""The code of an `EngineError` of an engine whose server does not answer, or not to requests as they are set up: no
text is at fault, and the engine is best replaced, which succeeds once the server is back."""


class EngineFailure(Exception):
    """Any end of a request other than `Done`."""


class EngineDied(EngineFailure):
    """The engine process ended, or said something that is not the protocol, so that it was ended.

    `exit_code` is negative for a signal, None when it is not known.
    """

    def __init__(self, reason: str, exit_code: int | None = None) -> None:
        super().__init__(f"{reason} (exit code {exit_code})")
        self.reason = reason
        self.exit_code = exit_code


class EngineHung(EngineFailure):
    """The engine said nothing for too long (`no_progress`) or took too long in all (`deadline`).

    The process still runs: the caller kills it.
    """

    def __init__(self, kind: str, after_s: float) -> None:
        super().__init__(f"{kind} after {after_s:.1f} s")
        self.kind = kind
        self.after_s = after_s


class EngineError(EngineFailure):
    """The engine refused or failed, and is ready for the next request.

    `blame` is "user" (the text or the voice cannot be spoken) or "platform". `message` never holds customers'
    text.
    """

    def __init__(self, code: str, message: str, blame: str = "platform", gpu_ms: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.blame = blame
        self.gpu_ms = gpu_ms


class EngineCanceled(EngineFailure):
    """The request was canceled; what was spoken until then was delivered."""

    def __init__(self, gpu_ms: int, audio_ms: int) -> None:
        super().__init__(f"canceled after {gpu_ms} ms of work, {audio_ms} ms of audio")
        self.gpu_ms = gpu_ms
        self.audio_ms = audio_ms


class BudgetExhausted(EngineFailure):
    """`max_gpu_ms` was used up; what was spoken until then was delivered."""

    def __init__(self, gpu_ms: int, audio_ms: int) -> None:
        super().__init__(f"budget used up after {gpu_ms} ms of work, {audio_ms} ms of audio")
        self.gpu_ms = gpu_ms
        self.audio_ms = audio_ms
