"""Checks of the Services of muxes, and of the channels that name them."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet.exposure import expose_of
from vkprovider.mux.pure.facts import MuxRef
from vkprovider.mux.pure.reasons import MuxReason
from vkprovider.mux.pure.refs import get_mux_from_lb_class, is_marked
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource, Metadata
from vkprovider.platform.wording import count, listed

_NAMED_MAX: Final = 5
"""Objects in a message."""
_SERVICE_LB: Final = ("svccontroller.k3s.cattle.io", "svccontroller.rke2.cattle.io")
SERVICE_LB_LABELS: Final = tuple(f"{group}/svcname" for group in _SERVICE_LB)
"""The labels of a DaemonSet of ServiceLB, the load balancer of k3s and RKE2, with the name of its Service."""


class _Port(msgspec.Struct, frozen=True, rename="camel"):
    node_port: int = 0


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    load_balancer_class: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    allocate_load_balancer_node_ports: bool = False  # the API server completes it with true
    ports: tuple[_Port, ...] = ()


class BalancedService(msgspec.Struct, frozen=True):
    """A Service with a load balancer: a mux, a channel, or neither."""

    metadata: Metadata
    spec: _Spec = _Spec()

    @property
    def ref(self) -> MuxRef:
        """Its name, as that of a mux."""
        return MuxRef(self.metadata.namespace, self.metadata.name)

    @property
    def about(self) -> str:
        """The object, as findings name it."""
        return f"Service/{self.ref}"

    @property
    def node_ports(self) -> int:
        """The number of node ports that it takes."""
        return sum(1 for port in self.spec.ports if port.node_port)


class BalancerSet(msgspec.Struct, frozen=True):
    """A DaemonSet of ServiceLB."""

    metadata: Metadata

    @property
    def service(self) -> MuxRef:
        """The Service that it serves."""
        labels = self.metadata.labels
        named = (
            MuxRef(labels[f"{group}/svcnamespace"], labels[f"{group}/svcname"])
            for group in _SERVICE_LB
            if f"{group}/svcname" in labels and f"{group}/svcnamespace" in labels
        )
        return next(named, MuxRef("", ""))


def lent_to(resources: Iterable[CustomResource], default_namespace: str) -> dict[MuxRef, list[str]]:
    """Return the definitions that lend ports, by the mux."""
    found: dict[MuxRef, list[str]] = {}
    for resource in resources:
        if (expose := expose_of(resource.spec)) is not None:
            name, _, namespace = expose.mux.partition(".")
            found.setdefault(MuxRef(namespace or default_namespace, name), []).append(resource.metadata.name)
    return found


def muxes_of(services: Iterable[BalancedService], prefix: str) -> dict[MuxRef, BalancedService]:
    """Return the Services that are marked as muxes."""
    return {each.ref: each for each in services if is_marked(each.metadata.annotations, prefix)}


def channels_of(
    services: Iterable[BalancedService], prefix: str, default_namespace: str
) -> dict[MuxRef, list[BalancedService]]:
    """Return the channels by the mux that they name; one whose class names none is left out, and has an Event."""
    found: dict[MuxRef, list[BalancedService]] = {}
    for each in services:
        try:
            ref = get_mux_from_lb_class(each.spec.load_balancer_class, prefix, default_namespace)
        except InputError:
            continue
        found.setdefault(ref, []).append(each)
    return found


def missing(ref: MuxRef, resources: Iterable[CustomResource]) -> list[Finding]:
    """Return the faults of definitions that lend ports to a mux that does not exist.

    A definition that names no namespace has none: a setting of the muxes that is not seen here may say which is meant.
    """
    text = f"spec.expose names mux {ref}, and there is no such Service: its lablets have no outside port"
    remedy = DoctorReason.MUX_MISSING.remedy
    named = lent_to(resources, "").get(ref, [])
    return [fault(f"LabletDefinition/{each}", DoctorReason.MUX_MISSING, text, remedy) for each in named]


def check_mux(
    mux: BalancedService,
    definitions: Sequence[str],
    channels: Sequence[BalancedService] = (),
    served_by: BalancerSet | None = None,
) -> list[Finding]:
    """Check a mux.

    Args:
        mux: Its Service.
        definitions: The names of the definitions that lend it ports of lablets.
        channels: Its channels.
        served_by: The DaemonSet of ServiceLB for it.
    """
    findings = []
    if definitions and not mux.spec.load_balancer_source_ranges:
        whose = listed(list(definitions), _NAMED_MAX)
        text = f"it leads everybody who reaches it to ports of lablets of {whose}, and serial consoles ask for no login"
        findings.append(note(mux.about, MuxReason.MUX_OPEN_TO_ALL, text, MuxReason.MUX_OPEN_TO_ALL.remedy))
    taking = [each for each in (mux, *channels) if each.node_ports or each.spec.allocate_load_balancer_node_ports]
    if taking:
        taken = sum(each.node_ports for each in taking)
        whose = listed([str(each.ref) for each in taking], _NAMED_MAX)
        text = f"{whose} take {count(taken, 'node port')}, one for each port, of which a cluster has 2,768 by default"
        findings.append(note(mux.about, DoctorReason.MUX_NODE_PORTS, text, DoctorReason.MUX_NODE_PORTS.remedy))
    if served_by is not None:
        name = f"{served_by.metadata.namespace}/{served_by.metadata.name}"
        ports = count(len(mux.spec.ports), "port")
        text = f"ServiceLB serves it: DaemonSet {name} has a container for each port, now {ports}, on every node"
        findings.append(note(mux.about, DoctorReason.MUX_SERVICE_LB, text, DoctorReason.MUX_SERVICE_LB.remedy))
    return findings
