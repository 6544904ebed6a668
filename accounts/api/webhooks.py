"""Webhook endpoints and their deliveries. For owners and administrators; of a key, its maker counts."""

from __future__ import annotations

import uuid
from typing import cast

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.webhook_serializers import (
    DeliverySerializer,
    DeliveryWithTriesSerializer,
    NewWebhookSerializer,
    WebhookChangesSerializer,
    WebhookSerializer,
    WebhookWithSecretSerializer,
    delivery_json,
    try_json,
    webhook_json,
)
from accounts.errors import (
    AdminRoleNeeded,
    TooManyWebhookEndpoints,
    WebhookDeliveryOpen,
    WebhookDescriptionInvalid,
    WebhookEndpointOff,
    WebhookEventsInvalid,
    WebhookResentTooOften,
    WebhookTestTooSoon,
    WebhookUrlRefused,
)
from accounts.models import User
from accounts.selectors.webhooks import deliveries_of, endpoints_of, tries_of
from accounts.services import webhook_deliveries, webhook_endpoints
from accounts.tenancy import one_of, require_admin_role
from portal.lib.api_views import ApiView, ListView
from portal.lib.openapi import JSON_BODY, NOT_FOUND, problems

INVALID = (WebhookUrlRefused, WebhookEventsInvalid, WebhookDescriptionInvalid)


class WebhooksView(ListView):
    @extend_schema(
        operation_id="webhooks_list",
        tags=["webhooks"],
        summary="List webhook endpoints",
        description="Newest first. Their secrets are not shown.",
        responses={200: WebhookSerializer(many=True), **problems(AdminRoleNeeded)},
    )
    def get(self, request: Request) -> Response:
        return self.page_of(request, endpoints_of(require_admin_role(request)), webhook_json)

    @extend_schema(
        operation_id="webhooks_create",
        tags=["webhooks"],
        summary="Create a webhook endpoint",
        description="`secret` is in this answer and never shown again. What is sent is a POST of JSON with `type`, "
        "`timestamp` and `data` (ids, states and numbers; amounts in millionths of the currency), signed as the "
        "Standard Webhooks specification says. Answer with 2xx. Anything else is tried again seven times over nearly "
        "32 hours, under the same `webhook-id`; an event may come more than once and not in order.",
        request=NewWebhookSerializer,
        responses={
            201: WebhookWithSecretSerializer,
            **problems(*JSON_BODY, *INVALID, AdminRoleNeeded, TooManyWebhookEndpoints),
        },
        examples=[
            OpenApiExample(
                "told when jobs end",
                value={
                    "url": "https://example.com/voicepool",
                    "event_types": ["job.succeeded", "job.failed", "job.canceled"],
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        workspace = require_admin_role(request)
        form = NewWebhookSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        endpoint, secret = webhook_endpoints.create_endpoint(
            workspace=workspace, user=cast(User, request.user), **form.validated_data
        )
        return Response({**webhook_json(endpoint), "secret": secret}, status=201)


class WebhookView(ApiView):
    @extend_schema(
        operation_id="webhooks_read",
        tags=["webhooks"],
        summary="Read a webhook endpoint",
        responses={200: WebhookSerializer, **problems(NOT_FOUND, AdminRoleNeeded)},
    )
    def get(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        return Response(webhook_json(one_of(endpoints_of(require_admin_role(request)), endpoint_id)))

    @extend_schema(
        operation_id="webhooks_change",
        tags=["webhooks"],
        summary="Change a webhook endpoint",
        description="What is left out stays as it is.",
        request=WebhookChangesSerializer,
        responses={
            200: WebhookSerializer,
            **problems(NOT_FOUND, *JSON_BODY, *INVALID, AdminRoleNeeded),
        },
    )
    def patch(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        workspace = require_admin_role(request)
        one_of(endpoints_of(workspace), endpoint_id)
        form = WebhookChangesSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        endpoint = webhook_endpoints.change_endpoint(
            workspace=workspace, endpoint_id=endpoint_id, **form.validated_data
        )
        return Response(webhook_json(endpoint))

    @extend_schema(
        operation_id="webhooks_delete",
        tags=["webhooks"],
        summary="Delete a webhook endpoint",
        description="Nothing more is sent to it. Its deliveries go with it.",
        responses={204: None, **problems(NOT_FOUND, AdminRoleNeeded)},
    )
    def delete(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        webhook_endpoints.delete_endpoint(workspace=require_admin_role(request), endpoint_id=endpoint_id)
        return Response(status=204)


class WebhookRotateView(ApiView):
    @extend_schema(
        operation_id="webhooks_rotate",
        tags=["webhooks"],
        summary="Make a new secret",
        description="`secret` is in this answer and never shown again. For 24 hours each request carries two "
        "signatures, by the secret before and by the new one.",
        request=None,
        responses={200: WebhookWithSecretSerializer, **problems(NOT_FOUND, AdminRoleNeeded)},
    )
    def post(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        endpoint, secret = webhook_endpoints.rotate_secret(
            workspace=require_admin_role(request), endpoint_id=endpoint_id
        )
        return Response({**webhook_json(endpoint), "secret": secret})


class WebhookTestView(ApiView):
    @extend_schema(
        operation_id="webhooks_test",
        tags=["webhooks"],
        summary="Send a test event",
        description="An event of type `ping`, also while the endpoint is off. It is tried once, within seconds.",
        request=None,
        responses={202: DeliverySerializer, **problems(NOT_FOUND, AdminRoleNeeded, WebhookTestTooSoon)},
    )
    def post(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        delivery = webhook_deliveries.send_test(
            workspace=require_admin_role(request), endpoint_id=endpoint_id
        )
        return Response(delivery_json(delivery), status=202)


class DeliveriesView(ListView):
    @extend_schema(
        operation_id="webhooks_deliveries",
        tags=["webhooks"],
        summary="List the deliveries to an endpoint",
        description="Those of the last 30 days, newest first.",
        responses={200: DeliverySerializer(many=True), **problems(NOT_FOUND, AdminRoleNeeded)},
    )
    def get(self, request: Request, endpoint_id: uuid.UUID) -> Response:
        workspace = require_admin_role(request)
        endpoint = one_of(endpoints_of(workspace), endpoint_id)
        return self.page_of(request, deliveries_of(workspace).filter(endpoint=endpoint), delivery_json)


class DeliveryView(ApiView):
    @extend_schema(
        operation_id="webhooks_delivery_read",
        tags=["webhooks"],
        summary="Read a delivery with its tries",
        responses={200: DeliveryWithTriesSerializer, **problems(NOT_FOUND, AdminRoleNeeded)},
    )
    def get(self, request: Request, delivery_id: uuid.UUID) -> Response:
        delivery = one_of(deliveries_of(require_admin_role(request)), delivery_id)
        tries = [try_json(one) for one in tries_of(delivery)]
        return Response({**delivery_json(delivery), "data": delivery.data, "tries": tries})


class RedeliverView(ApiView):
    @extend_schema(
        operation_id="webhooks_redeliver",
        tags=["webhooks"],
        summary="Send a delivery once more",
        description="Under the same `webhook-id`. For one that was delivered or has failed.",
        request=None,
        responses={
            202: DeliverySerializer,
            **problems(
                NOT_FOUND, AdminRoleNeeded, WebhookEndpointOff, WebhookDeliveryOpen, WebhookResentTooOften
            ),
        },
    )
    def post(self, request: Request, delivery_id: uuid.UUID) -> Response:
        delivery = webhook_deliveries.redeliver(
            workspace=require_admin_role(request), delivery_id=delivery_id
        )
        return Response(delivery_json(delivery), status=202)
