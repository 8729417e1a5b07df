"""Checks of the muxes to which definitions lend ports of lablets."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import DoctorReason, MuxReason
from vkprovider.api.wording import listed
from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.domain.lablet.exposing import expose_of

_NAMED_MAX: Final = 5
"""Definitions in a message."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    load_balancer_source_ranges: tuple[str, ...] = ()
    allocate_load_balancer_node_ports: bool = False  # the API server completes it with true


class MuxService(msgspec.Struct, frozen=True):
    """The Service of a mux."""

    spec: _Spec = _Spec()


def lent_to(resources: Iterable[CustomResource]) -> dict[tuple[str, str], list[str]]:
    """Return the definitions that lend ports, by namespace and name of the mux; "" is the muxes' default namespace."""
    found: dict[tuple[str, str], list[str]] = {}
    for resource in resources:
        if (expose := expose_of(resource.spec)) is not None:
            name, _, namespace = expose.mux.partition(".")
            found.setdefault((namespace, name), []).append(resource.metadata.name)
    return found


def check_mux(namespace: str, name: str, mux: MuxService | None, definitions: Sequence[str]) -> list[Finding]:
    """Check a mux to which definitions lend ports.

    Args:
        namespace: Its namespace.
        name: Its name.
        mux: Its Service; None if there is none.
        definitions: The names of the definitions.
    """
    if mux is None:
        text = (
            f"spec.expose names mux {namespace}/{name}, and there is no such Service: its lablets have no outside port"
        )
        remedy = DoctorReason.MUX_MISSING.remedy
        return [fault(f"LabletDefinition/{each}", DoctorReason.MUX_MISSING, text, remedy) for each in definitions]
    about, findings = f"Service/{namespace}/{name}", []
    if not mux.spec.load_balancer_source_ranges:
        whose = listed(list(definitions), _NAMED_MAX)
        text = f"it leads everybody who reaches it to ports of lablets of {whose}, and serial consoles ask for no login"
        findings.append(note(about, MuxReason.MUX_OPEN_TO_ALL, text, MuxReason.MUX_OPEN_TO_ALL.remedy))
    if mux.spec.allocate_load_balancer_node_ports:
        text = "each of its ports takes a node port, of which a cluster has 2,768 by default"
        findings.append(note(about, DoctorReason.MUX_NODE_PORTS, text, DoctorReason.MUX_NODE_PORTS.remedy))
    return findings
