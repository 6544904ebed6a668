"""API keys: list, make, revoke."""

from __future__ import annotations

import uuid
from typing import cast

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.serializers import (
    ApiKeySerializer,
    CreatedApiKeySerializer,
    NewApiKeySerializer,
    api_key_json,
)
from accounts.errors import KeyExpiryInvalid, KeyNameInvalid, TooManyApiKeys
from accounts.models import ApiKey, User
from accounts.selectors.api_keys import api_keys_of
from accounts.services.api_keys import create_api_key, revoke_api_key
from accounts.tenancy import require_workspace
from portal.lib.api_views import ApiView, ListView
from portal.lib.openapi import JSON_BODY, NOT_FOUND, problems


class ApiKeysView(ListView):
    @extend_schema(
        operation_id="keys_list",
        tags=["keys"],
        summary="List API keys",
        description="The workspace's keys that were not revoked, newest first. The keys themselves are not shown.",
        responses={200: ApiKeySerializer(many=True), **problems()},
    )
    def get(self, request: Request) -> Response:
        return self.page_of(request, api_keys_of(require_workspace(request)), api_key_json)

    @extend_schema(
        operation_id="keys_create",
        tags=["keys"],
        summary="Create an API key",
        description="`key` is in this answer and never shown again.",
        request=NewApiKeySerializer,
        responses={
            201: CreatedApiKeySerializer,
            **problems(*JSON_BODY, KeyNameInvalid, KeyExpiryInvalid, TooManyApiKeys),
        },
        examples=[
            OpenApiExample(
                "a key for a web shop", value={"name": "Web shop", "expires_at": None}, request_only=True
            )
        ],
    )
    def post(self, request: Request) -> Response:
        form = NewApiKeySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        api_key, text = create_api_key(
            workspace=require_workspace(request),
            user=cast(User, request.user),
            made_by=request.auth if isinstance(request.auth, ApiKey) else None,
            **form.validated_data,
        )
        return Response({**api_key_json(api_key), "key": text}, status=201)


class ApiKeyView(ApiView):
    @extend_schema(
        operation_id="keys_delete",
        tags=["keys"],
        summary="Revoke an API key",
        description="The key is refused from the next request on. A key may revoke itself.",
        responses={204: None, **problems(NOT_FOUND)},
    )
    def delete(self, request: Request, key_id: uuid.UUID) -> Response:
        revoke_api_key(workspace=require_workspace(request), key_id=key_id)
        return Response(status=204)
