"""The account: what a workspace has, and what it may do."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.selectors.limits import queued_jobs_limit, requests_per_minute_limit, voices_limit
from accounts.tenancy import require_workspace
from billing.api.serializers import AccountSerializer, money
from billing.errors import NoPrice
from billing.selectors.balances import balance_of
from portal.lib.api_views import ApiView
from portal.lib.openapi import problems


class AccountView(ApiView):
    @extend_schema(
        operation_id="account_retrieve",
        tags=["account"],
        summary="Balance and limits",
        description="The workspace that the key belongs to, its balance, and its limits.",
        responses={200: AccountSerializer, **problems(NoPrice)},
    )
    def get(self, request: Request) -> Response:
        workspace = require_workspace(request)
        balance = balance_of(workspace.pk)
        rules = settings.VOICEPOOL
        body = {
            "workspace": {"id": workspace.pk, "name": workspace.name, "kind": workspace.kind},
            "balance": {
                "available": money(balance.available_micros, balance.currency),
                "held": money(balance.held_micros, balance.currency),
                "affordable_gpu_ms": balance.affordable_gpu_ms,
            },
            "limits": {
                "requests_per_minute": requests_per_minute_limit(workspace),
                "submits_per_minute": rules["SUBMITS_PER_MINUTE"],
                "queued_jobs": queued_jobs_limit(workspace),
                "voices": voices_limit(workspace),
                "upload_bytes": rules["UPLOAD_BYTES"],
            },
        }
        return Response(body)
