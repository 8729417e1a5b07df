"""Checks of the relays of muxes."""

from collections.abc import Iterator, Mapping
from typing import Final

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
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
