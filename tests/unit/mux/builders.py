"""Muxes and channels for tests, and what a pass decided, in few words."""

from vkprovider.mux.pure.decide import Plan, decide
from vkprovider.mux.pure.facts import Channel, Mux, MuxRef, Owner, ServicePort
from vkprovider.mux.pure.state import MuxState
from vkprovider.platform.reasons import Reason

PREFIX = "svc-mux.nowake.ai"
REF = MuxRef("svc-mux", "mux")
NOW = 1_769_860_800.0
REST_S = 300.0


def mux(
    port_range: str | None = "20000-20099", *, ports: tuple[ServicePort, ...] = (), class_: str = "", **other: str
) -> Mux:
    asked = {"port_range": port_range, "allowed_namespaces": "*", **other}
    named = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in asked.items() if text is not None}
    return Mux(REF, named, class_, ports)


def channel(name: str, external: str = "", *ports: ServicePort, told: str = "") -> Channel:
    """A Service `NAMESPACE/NAME` with port `http` 80, or others."""
    namespace, service = name.split("/")
    annotations = {f"{PREFIX}/{key}": text for key, text in (("external-ports", external), ("ports", told)) if text}
    return Channel(Owner(namespace, service), ports or (ServicePort("http", 80),), annotations)


def lablet(name: str, learner: str, *slots: str) -> Channel:
    namespace, pod = name.split("/")
    ports = tuple(ServicePort(slot, 10011 + n) for n, slot in enumerate(slots or ("PC_serial",)))
    asked = ",".join(f"{port.name}:auto" for port in ports)
    return Channel(Owner(namespace, pod, learner), ports, {f"{PREFIX}/external-ports": asked})


def given(plan: Plan) -> dict[str, list[int]]:
    """The outside ports of each channel, as `NAMESPACE/NAME` or `NAMESPACE/NAME/LEARNER`."""
    return {
        f"{owner}/{owner.learner}" if owner.learner is not None else f"{owner}": [each.row.mux_port for each in mapped]
        for owner, mapped in plan.mapped.items()
    }


def refused(plan: Plan) -> dict[str, Reason]:
    return {str(each.channel.owner): each.fault.reason for each in plan.refused}


def after(the_mux: Mux, channels: list[Channel], state: MuxState | None = None, now: float = NOW) -> Plan:
    return decide(the_mux, channels, state or MuxState(), now, rest_s=REST_S)
