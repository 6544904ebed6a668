"""GET /api/v1/ledger: every movement of a workspace's money."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.tenancy import require_workspace
from billing.api.serializers import MoneySerializer, money
from billing.models import LedgerAccount, LedgerTransaction, TransactionKind
from billing.selectors.balances import currency_of
from billing.selectors.ledger import moved, transactions_of
from portal.lib.api_views import ListView
from portal.lib.openapi import INVALID_INPUT, problems
from portal.lib.strict_fields import StrictChoiceField, StrictDateTimeField, StrictSerializer, read_query


class LedgerFilterSerializer(StrictSerializer):
    kind = StrictChoiceField(
        choices=TransactionKind.choices, required=False, help_text="Only such movements."
    )
    since = StrictDateTimeField(required=False, help_text="Only from this moment on.")
    until = StrictDateTimeField(required=False, help_text="Only before this moment.")


class LedgerEntrySerializer(serializers.Serializer[Any]):
    """One movement. What `available` and `held` add up to over all of them is the balance."""

    id = serializers.UUIDField()
    created_at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=TransactionKind.choices)
    available = MoneySerializer(help_text="What it added to what is available; negative where it took.")
    held = MoneySerializer(help_text="What it added to what is set aside for jobs.")
    job_id = serializers.UUIDField(allow_null=True, help_text="The job that it was for, deleted or not.")
    reason = serializers.CharField(help_text="Why, where a person decided it; else empty.")


class LedgerView(ListView):
    @extend_schema(
        operation_id="ledger_list",
        tags=["account"],
        summary="Read the ledger",
        description="Every movement of the workspace’s money, newest first. None is ever changed or deleted.",
        parameters=[LedgerFilterSerializer],
        responses={200: LedgerEntrySerializer(many=True), **problems(INVALID_INPUT)},
    )
    def get(self, request: Request) -> Response:
        workspace = require_workspace(request)
        query = read_query(LedgerFilterSerializer, request.query_params)
        kind = query.get("kind")
        rows = transactions_of(
            workspace.pk,
            kinds=[TransactionKind(kind)] if kind else None,
            since=query.get("since"),
            until=query.get("until"),
        )
        currency = currency_of(workspace.pk)
        return self.page_of(request, rows, lambda row: _as_json(row, currency))


def _as_json(row: LedgerTransaction, currency: str) -> dict[str, Any]:
    """As LedgerEntrySerializer describes it."""
    return {
        "id": row.pk,
        "created_at": row.created_at,
        "kind": row.kind,
        "available": money(moved(row, LedgerAccount.AVAILABLE), currency),
        "held": money(moved(row, LedgerAccount.HELD), currency),
        "job_id": row.job_id,
        "reason": row.reason,
    }
