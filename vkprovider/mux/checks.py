"""What the doctor looks at of muxes: the program that serves them, their Services, what lends ports, and relays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from pydantic import ValidationError

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.programs import ProgramWorkload, bindings_of, check_program, deployment, replicas_of, settings_of
from vkprovider.doctor.reading import UserReading
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import names
from vkprovider.lablet.exposure import expose_of
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import MuxRef, annotation_key, get_mux_from_lb_class, is_marked
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.settings import MuxSettings
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count, listed
from vkprovider.platform.objects import CustomResource, Metadata, RoleBinding
from vkprovider.platform.settings import bounds

LABELLED: Final = {"labelSelector": "app.kubernetes.io/name=vkprovider-relay"}
"""The DaemonSets of relays."""
PORTS: Final = "VKPROVIDER_RELAY_PORTS"
_KUBELET: Final = "VKPROVIDER_KUBELET_PORTS"
_NODE_PORTS: Final = "30000-32767"
"""The default of the API server's --service-node-port-range, which no object shows."""


def check_ports(about: str, relay: Mapping[str, str], kubelet: str) -> list[Finding]:
    """Check that nothing else needs the ports of a relay.

    Args:
        about: Its DaemonSet.
        relay: Its settings.
        kubelet: The ports of the provider's kubelet API.
    """
    return list(_overlaps(about, relay.get(PORTS, ""), kubelet))


def _overlaps(about: str, ports: str, kubelet: str) -> Iterator[Finding]:
    remedy = DoctorReason.RELAY_PORTS_TAKEN.remedy
    if _meet(ports, _NODE_PORTS):
        text = f"{PORTS}={ports} overlaps with node ports, by default {_NODE_PORTS}"
        yield fault(about, DoctorReason.RELAY_PORTS_TAKEN, text, remedy)
    elif _meet(ports, kubelet):
        text = f"{PORTS}={ports} overlaps with {_KUBELET}={kubelet}: HAProxy does not start on the host of a replica"
        yield note(about, DoctorReason.RELAY_PORTS_TAKEN, f"{text} that has the host's network", remedy)


def _meet(one: str, other: str) -> bool:
    """Return whether two ranges of ports have one in common; what is no range has none, its reader refuses it."""
    try:
        (first, last), (other_first, other_last) = bounds(one), bounds(other)
    except ValueError:
        return False
    return first <= other_last and other_first <= last


_NAMED_MAX: Final = 5
"""Objects in a message."""
_SERVICE_LB: Final = ("svccontroller.k3s.cattle.io", "svccontroller.rke2.cattle.io")
SERVICE_LB_LABELS: Final = tuple(f"{group}/svcname" for group in _SERVICE_LB)
"""The labels of a DaemonSet of ServiceLB, the load balancer of k3s and RKE2, with the name of its Service."""


class _Port(msgspec.Struct, frozen=True, rename="camel"):
    node_port: int = 0


class _ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    load_balancer_class: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    allocate_load_balancer_node_ports: bool = False  # the API server completes it with true
    ports: tuple[_Port, ...] = ()


class BalancedService(msgspec.Struct, frozen=True):
    """A Service with a load balancer: a mux, a channel, or neither."""

    metadata: Metadata
    spec: _ServiceSpec = _ServiceSpec()

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


_BALANCED: Final = {"fieldSelector": "spec.type=LoadBalancer"}
_STORE_ROLE: Final = "vkprovider-mux-store"
"""The ClusterRole that lets the program keep the ports of the muxes of a namespace, where it is bound."""


async def check_relays(reading: UserReading, kubelet: str) -> list[Finding]:
    """Check the relays of a cluster.

    Args:
        reading: Reads it.
        kubelet: The ports of the provider's kubelet API.
    """
    found: list[Finding] = []
    for each in await reading.list("/apis/apps/v1/daemonsets", ProgramWorkload, "DaemonSet", LABELLED):
        about = f"DaemonSet/{each.metadata.namespace}/{each.metadata.name}"
        found += await check_program(reading, each, "DaemonSet", "nothing connects through it")
        found += check_ports(about, await settings_of(reading, each, about), kubelet)
    return found


