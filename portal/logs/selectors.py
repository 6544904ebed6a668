"""Lines of the log for a workspace: the requests that it made, and the attempts at speaking its jobs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, QuerySet

from accounts.models import ApiKey, User, Workspace
from accounts.tenancy import owned_by
from portal.logs.models import RequestLog
from tts.models import Attempt

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class People:
    """E-mail addresses of users and first characters of keys, for the lines of one page."""

    emails: dict[uuid.UUID, str]
    key_prefixes: dict[uuid.UUID, str]

    def email(self, user_id: uuid.UUID | None) -> str:
        return self.emails.get(user_id, "") if user_id else ""

    def key_prefix(self, key_id: uuid.UUID | None) -> str:
        return self.key_prefixes.get(key_id, "") if key_id else ""


@dataclass(frozen=True)
class AttemptLine:
    """One attempt. `wait_ms` is from the submission (or the part's making) to the start of this attempt."""

    id: uuid.UUID
    bound_at: datetime
    job_id: uuid.UUID
    workspace_id: uuid.UUID
    workspace_name: str
    user_email: str
    key_prefix: str
    address: str
    request_id: str
    characters: int
    mode: str
    job_class: str
    segment_number: int
    segment_count: int
    attempt_number: int
    wait_ms: int | None
    gpu_ms: int
    audio_ms: int
    device_id: int
    device_name: str
    state: str
    state_label: str
    error_code: str


def requests_of(
    workspace: Workspace, *, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[RequestLog]:
    """The workspace's requests, newest first."""
    return between(owned_by(RequestLog.objects.all(), workspace), "created_at", since, until).order_by(
        "-created_at", "-pk"
    )


def attempts_of(
    workspace: Workspace, *, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[Attempt]:
    """The attempts at the workspace's jobs, newest first."""
    return between(with_all(owned_by(Attempt.objects.all(), workspace)), "bound_at", since, until).order_by(
        "-bound_at", "-pk"
    )


def with_all(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """The attempts with what `attempt_line` shows of them, and none of what was said."""
    return attempts.select_related(
        "segment", "job", "job__created_by", "job__api_key", "workspace", "device"
    ).only(
        "id",
        "bound_at",
        "started_at",
        "attempt_number",
        "gpu_ms",
        "audio_ms",
        "state",
        "error_code",
        "segment__index",
        "segment__characters",
        "segment__created_at",
        "job__mode",
        "job__job_class",
        "job__segment_count",
        "job__client_address",
        "job__request_id",
        "job__created_by__email",
        "job__api_key__prefix",
        "workspace__name",
        "device__name",
    )


def attempt_line(attempt: Attempt) -> AttemptLine:
    job, segment = attempt.job, attempt.segment
    wait_ms = None
    if attempt.started_at is not None:
        wait_ms = max(0, round((attempt.started_at - segment.created_at).total_seconds() * 1000))
    return AttemptLine(
        id=attempt.pk,
        bound_at=attempt.bound_at,
        job_id=job.pk,
        workspace_id=attempt.workspace_id,
        workspace_name=attempt.workspace.name,
        user_email=job.created_by.email if job.created_by else "",
        key_prefix=job.api_key.prefix if job.api_key else "",
        address=job.client_address or "",
        request_id=job.request_id,
        characters=segment.characters,
        mode=job.mode,
        job_class=job.job_class,
        segment_number=segment.index + 1,
        segment_count=job.segment_count,
        attempt_number=attempt.attempt_number,
        wait_ms=wait_ms,
        gpu_ms=attempt.gpu_ms,
        audio_ms=attempt.audio_ms,
        device_id=attempt.device_id,
        device_name=attempt.device.name,
        state=attempt.state,
        state_label=attempt.get_state_display(),
        error_code=attempt.error_code,
    )


def people_of(lines: Iterable[RequestLog]) -> People:
    """Who stands behind the lines. Two queries."""
    rows = list(lines)
    users = User.objects.filter(pk__in={row.user_id for row in rows if row.user_id})
    keys = ApiKey.objects.filter(pk__in={row.api_key_id for row in rows if row.api_key_id})
    return People(
        emails=dict(users.values_list("pk", "email")), key_prefixes=dict(keys.values_list("pk", "prefix"))
    )


def between(rows: QuerySet[Row], field: str, since: datetime | None, until: datetime | None) -> QuerySet[Row]:
    """The rows whose `field` lies in that time; the later moment is not in it."""
    if since is not None:
        rows = rows.filter(**{f"{field}__gte": since})
    if until is not None:
        rows = rows.filter(**{f"{field}__lt": until})
    return rows
