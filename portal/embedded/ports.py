"""The public port, taken before all else, and loopback ports that are kept free for our servers."""

from __future__ import annotations

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


def reserve_loopback_port(preferred: int = 0) -> socket.socket:
    """Return a socket bound to `preferred`, or to a free port of 127.0.0.1 where somebody listens on that
    one.

    It never listens, so a server that sets SO_REUSEADDR, as PostgreSQL and Valkey do, can listen on its port;
    held open, it keeps everybody else from being given that port before the server is there, or between two
    of its starts.
    """
    for port in (preferred, 0):
        reservation = socket.socket()
        try:
            if port:
                # Connections of the last stack stay in TIME_WAIT for a minute; they do not take the port.
                reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reservation.bind(("127.0.0.1", port))
            # Only now for a new port: before, the kernel might choose one that another stack has reserved.
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except OSError:
            reservation.close()
            continue
        return reservation
    raise OSError("No port of 127.0.0.1 is free.")


def port_of(reservation: socket.socket) -> int:
    return int(reservation.getsockname()[1])
