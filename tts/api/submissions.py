"""What every request that makes a job says of who sent it, and how it is answered."""

from __future__ import annotations

from typing import TypedDict, cast

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ApiKey, User, Workspace
from accounts.tenancy import require_workspace
from portal.lib.http import client_address
from portal.lib.logging import request_id_var
from tts.api.representations import job_json
from tts.services.submit import Submission


class Sender(TypedDict):
    """Arguments of tts.services.submit.submit_job and the like."""

    workspace: Workspace
    user: User
    api_key: ApiKey | None
    idempotency_key: str | None
    client_address: str | None
    request_id: str


def sender_of(request: Request) -> Sender:
    """Who sent the request, under which Idempotency-Key."""
    return Sender(
        workspace=require_workspace(request),
        user=cast(User, request.user),
        api_key=request.auth if isinstance(request.auth, ApiKey) else None,
        idempotency_key=request.headers.get("Idempotency-Key"),
        client_address=client_address(request._request),
        request_id=request_id_var.get(),
    )


def submission_response(submission: Submission) -> Response:
    """202 with the job, and whether its key had made it before."""
    headers = {"Location": f"/api/v1/jobs/{submission.job.pk}"}
    if not submission.created:
        headers["Idempotency-Replayed"] = "true"
    return Response(job_json(submission.job), status=202, headers=headers)
