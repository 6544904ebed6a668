"""What this installation lets webhooks call: its settings, in the words of `portal.lib.outgoing`."""

from __future__ import annotations

import ssl

from django.conf import settings

from portal.lib.outgoing.addresses import CallPolicy


def call_policy() -> CallPolicy:
    """Raises ValueError where WEBHOOK_ALLOWED_NETWORKS names what is no network."""
    return CallPolicy.of(
        networks=settings.WEBHOOKS["ALLOWED_NETWORKS"],
        allows_loopback_http=settings.WEBHOOKS["LOOPBACK_HTTP"],
    )


def tls_context() -> ssl.SSLContext:
    """Checks certificates and names: by the system's authorities, and the operator's own where one is named."""
    context = ssl.create_default_context()
    if settings.WEBHOOKS["CA_FILE"]:
        context.load_verify_locations(cafile=settings.WEBHOOKS["CA_FILE"])
    return context


def signing_key() -> str:
    """What secrets are derived with. A new one makes every customer's secret a new one."""
    key: str = settings.WEBHOOKS["SIGNING_KEY"] or settings.SECRET_KEY
    return key
