"""Loopback ports: a free one, the one that was used last, and the public one that is taken before all else."""

from __future__ import annotations

import contextlib
import socket


class PortTaken(Exception):
    """Another program listens on the address and port that the web server was given."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the public address; the web server inherits it.

    Taken by the supervisor itself, so that nobody can take the port between a check and the web server's
    start, and so that a caller who comes while the web server restarts waits instead of being refused.

    Raises:
        PortTaken: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections of a stack that just ended stay in TIME_WAIT for a minute; they are no reason to refuse.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise PortTaken(host, port, error.strerror or str(error)) from error
    return listener


def choose_loopback_port(preferred: int = 0) -> int:
    """Return `preferred` when nobody listens on it, or else a port that is free at this moment."""
    for port in (preferred, 0):
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("No port of 127.0.0.1 is free.")
