from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.webhooks.double_of_a_customer import CustomersServer, make_certificate


@pytest.fixture
def customers_server(settings: Any) -> Iterator[CustomersServer]:
    """A customer's program on this machine, over plain HTTP as in the embedded stack."""
    settings.WEBHOOKS = {**settings.WEBHOOKS, "LOOPBACK_HTTP": True}
    server = CustomersServer()
    yield server
    server.stop()


@pytest.fixture
def secure_server(settings: Any, tmp_path: Path) -> Iterator[CustomersServer]:
    """A customer's server with a certificate for localhost, in a network that the operator allows."""
    trusted, context = make_certificate(tmp_path, "localhost", "127.0.0.1")
    settings.WEBHOOKS = {
        **settings.WEBHOOKS,
        "ALLOWED_NETWORKS": ["127.0.0.0/8", "::1/128"],
        "CA_FILE": str(trusted),
    }
    server = CustomersServer(tls=context)
    yield server
    server.stop()
