"""Logs as one JSON object a line: an event name and fields. Ids, never texts, audio or keys."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id_var: ContextVar[str] = ContextVar("request_id", default="")

# What every LogRecord carries by itself; the rest came in through `extra`.
STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


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
        extra = {k: v for k, v in vars(record).items() if k not in STANDARD_FIELDS and k not in ("request", "response")}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps({**extra, **line}, ensure_ascii=False, default=str)
