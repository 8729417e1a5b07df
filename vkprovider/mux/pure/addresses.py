"""Addresses that are backends of no channel, unless a Pod of its namespace has them.

Who may write EndpointSlices in a namespace could have a mux lead into the cluster's own machines otherwise, or by a
Service's address to what its own namespace cannot reach.
"""

import ipaddress
from collections.abc import Container
from functools import lru_cache
from typing import Final, NamedTuple

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_RESERVED: Final = ipaddress.IPv4Network("240.0.0.0/4")
"""For no purpose, but for the address of a broadcast."""
_EMBEDDING: Final = tuple(
    ipaddress.IPv6Network(each)
    for each in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")
)
"""IPv4-compatible and translated addresses, NAT64 (RFC 6052, RFC 8215), Teredo and 6to4."""
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""The third quarter of an IPv6 address whose last quarter is an IPv4 address (RFC 5214)."""


class Reserved(NamedTuple):
    """Addresses that belong to others.

    Attributes:
        workers: Those of CML workers, on which all learners have their ports.
        api_servers: Those of the API server.
        services: Those of Services, which lead wherever these do.
        others: What a setting names, such as the addresses at which clouds tell machines their credentials.
    """

    workers: Container[str] = frozenset()
    api_servers: Container[str] = frozenset()
    services: Container[str] = frozenset()
    others: tuple[Network, ...] = ()


def suspicion(address: str, reserved: Reserved) -> str:
    """Return what an address is, if a Pod must vouch for it; "" if it may be a backend.

    >>> suspicion("127.0.0.1", Reserved())
    'a loopback address'
    """
    text, what = _read(address)
    if what:
        return what
    if text in reserved.api_servers:
        return "an address of the API server"
    if text in reserved.workers:
        return "the address of a CML worker"
    if text in reserved.services:
        return "the address of a Service"
    if reserved.others and any(ipaddress.ip_address(text) in each for each in reserved.others):
        return "an address that VKPROVIDER_MUX_REFUSED_ADDRESSES names"
    return ""


@lru_cache(maxsize=16_384)
def _read(address: str) -> tuple[str, str]:
    """Return an address in one spelling, and what it is, if it is no backend: every pass over a mux asks for all."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address, "no IP address"
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    what = ""
    if parsed.is_loopback:
        what = "a loopback address"
    elif parsed.is_link_local:
        what = "a link-local address"
    elif parsed.is_unspecified or parsed.is_multicast or parsed in _RESERVED:
        what = "no address of one machine"
    elif isinstance(parsed, ipaddress.IPv6Address) and _embeds(parsed):
        what = "an IPv6 address that stands for an IPv4 address"
    return str(parsed), what


def _embeds(address: ipaddress.IPv6Address) -> bool:
    is_isatap = int(address) >> 32 & 0xFFFFFFFF in _ISATAP
    return is_isatap or any(address in each for each in _EMBEDDING)


def canonical(address: str) -> str:
    """Return an address in the spelling in which `suspicion` compares it; another text stays as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
