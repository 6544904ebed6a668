"""/metrics, for who has the token."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from portal.metrics.exposition import pool_registry


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics as text. 404 where no token is set, 401 for who does not send it as a bearer token."""
    token: str = settings.METRICS_TOKEN
    if not token:
        raise Http404
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    # Compared in a time that says nothing about how much of it was right.
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        refusal = HttpResponse(
            "A bearer token is needed.\n", status=401, content_type="text/plain; charset=utf-8"
        )
        refusal["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refusal
    return HttpResponse(generate_latest(pool_registry()), content_type=CONTENT_TYPE_PLAIN_0_0_4)
