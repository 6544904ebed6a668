"""Which hosts, ports and addresses the product may call when a customer names them. Pure: no network.

Whoever names an address of the inside (the cloud's metadata, a database, a router) must get nothing from us, however
the address is written. So what may be called is listed, not what may not: public unicast addresses, and what the
operator allows beside them.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL_LENGTH: Final = 2000
MAX_HOST_LENGTH: Final = 253
HTTPS_PORT: Final = 443
FIRST_FREE_PORT: Final = 1024
# Ports above 1023 that no web server of a customer's has, but that something else listens on: what browsers refuse
# (https://fetch.spec.whatwg.org/#port-blocking), and databases, caches, brokers and the control of containers.
REFUSED_PORTS: Final = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
    | {1433, 1521, 2375, 2376, 2379, 2380, 3306, 5432, 5672, 6379, 9042, 9092, 9200, 9300, 10250, 11211, 27017}
)  # fmt: skip
# Global unicast as it is given out today. In it, what leads on to an IPv4 address that we have not looked at is
# refused: 6to4, Teredo. NAT64 (64:ff9b::/96), IPv4-mapped and IPv4-compatible addresses lie outside.
_GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
_TUNNELS: Final = (ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("2001::/32"))
# Relays of 6to4 and addresses of protocols: no customer's, but not all marked as private by Python.
_REFUSED_IPV4: Final = (ipaddress.IPv4Network("192.88.99.0/24"), ipaddress.IPv4Network("192.0.0.0/24"))


class AddressRefused(Exception):
    """`code` says why, for people and programs: a stable word."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


@dataclass(frozen=True)
class CallPolicy:
    """What an installation allows beside public addresses over HTTPS.

    `allowed_networks`: addresses that may be called as if they were public. `allows_loopback_http`: plain HTTP to this
    machine itself, and to nothing else.
    """

    allowed_networks: tuple[IpNetwork, ...] = ()
    allows_loopback_http: bool = False

    @classmethod
    def of(cls, *, networks: Sequence[str], allows_loopback_http: bool) -> CallPolicy:
        """From settings. Raises ValueError where a network is none."""
        return cls(tuple(ipaddress.ip_network(text) for text in networks), allows_loopback_http)


@dataclass(frozen=True)
class Target:
    """Where a request goes. `host` is ASCII, without the brackets of an IPv6 address; `path` begins with a slash."""

    is_tls: bool
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (HTTPS_PORT if self.is_tls else 80) else f"{host}:{self.port}"


def parse_target(url: str, policy: CallPolicy) -> Target:
    """The parts of an address that a customer named.

    An IP address in it, in whatever notation a resolver understands, is judged here; a name is, when it is resolved.

    Raises AddressRefused: "url_invalid", "url_scheme", "url_credentials", "url_port", "address_refused".
    """
    if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise AddressRefused("url_invalid")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("url_invalid") from error
    host = (parts.hostname or "").rstrip(".")
    if not host or len(host) > MAX_HOST_LENGTH or "%" in host or parts.fragment or url.endswith("#"):
        raise AddressRefused("url_invalid")
    if "@" in parts.netloc:
        raise AddressRefused("url_credentials")
    is_tls = parts.scheme == "https"
    if not is_tls and not (parts.scheme == "http" and policy.allows_loopback_http):
        raise AddressRefused("url_scheme")
    # Plain HTTP has a port of its own in the embedded stack only: 80 is not among those that may be called.
    wanted = port if port is not None else (HTTPS_PORT if is_tls else 80)
    if wanted != HTTPS_PORT and (wanted < FIRST_FREE_PORT or wanted in REFUSED_PORTS):
        raise AddressRefused("url_port")
    literal = literal_address(host)
    if literal is not None:
        check_address(literal, policy, is_tls=is_tls)
    elif ":" in host or not _is_name(host):
        raise AddressRefused("url_invalid")
    query = f"?{parts.query}" if parts.query else ""
    return Target(is_tls, host, wanted, (parts.path or "/") + query)


def literal_address(host: str) -> IpAddress | None:
    """The address that `host` is a notation of, None for a name: also 127.1, 2130706433, 0x7f.1 and 0177.0.0.1, which
    resolvers read as addresses."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return all(
        0 < len(label) <= 63 and label.replace("-", "").replace("_", "").isalnum() and label[0] != "-"
        for label in labels
    )


def check_address(address: IpAddress, policy: CallPolicy, *, is_tls: bool) -> None:
    """Refuse an address that must not be called. Raises AddressRefused("address_refused").

    An IPv4 address that is wrapped in an IPv6 one is judged as what it is.
    """
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    plain: IpAddress = mapped or address
    if not is_tls:
        allowed = policy.allows_loopback_http and plain.is_loopback
    else:
        allowed = (
            _is_public(plain)
            or any(
                plain.version == network.version and plain in network for network in policy.allowed_networks
            )
            or (policy.allows_loopback_http and plain.is_loopback)
        )
    if not allowed:
        raise AddressRefused("address_refused")


def _is_public(address: IpAddress) -> bool:
    # Python's is_global leaves out private, loopback, link-local, CGNAT, documentation, benchmark and reserved ranges.
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address in _GLOBAL_IPV6 and not any(address in tunnel for tunnel in _TUNNELS)
    return not any(address in network for network in _REFUSED_IPV4)
