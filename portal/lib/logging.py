"""Logs as one JSON object a line: an event name and fields. Ids, never texts, audio or keys."""

from __future__ import annotations

import json
import logging
import traceback
import uuid
from contextvars import ContextVar
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import redis
from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, ProgrammingError

from portal.lib.errors import DomainError

request_id_var: ContextVar[str] = ContextVar("request_id", default="")

# What every LogRecord carries by itself; the rest came in through `extra`.
STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

# Exceptions whose messages speak of the machine or of the code. Every other one may quote what a customer
# sent (`int("…")`, a database's "Failing row contains (…)"), so it is logged by its type and place alone.
SPEAKING_EXCEPTIONS: tuple[type[BaseException], ...] = (
    DomainError,  # its message is its code
    ImproperlyConfigured,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    redis.RedisError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    MemoryError,
    NameError,
    OSError,
    TypeError,
)
MESSAGE_CHARACTERS = 200


def plain_value(value: Any) -> Any:
    """`value` as it may stand in a log: scalars, ids, times and containers of such; of all else the type.

    An object's own text is not for the log: a user's is the e-mail address, a voice's a customer's choice.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if type(value) is str:
        return value
    if isinstance(value, (uuid.UUID, date, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_value(item) for item in value]
    if isinstance(value, str):  # a member of an enumeration: its value
        return str.__str__(value)
    return f"<{type(value).__name__}>"


def trace_of(error: BaseException) -> str:
    """The error, its causes and their places in the code, without messages that may quote a customer.

    Of a message that is kept, the first line counts: PostgreSQL puts the row's values into the ones below.
    """
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        message = ""
        if isinstance(current, SPEAKING_EXCEPTIONS):
            message = str(current).partition("\n")[0][:MESSAGE_CHARACTERS]
        lines.append(f"{name}: {message}" if message else name)
        lines += [
            f"  {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(current.__traceback__)
        ]
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if current is not None:
            lines.append("caused by")
    return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if request_id := request_id_var.get():
            line["request_id"] = request_id
        # Requests and responses are objects that Django adds; everything else is a plain value of ours.
        extra = {
            key: plain_value(value)
            for key, value in vars(record).items()
            if key not in STANDARD_FIELDS and key not in ("request", "response")
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["trace"] = trace_of(record.exc_info[1])
        text = json.dumps({**extra, **line}, ensure_ascii=False)
        # Half a surrogate pair cannot be written: the logging package would complain by printing the record.
        return text.encode("utf-8", "backslashreplace").decode()
