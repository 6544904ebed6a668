"""Webhooks as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.models import DeliveryState, SwitchedOff, WebhookAttempt, WebhookDelivery, WebhookEndpoint
from accounts.services.webhook_endpoints import MAX_DESCRIPTION_LENGTH
from accounts.webhooks.catalogue import EVENT_NAMES, PING
from accounts.webhooks.secrets import message_id
from portal.lib.outgoing.addresses import MAX_URL_LENGTH
from portal.lib.strict_fields import StrictBooleanField, StrictCharField, StrictChoiceField, StrictSerializer


class NewWebhookSerializer(StrictSerializer):
    url = StrictCharField(
        max_length=MAX_URL_LENGTH,
        help_text="Of your own server: https, on port 443 or one from 1024 on, at a public address.",
    )
    event_types = serializers.ListField(
        child=StrictChoiceField(choices=EVENT_NAMES),
        allow_empty=False,
        max_length=len(EVENT_NAMES),
        help_text="What it is to be told of.",
    )
    description = StrictCharField(
        max_length=MAX_DESCRIPTION_LENGTH, required=False, allow_blank=True, default=""
    )


class WebhookChangesSerializer(StrictSerializer):
    url = StrictCharField(max_length=MAX_URL_LENGTH, required=False)
    event_types = serializers.ListField(
        child=StrictChoiceField(choices=EVENT_NAMES),
        allow_empty=False,
        max_length=len(EVENT_NAMES),
        required=False,
    )
    description = StrictCharField(max_length=MAX_DESCRIPTION_LENGTH, required=False, allow_blank=True)
    is_on = StrictBooleanField(
        required=False, help_text="False closes what waits as failed; true forgets earlier failures."
    )


class WebhookSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    url = serializers.CharField()
    description = serializers.CharField()
    event_types = serializers.ListField(child=serializers.ChoiceField(choices=EVENT_NAMES))
    is_on = serializers.BooleanField()
    switched_off = serializers.ChoiceField(
        choices=SwitchedOff.choices,
        allow_null=True,
        help_text="Why it is off: by you, after five days of failures, or because it answered 410.",
    )
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then the secret before signs beside the present one."
    )
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="The first failure since the last success."
    )
    last_success_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")
    created_at = serializers.DateTimeField()


class WebhookWithSecretSerializer(WebhookSerializer):
    secret = serializers.CharField(help_text="What signs. It is shown here once and never again.")


class DeliverySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    webhook_id = serializers.CharField(help_text="The header webhook-id, the same for every try.")
    endpoint_id = serializers.UUIDField()
    event_type = serializers.ChoiceField(choices=(*EVENT_NAMES, PING))
    state = serializers.ChoiceField(choices=DeliveryState.choices)
    attempts = serializers.IntegerField(help_text="How often it was tried.")
    next_attempt_at = serializers.DateTimeField(allow_null=True, help_text="While it waits.")
    status_code = serializers.IntegerField(allow_null=True, help_text="Of the last answer.")
    error_code = serializers.CharField(help_text="Why the last try failed; empty where it did not.")
    created_at = serializers.DateTimeField(help_text="When it happened.")
    delivered_at = serializers.DateTimeField(allow_null=True)


class TrySerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    duration_ms = serializers.IntegerField()
    status_code = serializers.IntegerField(allow_null=True)
    error_code = serializers.CharField()
    response_start = serializers.CharField(help_text="The first 2 kB of the answer.")


class DeliveryWithTriesSerializer(DeliverySerializer):
    data = serializers.JSONField(help_text="The member `data` of what is sent.")  # type: ignore[assignment]
    tries = TrySerializer(many=True, help_text="The newest first.")


def webhook_json(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """The endpoint as WebhookSerializer describes it."""
    names = (
        "id",
        "url",
        "description",
        "event_types",
        "is_on",
        "previous_secret_until",
        "failing_since",
        "last_success_at",
        "created_at",
    )
    return {name: getattr(endpoint, name) for name in names} | {"switched_off": endpoint.switched_off or None}


def delivery_json(delivery: WebhookDelivery) -> dict[str, Any]:
    """The delivery as DeliverySerializer describes it."""
    names = (
        "id",
        "endpoint_id",
        "event_type",
        "state",
        "attempts",
        "status_code",
        "error_code",
        "created_at",
        "delivered_at",
    )
    waits = delivery.state == DeliveryState.PENDING
    return {name: getattr(delivery, name) for name in names} | {
        "webhook_id": message_id(delivery.pk),
        "next_attempt_at": delivery.next_attempt_at if waits else None,
    }


def try_json(one: WebhookAttempt) -> dict[str, Any]:
    """A try as TrySerializer describes it."""
    names = ("number", "started_at", "duration_ms", "status_code", "error_code", "response_start")
    return {name: getattr(one, name) for name in names}
