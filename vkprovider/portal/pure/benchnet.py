"""The NetworkPolicy of a workbench: who reaches it, and where it connects to; never to a worker.

All learners' consoles stand at the workers' addresses, without a password. So an allowed network leaves them out; one
that lies within such an address allows nothing.
"""

import ipaddress
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from vkprovider.platform.objects import CustomResource, Node
from vkprovider.portal.pure.portalnames import LABEL_WORKBENCH, PORTAL_PROGRAM
from vkprovider.portal.pure.workbench import BenchEgress, BenchPeer, WorkbenchConfig

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Json = dict[str, Any]
_OF_NODES: Final = ("169.254.0.0/16", "fe80::/10")
"""Link-local addresses, at which clouds answer their nodes."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


class ApiEndpoint(NamedTuple):
    """An address of the API server, as its EndpointSlice has it."""

    address: str
    port: int


def worker_addresses(nodes: Iterable[Node], workers: Iterable[CustomResource]) -> list[str]:
    """Return the IP addresses of workers: where learners reach them, and where we do, which may be another one.

    A worker that has only a name has none here.

    Args:
        nodes: The Nodes of workers.
        workers: The CMLWorkers.
    """
    found = {each.address for node in nodes for each in node.status.addresses}
    found |= {_host_of(str(each.spec.get(field) or "")) for each in workers for field in ("url", "address")}
    return sorted(address for address in found if _is_address(address))


def bench_policy_spec(
    config: WorkbenchConfig, *, home: str, api: Collection[ApiEndpoint], workers: Iterable[str]
) -> Json:
    """Return the spec of the NetworkPolicy.

    Args:
        config: The kind of workbench.
        home: The namespace of the portal.
        api: The API server's own addresses: a policy does not see that of its Service.
        workers: The addresses of workers.
    """
    portal = BenchPeer(namespace=home, labels={"app.kubernetes.io/name": PORTAL_PROGRAM})
    denied = [ipaddress.ip_network(each) for each in sorted({*workers, *_OF_NODES})]
    names = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    servers = [
        {"to": [{"ipBlock": {"cidr": str(ipaddress.ip_network(each.address))}}], "ports": _tcp([each.port])}
        for each in sorted(set(api))
    ]
    allowed = (_egress(each, denied) for each in config.egress)
    return {
        "podSelector": {"matchLabels": {LABEL_WORKBENCH: "true"}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [_peer(each) for each in (portal, *config.ingress)], "ports": _tcp([config.port])}],
        "egress": [
            {"to": [_peer(config.dns)], "ports": names},
            *servers,
            *(rule for rule in allowed if rule is not None),
        ],
    }


def _egress(allowed: BenchEgress, denied: Iterable[_Network]) -> Json | None:
    network = ipaddress.ip_network(allowed.cidr)
    same = [each for each in denied if each.version == network.version]
    if any(network.subnet_of(each) for each in same):  # type: ignore[arg-type]  # (of one version)
        return None
    within = [str(each) for each in same if each.subnet_of(network)]  # type: ignore[arg-type]  # (the same)
    block = {"cidr": allowed.cidr, **({"except": within} if within else {})}
    return {"to": [{"ipBlock": block}], **({"ports": _tcp(allowed.ports)} if allowed.ports else {})}


def _tcp(ports: Iterable[int]) -> list[Json]:
    return [{"protocol": "TCP", "port": port} for port in ports]


def _peer(peer: BenchPeer) -> Json:
    return {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: peer.namespace}},
        "podSelector": {"matchLabels": peer.labels},
    }


def _host_of(text: str) -> str:
    """Return the host of a URL, or an address as it is."""
    try:
        return urlsplit(text).hostname or text
    except ValueError:
        return ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
