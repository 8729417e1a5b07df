"""Checks of the relays of muxes."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from vkprovider.api.objects import Metadata
from vkprovider.api.reasons import DoctorReason
from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.settings.kubelet import KubeletSettings
from vkprovider.settings.portrange import bounds

LABELLED: Final = {"labelSelector": "app.kubernetes.io/name=vkprovider-relay"}
"""The DaemonSets of relays."""
PORTS: Final = "VKPROVIDER_RELAY_PORTS"
_KUBELET: Final = "VKPROVIDER_KUBELET_PORTS"
_NODE_PORTS: Final = "30000-32767"
"""The default of the API server's --service-node-port-range, which no object shows."""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _EnvFrom(msgspec.Struct, frozen=True, rename="camel"):
    config_map_ref: _Named = _Named()


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    env_from: tuple[_EnvFrom, ...] = ()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class RelaySet(msgspec.Struct, frozen=True):
    """The DaemonSet of a relay."""

    metadata: Metadata
    spec: _Spec = _Spec()

    @property
    def about(self) -> str:
        """The object, as findings name it."""
        return f"DaemonSet/{self.metadata.namespace}/{self.metadata.name}"

    @property
    def config_maps(self) -> list[str]:
        """The paths of the ConfigMaps that its containers take settings from."""
        sources = [source for container in self.spec.template.spec.containers for source in container.env_from]
        names = sorted({source.config_map_ref.name for source in sources} - {""})
        return [f"/api/v1/namespaces/{self.metadata.namespace}/configmaps/{name}" for name in names]


def check_ports(about: str, relay: Mapping[str, str], provider: Mapping[str, str]) -> list[Finding]:
    """Check that nothing else needs the ports of a relay.

    Args:
        about: Its DaemonSet.
        relay: Its settings.
        provider: Those of the provider's ConfigMap.
    """
    return list(_overlaps(about, relay.get(PORTS, ""), provider.get(_KUBELET) or KubeletSettings().ports))


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
