"""GET /api/v1/status."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.lib.api_views import ApiView
from portal.lib.openapi import problems
from portal.status.reading import service_status
from tts.states import JobClass


class ClassStatusSerializer(serializers.Serializer[Any]):
    job_class = serializers.ChoiceField(choices=JobClass.choices)
    started_jobs = serializers.IntegerField(
        help_text="Jobs of everybody that started in the last 15 minutes."
    )
    wait_p50_ms = serializers.IntegerField(
        allow_null=True, help_text="Half of them had waited no longer, from their submission."
    )
    wait_p95_ms = serializers.IntegerField(allow_null=True)
    expected_wait_ms = serializers.IntegerField(
        allow_null=True,
        help_text="What a job that you submit now has to expect, about, if none of yours waits; null while no device "
        "is ready.",
    )


class StatusSerializer(serializers.Serializer[Any]):
    level = serializers.ChoiceField(
        choices=["normal", "busy", "degraded"],
        help_text="busy: new jobs wait. degraded: no device is ready; jobs are taken in and wait.",
    )
    degraded = serializers.BooleanField()
    ready_devices = serializers.IntegerField(help_text="Devices that take work now.")
    classes = ClassStatusSerializer(many=True)
    measured_at = serializers.DateTimeField()


class StatusView(ApiView):
    @extend_schema(
        operation_id="status_retrieve",
        tags=["account"],
        summary="State of the service",
        description="Whether it is degraded, how many devices take work, and how long jobs wait, by class. "
        "At most five seconds old.",
        responses={200: StatusSerializer, **problems()},
    )
    def get(self, request: Request) -> Response:
        status = service_status()
        body = {
            "level": status.level,
            "degraded": status.degraded,
            "ready_devices": status.ready_devices,
            "classes": [asdict(row) for row in status.classes],
            "measured_at": status.measured_at,
        }
        return Response(body)
