"""Addresses that are backends of no channel, unless a Pod of its namespace has them.

Who may write EndpointSlices in a namespace could have a mux lead into the cluster's own machines otherwise.
"""

import ipaddress
from collections.abc import Container
from functools import lru_cache
from typing import NamedTuple


class Reserved(NamedTuple):
    """Addresses that belong to others.

    Attributes:
        workers: Those of CML workers, on which all learners have their ports.
        api_servers: Those of the API server.
    """

    workers: Container[str] = frozenset()
    api_servers: Container[str] = frozenset()


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
    elif parsed.is_unspecified or parsed.is_multicast:
        what = "no address of one machine"
    return str(parsed), what


def canonical(address: str) -> str:
    """Return an address in the spelling in which `suspicion` compares it; another text stays as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
