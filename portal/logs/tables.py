"""The columns of the logs' files. Names are for programs: the same in every language."""

from __future__ import annotations

from typing import Any

from portal.logs.models import RequestLog
from portal.logs.selectors import AttemptLine, People


def request_header() -> list[str]:
    return [
        "time",
        "user",
        "api_key",
        "address",
        "method",
        "route",
        "status",
        "code",
        "duration_ms",
        "request_id",
    ]


def request_cells(row: RequestLog, people: People) -> list[Any]:
    return [
        row.created_at,
        people.email(row.user_id),
        people.key_prefix(row.api_key_id),
        row.address,
        row.method,
        row.route,
        row.status,
        row.code,
        row.duration_ms,
        row.request_id,
    ]


def attempt_header() -> list[str]:
    return [
        "time",
        "workspace",
        "user",
        "api_key",
        "address",
        "job",
        "class",
        "mode",
        "segment",
        "attempt",
        "characters",
        "wait_ms",
        "gpu_ms",
        "audio_ms",
        "device",
        "outcome",
        "error",
        "request_id",
    ]


def attempt_cells(line: AttemptLine) -> list[Any]:
    return [
        line.bound_at,
        line.workspace_name,
        line.user_email,
        line.key_prefix,
        line.address,
        line.job_id,
        line.job_class,
        line.mode,
        line.segment_number,
        line.attempt_number,
        line.characters,
        line.wait_ms,
        line.gpu_ms,
        line.audio_ms,
        line.device_name,
        line.state,
        line.error_code,
        line.request_id,
    ]
