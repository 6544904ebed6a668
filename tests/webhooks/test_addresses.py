"""Which addresses a customer may have us call: nothing of the inside, however it is written."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.lib.outgoing.addresses import AddressRefused, CallPolicy, check_address, parse_target

PUBLIC_ONLY = CallPolicy()
EMBEDDED = CallPolicy(allows_loopback_http=True)

INSIDE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # noqa: S104 - nobody listens here
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",  # metadata of clouds
    "100.64.0.1",  # carrier-grade NAT
    "100.100.100.200",  # Alibaba Cloud's metadata
    "192.0.0.192",  # Oracle Cloud's
    "192.88.99.1",
    "198.18.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",  # AWS's metadata
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "2001:db8::1",
    "100::1",
]


def code_of(url: str, policy: CallPolicy = PUBLIC_ONLY) -> str:
    with pytest.raises(AddressRefused) as refused:
        parse_target(url, policy)
    return refused.value.code


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_of_the_inside_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused) as refused:
        check_address(ipaddress.ip_address(address), PUBLIC_ONLY, is_tls=True)
    assert refused.value.code == "address_refused"
    host = f"[{address}]" if ":" in address else address
    assert code_of(f"https://{host}/hook") == "address_refused"


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "017700000001",
        "0",
        "10.1",
        "2852039166",
    ],
)
def test_every_notation_that_a_resolver_understands_is_the_address_that_it_means(host: str) -> None:
    assert code_of(f"https://{host}/hook") == "address_refused"
    assert code_of(f"https://{host}./hook") == "address_refused"


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_may_be_called(address: str) -> None:
    check_address(ipaddress.ip_address(address), PUBLIC_ONLY, is_tls=True)


@given(st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=4, network="100.64.0.0/10"))
def test_no_wrapping_makes_a_private_address_public(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (number << 80))
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | number)
    for wrapped in (address, mapped, sixtofour, nat64, ipaddress.IPv6Address(number)):
        with pytest.raises(AddressRefused):
            check_address(wrapped, PUBLIC_ONLY, is_tls=True)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/hook", "url_scheme"),
        ("ftp://example.com/hook", "url_scheme"),
        ("file:///etc/passwd", "url_invalid"),
        ("gopher://example.com", "url_scheme"),
        ("example.com/hook", "url_invalid"),
        ("https://", "url_invalid"),
        ("https:///hook", "url_invalid"),
        ("https://exa mple.com/", "url_invalid"),
        ("https://example.com\\@10.0.0.1/", "url_invalid"),
        ("https://example.com/#part", "url_invalid"),
        ("https://ex\u0430mple.com/", "url_invalid"),
        ("https://example.com/\r\nHost: inside", "url_invalid"),
        ("https://example..com/", "url_invalid"),
        ("https://[fe80::1%25eth0]/", "url_invalid"),
        ("https://[::1/", "url_invalid"),
        ("https://me:secret@example.com/", "url_credentials"),
        ("https://10.0.0.1@example.com/", "url_credentials"),
        ("https://example.com:22/", "url_port"),
        ("https://example.com:80/", "url_port"),
        ("https://example.com:6379/", "url_port"),
        ("https://example.com:0/", "url_port"),
        ("https://example.com:65536/", "url_invalid"),
        ("https://example.com/" + "x" * 2000, "url_invalid"),
    ],
)
def test_what_is_no_address_of_a_web_server_is_refused(url: str, code: str) -> None:
    assert code_of(url) == code


def test_an_address_keeps_its_path_and_query() -> None:
    target = parse_target("https://Hooks.Example.com:8443/a%20b?c=d&e", PUBLIC_ONLY)
    assert (target.is_tls, target.host, target.port) == (True, "hooks.example.com", 8443)
    assert (target.path, target.host_header) == ("/a%20b?c=d&e", "hooks.example.com:8443")
    assert parse_target("https://example.com", PUBLIC_ONLY).path == "/"
    assert parse_target("https://[2606:4700::1111]/", PUBLIC_ONLY).host_header == "[2606:4700::1111]"


def test_plain_http_goes_to_this_machine_alone_and_only_where_that_is_allowed() -> None:
    assert parse_target("http://127.0.0.1:3000/hook", EMBEDDED).port == 3000
    assert parse_target("http://[::1]:3000/hook", EMBEDDED).host_header == "[::1]:3000"
    assert code_of("http://127.0.0.1:3000/hook") == "url_scheme"
    assert code_of("http://8.8.8.8:3000/hook", EMBEDDED) == "address_refused"
    assert code_of("http://10.0.0.1:3000/hook", EMBEDDED) == "address_refused"
    assert code_of("http://127.0.0.1:5432/hook", EMBEDDED) == "url_port"
    # A network that is allowed is so over TLS.
    policy = CallPolicy.of(networks=["10.8.0.0/16", "fd00::/8"], allows_loopback_http=True)
    assert code_of("http://10.8.0.1:3000/hook", policy) == "address_refused"


def test_an_operator_opens_networks_and_nothing_beside_them() -> None:
    policy = CallPolicy.of(networks=["10.8.0.0/16", "fd00::/8"], allows_loopback_http=False)
    for allowed in ("10.8.255.1", "fd00::1", "::ffff:10.8.0.1"):
        check_address(ipaddress.ip_address(allowed), policy, is_tls=True)
    for refused in ("10.9.0.1", "127.0.0.1", "::1", "169.254.169.254", "fc00::1"):
        with pytest.raises(AddressRefused):
            check_address(ipaddress.ip_address(refused), policy, is_tls=True)
    with pytest.raises(ValueError, match="nonsense"):
        CallPolicy.of(networks=["nonsense"], allows_loopback_http=False)
