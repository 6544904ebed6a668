"""GET /api/v1/usage: what a workspace used and paid, by what it asks for. The same sums as on the page."""

from __future__ import annotations

from typing import Any, Final

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.tenancy import require_workspace
from billing.api.serializers import MoneySerializer, money
from billing.selectors.balances import currency_of
from billing.selectors.usage import Dimension, Key, Sums, total_of, usage_by
from portal.lib.api_views import ApiView
from portal.lib.csv_export import csv_response
from portal.lib.errors import InvalidInput
from portal.lib.openapi import INVALID_INPUT, problems
from portal.lib.strict_fields import StrictChoiceField, StrictDateField, StrictSerializer, read_query
from portal.money import usage_files
from portal.money.days import MOST_DAYS, days_between
from portal.money.names import names_of

FORMATS: Final = ["json", "csv"]


class UsageQuerySerializer(StrictSerializer):
    by = StrictChoiceField(
        choices=[dimension.value for dimension in Dimension],
        required=False,
        default=Dimension.DAY.value,
        help_text="What the sums are grouped by.",
    )
    first_day = StrictDateField(
        required=False,
        help_text="The first day, in the workspace’s time zone. Without it: the first of this month.",
    )
    last_day = StrictDateField(
        required=False,
        help_text=f"The last day, included; at most {MOST_DAYS} days in all. Without it: today.",
    )
    format = StrictChoiceField(
        choices=FORMATS, required=False, default="json", help_text="csv: the same sums as a file."
    )


class UsageSumsSerializer(serializers.Serializer[Any]):
    segments = serializers.IntegerField(help_text="Pieces of texts that were spoken.")
    characters = serializers.IntegerField()
    audio_ms = serializers.IntegerField()
    gpu_ms = serializers.IntegerField(help_text="GPU milliseconds that are charged for.")
    unbilled_gpu_ms = serializers.IntegerField(
        help_text="What tries took that failed through our fault. Nobody pays for them."
    )
    charged = MoneySerializer()
    refunded = MoneySerializer(
        help_text="What was given back in that time, of what was charged in it or before."
    )
    net = MoneySerializer(help_text="charged less refunded.")


class UsageGroupSerializer(UsageSumsSerializer):
    key = serializers.CharField(
        allow_null=True,
        help_text="The day, the id of the voice, member or API key, or the class. "
        "Null for what no member or no key asked for.",
    )
    name = serializers.CharField(help_text="How people call it, in the language of Accept-Language.")


class UsageSerializer(serializers.Serializer[Any]):
    first_day = serializers.DateField()
    last_day = serializers.DateField()
    time_zone = serializers.CharField(help_text="In which the days begin.")
    by = serializers.ChoiceField(choices=[dimension.value for dimension in Dimension])
    total = UsageSumsSerializer()
    groups = UsageGroupSerializer(
        many=True,
        help_text="Days as they follow one another, all others by what they cost. Adds up to `total`.",
    )


class UsageView(ApiView):
    @extend_schema(
        operation_id="usage_retrieve",
        tags=["account"],
        summary="Read the usage",
        description="What was used and charged in some days, grouped by one thing.",
        parameters=[UsageQuerySerializer],
        responses={
            (200, "application/json"): UsageSerializer,
            (200, "text/csv"): OpenApiTypes.STR,
            **problems(INVALID_INPUT),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        workspace = require_workspace(request)
        query = read_query(UsageQuerySerializer, request.query_params)
        days = days_between(workspace.pk, query.get("first_day"), query.get("last_day"))
        if days is None:
            raise InvalidInput(field="first_day", reason=f"first_day ≤ last_day, {MOST_DAYS} days at most")
        dimension = Dimension(query["by"])
        parts = usage_by(workspace.pk, dimension, days.first, days.last)
        currency = currency_of(workspace.pk)
        if query["format"] == "csv":
            return csv_response(
                f"usage-{days.first}-{days.last}-{dimension.value.replace('_', '-')}",
                header=usage_files.header(dimension),
                rows=usage_files.rows(workspace, dimension, parts, currency),
            )
        names = names_of(workspace, dimension, parts)
        body = {
            "first_day": days.first,
            "last_day": days.last,
            "time_zone": days.time_zone,
            "by": dimension.value,
            "total": _sums_json(total_of(parts.values()), currency),
            "groups": [
                {"key": _key(key), "name": names[key], **_sums_json(sums, currency)}
                for key, sums in usage_files.ordered(dimension, parts)
            ],
        }
        return Response(body)


def _key(key: Key) -> str | None:
    return None if key is None else str(key)


def _sums_json(sums: Sums, currency: str) -> dict[str, Any]:
    """As UsageSumsSerializer describes it."""
    return {
        "segments": sums.records,
        "characters": sums.characters,
        "audio_ms": sums.audio_ms,
        "gpu_ms": sums.gpu_ms,
        "unbilled_gpu_ms": sums.unbilled_gpu_ms,
        "charged": money(sums.charged_micros, currency),
        "refunded": money(sums.refunded_micros, currency),
        "net": money(sums.net_micros, currency),
    }
