"""The secrets that webhooks are signed with, and the headers of the Standard Webhooks specification. Pure.

A secret is derived and stored nowhere: HMAC-SHA256 over the endpoint's id and a random id of the secret, with a key of
the installation. Whoever has a copy of the database alone can sign nothing; a new secret is a new random id.
"""

from __future__ import annotations

import base64
import hmac
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from standardwebhooks.webhooks import Webhook

PREFIX: Final = "whsec_"
# So that nothing else that is signed with the same key can pass for a secret.
_PURPOSE: Final = b"voicepool webhook secret 1\x00"


def secret_of(*, key: str, endpoint_id: uuid.UUID, secret_id: uuid.UUID) -> str:
    """The secret as a customer gets it: 32 bytes in base64 behind `whsec_`."""
    digest = hmac.digest(key.encode(), _PURPOSE + endpoint_id.bytes + secret_id.bytes, "sha256")
    return PREFIX + base64.b64encode(digest).decode("ascii")


def message_id(delivery_id: uuid.UUID) -> str:
    """The `webhook-id`: the same for every try of a delivery."""
    return f"msg_{delivery_id.hex}"


def signed_headers(
    *, delivery_id: uuid.UUID, at: datetime, body: str, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers for `body`, with one signature for each of the secrets."""
    # The package reads a moment's own digits as UTC, whatever its zone.
    moment = at.astimezone(UTC)
    name = message_id(delivery_id)
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(
            Webhook(secret).sign(msg_id=name, timestamp=moment, data=body) for secret in secrets
        ),
    }
