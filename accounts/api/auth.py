"""Who calls the API: a program with a key, or one of our own pages with its session."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, CSRFCheck, SessionAuthentication
from rest_framework.request import Request

from accounts.errors import ApiKeyExpired, ApiKeyRevoked, CsrfFailed, InvalidApiKey, TooManyFailedKeys
from accounts.models import ApiKey, User
from accounts.services.api_keys import authenticate
from portal.lib.http import client_address
from portal.lib.throttling import count_failure


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer vp_live_…`. Sets `request.user` (the key's maker), `request.auth` (the ApiKey) and
    `request.workspace`.

    A header of this kind decides: where its key is not valid, no session is tried. Failures are counted by
    address, and refused unchecked for the rest of the minute once there were too many.

    Raises:
        InvalidApiKey, ApiKeyRevoked, ApiKeyExpired, WorkspaceSuspended, TooManyFailedKeys.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        try:
            api_key = authenticate(key=key.strip())
        except (InvalidApiKey, ApiKeyRevoked, ApiKeyExpired) as error:
            address = client_address(request._request)
            if not count_failure(scope="failed_keys", setting="FAILED_KEYS_PER_MINUTE", address=address):
                raise TooManyFailedKeys from error
            raise
        # On Django's request, where the throttle and the views find it, whichever request they hold.
        request._request.workspace = api_key.workspace  # type: ignore[attr-defined]
        return api_key.created_by, api_key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="api"'


class PageSessionAuthentication(SessionAuthentication):
    """The session of a signed-in person, for our own pages, with the CSRF token that their forms carry."""

    def enforce_csrf(self, request: Request) -> None:
        check = CSRFCheck(lambda _request: None)  # type: ignore[arg-type]
        check.process_request(request)
        refusal: Any = check.process_view(request, None, (), {})  # type: ignore[arg-type]
        if refusal:
            raise CsrfFailed