def check_served(mux: BalancedService, prefix: str, definitions: Sequence[str]) -> list[Finding]:
    """Report a mux of a cluster in which no program serves muxes.

    Args:
        mux: Its Service.
        prefix: Of the annotations of muxes. Where their finalizer is another program's, that may serve it.
        definitions: The names of the definitions that lend it ports of lablets.
    """
    if not definitions and annotation_key(prefix, muxnames.MUX_FINALIZER) in mux.metadata.finalizers:
        return []
    reason = DoctorReason.MUX_NOT_SERVED
    whose = f": {listed(list(definitions), _NAMED_MAX)} have no outside port" if definitions else ""
    report = fault if definitions else note
    return [report(mux.about, reason, f"no program serves muxes here, and it leads nowhere{whose}", reason.remedy)]


def check_store(mux: BalancedService, namespace: str, bindings: Iterable[RoleBinding]) -> list[Finding]:
    """Check that the program may keep the ports of a mux in its namespace.

    Args:
        mux: Its Service.
        namespace: The program's.
        bindings: Those of all namespaces and of the cluster.
    """
    bound = any(
        each.role_ref.name == _STORE_ROLE
        and each.metadata.namespace in {"", mux.metadata.namespace}
        and any((s.name, s.namespace) == (muxnames.MUX_SERVICE_ACCOUNT, namespace) for s in each.subjects or ())
        for each in bindings
    )
    if bound:
        return []
    where = mux.metadata.namespace
    text = f"the program may not keep its ports in the namespace {where}, unless a role of your own lets it"
    remedy = (
        f"kubectl -n {where} create rolebinding {_STORE_ROLE} --clusterrole={_STORE_ROLE} "
        f"--serviceaccount={namespace}:{muxnames.MUX_SERVICE_ACCOUNT}"
    )
    return [note(mux.about, DoctorReason.MUX_STORE_UNBOUND, text, remedy)]


async def check_muxes(
    reading: UserReading, namespace: str, definitions: Sequence[CustomResource], now_s: float
) -> list[Finding]:
    """Check the program that serves muxes, the muxes to which definitions lend ports, and all others where it is.

    Args:
        reading: Reads the cluster.
        namespace: The provider's, where that program is.
        definitions: Those of the cluster.
        now_s: Unix time by the API server's clock.
    """
    about = f"Deployment/{namespace}/{names.MUX_PROXY}"
    program = await deployment(reading, namespace, names.MUX_PROXY)
    served = program is not None or await replicas_of(reading, namespace, names.MUX_PROXY, now_s) > 0
    settings = _settings(await settings_of(reading, program, about) if program is not None else {})
    default = settings.default_namespace or namespace
    lends = lent_to(definitions, default)
    balanced = await reading.list("/api/v1/services", BalancedService, "Service", _BALANCED)
    there = {each.ref: each for each in balanced}
    marked = muxes_of(balanced, settings.prefix)
    found: list[Finding] = []
    if program is not None:
        found += await check_program(reading, program, "Deployment", "muxes stay as they are")
    elif not served:
        for ref in [each for each in {**dict.fromkeys(lends), **marked} if each in there]:
            found += check_served(there[ref], settings.prefix, lends.get(ref, []))
        marked = {}
    channels = channels_of(balanced, settings.prefix, default)
    served_by = await _served_by_service_lb(reading)
    bindings = await bindings_of(reading) if marked else []
    for ref in {**dict.fromkeys(lends), **marked}:
        if ref in there:
            found += check_mux(there[ref], lends.get(ref, []), channels.get(ref, []), served_by.get(ref))
        elif not reading.failed("Service"):
            found += missing(ref, definitions)
        if ref in marked and not reading.failed("RoleBinding"):
            found += check_store(marked[ref], namespace, bindings)
    return found


def _settings(variables: Mapping[str, str]) -> MuxSettings:
    """Return the settings of the program; the defaults where they cannot be used, which keeps it from starting."""
    try:
        return MuxSettings.model_validate({name: value for name, value in variables.items() if value})
    except ValidationError:
        return MuxSettings()


async def _served_by_service_lb(reading: UserReading) -> dict[MuxRef, BalancerSet]:
    found: dict[MuxRef, BalancerSet] = {}
    for label in SERVICE_LB_LABELS:
        sets = await reading.list("/apis/apps/v1/daemonsets", BalancerSet, "DaemonSet", {"labelSelector": label})
        found |= {each.service: each for each in sets}
    return found
