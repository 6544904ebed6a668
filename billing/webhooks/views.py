"""Where payment providers send their messages: checked, stored, answered. The clock works on them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from billing.errors import PaymentProviderUnknown, WebhookRefused
from billing.payments import registry
from billing.services.inbox import store_event
from portal.lib.errors import DomainError, NotFound
from portal.lib.problem import problem_response


@csrf_exempt
@require_POST
def receive(request: HttpRequest, provider_name: str) -> HttpResponse:
    """Store a provider's message once, and answer at once, also when it is repeated.

    There is no session here: the signature over the raw body says who sent it.
    """
    try:
        provider = registry.provider(provider_name)
        event = provider.read_event(request.body, request.headers)
    except PaymentProviderUnknown:
        return _refused(NotFound())
    except WebhookRefused as refusal:
        return _refused(refusal)
    store_event(provider_name=provider.name, event=event)
    return HttpResponse(provider.acknowledgement, content_type="text/plain")


def _refused(error: DomainError) -> HttpResponse:
    # Programs read it: a problem, not a page.
    return problem_response(error)
