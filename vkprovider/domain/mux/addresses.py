"""Addresses that are backends of no channel, unless a Pod of its namespace has them.

Who may write EndpointSlices in a namespace could have a mux lead into the cluster's own machines otherwise.
"""

import ipaddress
from collections.abc import Container
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
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "no IP address"
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback:
        return "a loopback address"
    if parsed.is_link_local:
        return "a link-local address"
    if parsed.is_unspecified or parsed.is_multicast:
        return "no address of one machine"
    if str(parsed) in reserved.api_servers:
        return "an address of the API server"
    if str(parsed) in reserved.workers:
        return "the address of a CML worker"
    return ""


def canonical(address: str) -> str:
    """Return an address in the spelling in which `suspicion` compares it; another text stays as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
