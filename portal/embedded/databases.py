"""The stack's PostgreSQL and Valkey: embedded ones with kept passwords and ports, or those that the caller
names.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from portal.embedded.layout import DataFolder
from portal.embedded.ports import port_of, reserve_loopback_port
from portal.embedded.postgres import Postgres
from portal.embedded.valkey import Valkey


@dataclass(frozen=True)
class Databases:
    """The two URLs, and the embedded server behind each where there is one."""

    database_url: str
    redis_url: str
    postgres: Postgres | None
    valkey: Valkey | None
    reservations: tuple[socket.socket, ...]  # held open, they keep the servers' ports ours


def choose_databases(folder: DataFolder, *, environment: Mapping[str, str]) -> Databases:
    """Return the databases of this start. DATABASE_URL and REDIS_URL replace the embedded servers.

    An embedded server keeps its port from one start to the next unless somebody else took it meanwhile.
    `environment` is what the embedded servers get beside their own.
    """
    state = folder.read_state()
    secrets = folder.secrets
    postgres = valkey = None
    reservations = []
    database_url = os.environ.get("DATABASE_URL", "")
    if not database_url:
        reservation = reserve_loopback_port(_kept_port(state.get("postgres_port")))
        reservations.append(reservation)
        postgres = Postgres(
            folder=folder.postgres,
            port=port_of(reservation),
            password=secrets.get_or_make("database_password"),
            superuser_password=secrets.get_or_make("database_superuser_password"),
            environment=dict(environment),
        )
        database_url = postgres.database_url
    redis_url = os.environ.get("REDIS_URL", "")
    if not redis_url:
        reservation = reserve_loopback_port(_kept_port(state.get("valkey_port")))
        reservations.append(reservation)
        valkey = Valkey(
            folder=folder.valkey,
            port=port_of(reservation),
            password=secrets.get_or_make("redis_password"),
            environment=dict(environment),
        )
        redis_url = valkey.redis_url
    return Databases(database_url, redis_url, postgres, valkey, tuple(reservations))


def _kept_port(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 65536 else 0
