"""Services that a portal asks, such as its hub and the provider's page: which, whether they answer, whether it may."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from vkprovider.platform.objects import Metadata
from vkprovider.portal.pure import portalnames

_API_PORTS: Final = frozenset({443, 6443, 8443})
"""Ports to which the portal's own NetworkPolicy lets it connect, wherever they are."""
_HTTPS: Final = 443
_NAME: Final = "app.kubernetes.io/name"


class ServiceAddress(NamedTuple):
    """A Service, as the URL of a setting names it.

    Attributes:
        name, namespace: Its Service in this cluster; "" for a host that is none.
        port: At which it is asked.
    """

    name: str
    namespace: str
    port: int


def service_of(url: str, namespace: str) -> ServiceAddress:
    """Return the Service that a URL names.

    >>> service_of("http://hub.jhub:8081/hub/api", "vkprovider-system")
    ServiceAddress(name='hub', namespace='jhub', port=8081)
    >>> service_of("https://hub.example.com/hub/api", "vkprovider-system").name
    ''

    Args:
        url: The URL.
        namespace: The portal's, in which a host without a dot is a Service.
    """
    found = urlsplit(url)
    port = found.port or (_HTTPS if found.scheme == "https" else 80)
    parts = (found.hostname or "").split(".")
    is_service = parts[2:3] in ([], ["svc"])
    return ServiceAddress(parts[0], (*parts, namespace)[1], port) if is_service else ServiceAddress("", "", port)


def may_be_outside(url: str) -> bool:
    """Return whether a URL names a host of two words that may be a domain: by https, and at its usual port.

    >>> may_be_outside("https://example.com/hub/api"), may_be_outside("https://hub.jhub:8443/hub/api")
    (True, False)
    """
    found = urlsplit(url)
    return found.scheme == "https" and found.port in {None, _HTTPS} and (found.hostname or "").count(".") == 1


class _PolicyPort(msgspec.Struct, frozen=True, rename="camel"):
    port: int | str | None = None
    end_port: int | None = None


class _PolicyEgress(msgspec.Struct, frozen=True):
    ports: tuple[_PolicyPort, ...] | None = None


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] | None = None


class _PolicySpec(msgspec.Struct, frozen=True, rename="camel"):
    pod_selector: _Selector = _Selector()
    egress: tuple[_PolicyEgress, ...] | None = None


class EgressPolicy(msgspec.Struct, frozen=True):
    """A NetworkPolicy, as far as it lets Pods connect to a port."""

    metadata: Metadata
    spec: _PolicySpec = _PolicySpec()

    @property
    def is_portals(self) -> bool:
        """Whether it selects the Pods of a portal."""
        labels = self.spec.pod_selector.match_labels or {}
        return labels.get(_NAME, portalnames.PORTAL_PROGRAM) == portalnames.PORTAL_PROGRAM and labels.keys() <= {_NAME}

    def opens(self, port: int) -> bool:
        """Return whether it lets them connect to a port, wherever that is; a port with a name may be any."""
        rules = self.spec.egress or ()
        return any(rule.ports is None or any(_covers(each, port) for each in rule.ports) for rule in rules)


def _covers(given: _PolicyPort, port: int) -> bool:
    if not isinstance(given.port, int):
        return True
    return given.port <= port <= (given.end_port or given.port)


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True):
    conditions: _Conditions = _Conditions()


class ServiceSlice(msgspec.Struct, frozen=True):
    """An EndpointSlice of such a Service."""

    endpoints: tuple[_Endpoint, ...] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a Pod is behind it that answers; one that does not say so counts."""
        return any(each.conditions.ready is not False for each in self.endpoints or ())


def is_closed(port: int, policies: Sequence[EgressPolicy]) -> bool:
    """Return whether no NetworkPolicy lets a portal connect to a port; without any policy everything is open."""
    ours = [each for each in policies if each.is_portals]
    return bool(ours) and port not in _API_PORTS and not any(each.opens(port) for each in ours)
