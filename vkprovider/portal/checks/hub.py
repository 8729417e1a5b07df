"""The JupyterHub that logs people in to a portal: whether it is there, bound, and may be asked."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.objects import Metadata, RoleBinding
from vkprovider.portal.pure import portalnames

HUB_ROLE: Final = "vkprovider-portal-hub"
"""The ClusterRole by which a hub sees and ends labs."""
_API_PORTS: Final = frozenset({443, 6443, 8443})
"""Ports to which the portal's own NetworkPolicy lets it connect."""
_NAME: Final = "app.kubernetes.io/name"


class HubService(NamedTuple):
    """The hub as the setting names it.

    Attributes:
        name, namespace: Its Service in this cluster; "" for a host that is none.
        port: Of its API.
    """

    name: str
    namespace: str
    port: int


def hub_of(url: str, namespace: str) -> HubService:
    """Return the hub of `VKPROVIDER_PORTAL_HUB_API_URL`.

    >>> hub_of("http://hub.jhub:8081/hub/api", "vkprovider-system")
    HubService(name='hub', namespace='jhub', port=8081)
    >>> hub_of("https://hub.example.com/hub/api", "vkprovider-system").name
    ''

    Args:
        url: The setting.
        namespace: The portal's, in which a host without a dot is a Service.
    """
    found = urlsplit(url)
    port = found.port or (443 if found.scheme == "https" else 80)
    parts = (found.hostname or "").split(".")
    is_service = parts[2:3] in ([], ["svc"])
    return HubService(parts[0], (*parts, namespace)[1], port) if is_service else HubService("", "", port)


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


class HubSlice(msgspec.Struct, frozen=True):
    """An EndpointSlice of the hub's Service."""

    endpoints: tuple[_Endpoint, ...] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a Pod is behind it that answers; one that does not say so counts."""
        return any(each.conditions.ready is not False for each in self.endpoints or ())


def check_hub_answers(hub: HubService, *, exists: bool, slices: Iterable[HubSlice]) -> list[Finding]:
    """Check that a hub is there.

    Args:
        hub: The hub.
        exists: Whether its Service does.
        slices: Those of the Service.
    """
    if not hub.name:
        return []  # outside of the cluster: it is not asked from here
    about, reason = f"Service/{hub.namespace}/{hub.name}", DoctorReason.HUB_AWAY
    if not exists:
        text = "VKPROVIDER_PORTAL_HUB_API_URL names it, and there is no such Service: nobody logs in to the portal"
        return [fault(about, reason, text, reason.remedy)]
    if any(each.is_ready for each in slices):
        return []
    text = "no Pod of the hub is ready: who comes now is not logged in, and open pages go on"
    return [
        fault(about, reason, text, f"kubectl -n {hub.namespace} get pods; kubectl -n {hub.namespace} logs deploy/hub")
    ]


def check_hub_bound(namespace: str, hub: HubService, bindings: Iterable[RoleBinding]) -> list[Finding]:
    """Check that a hub may see and end labs."""
    there = any(
        each.role_ref.name == HUB_ROLE and each.metadata.namespace in {"", namespace} and each.subjects
        for each in bindings
    )
    if there:
        return []
    text = f"no hub is bound to {HUB_ROLE}, unless by a role of your own: it can neither see labs nor end them"
    remedy = (
        f"kubectl -n {namespace} create rolebinding portal-hub --clusterrole={HUB_ROLE} "
        f"--serviceaccount={hub.namespace or 'NAMESPACE'}:hub"
    )
    return [note(f"Namespace/{namespace}", DoctorReason.HUB_UNBOUND, text, remedy)]


def check_hub_open(namespace: str, hub: HubService, policies: Sequence[EgressPolicy]) -> list[Finding]:
    """Check that NetworkPolicies let a portal connect to its hub.

    Args:
        namespace: The portal's.
        hub: The hub.
        policies: Those of that namespace; without one everything is open.
    """
    ours = [each for each in policies if each.is_portals]
    if not ours or hub.port in _API_PORTS or any(each.opens(hub.port) for each in ours):
        return []
    text = f"no NetworkPolicy lets the portal connect to port {hub.port}, where its hub is"
    remedy = DoctorReason.HUB_CLOSED.remedy
    return [note(f"NetworkPolicy/{namespace}/{portalnames.PORTAL_PROGRAM}", DoctorReason.HUB_CLOSED, text, remedy)]
