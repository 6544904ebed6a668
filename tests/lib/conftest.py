from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from tests.redis_clients import forget_redis_clients


@pytest.fixture
def broken_redis(settings: LazySettings) -> Iterator[list[int]]:
    """An address that accepts and hangs up, as Redis does while it goes down; one entry per connection."""
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def hang_up() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                connections.append(1)
                peer.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
        forget_redis_clients()
        yield connections
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=30)
    forget_redis_clients()
