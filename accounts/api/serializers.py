"""API keys as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.models import ApiKey
from accounts.services.api_keys import MAX_NAME_LENGTH
from portal.lib.strict_fields import StrictCharField, StrictDateTimeField, StrictSerializer


class NewApiKeySerializer(StrictSerializer):
    name = StrictCharField(
        max_length=MAX_NAME_LENGTH, help_text="What the key is for, so that you recognise it later."
    )
    expires_at = StrictDateTimeField(
        required=False,
        allow_null=True,
        default=None,
        help_text="From when on the key is refused. A key that is made with a key never outlives that one.",
    )


class ApiKeySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The key's first characters.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")


class CreatedApiKeySerializer(ApiKeySerializer):
    key = serializers.CharField(help_text="The whole key. It is shown here once and never again.")


def api_key_json(api_key: ApiKey) -> dict[str, Any]:
    """The key as ApiKeySerializer describes it."""
    names = ("id", "name", "prefix", "created_at", "expires_at", "last_used_at")
    return {name: getattr(api_key, name) for name in names}
