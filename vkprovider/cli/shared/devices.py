"""The devices of a lablet: their containers in the Pod, and the ports that the Pod reports for them."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.errors import Forbidden
from vkprovider.api.exposure import Access
from vkprovider.api.models.status import DefinitionStatus
from vkprovider.cli.shared.pods import LabletPod
from vkprovider.domain.topology.mappings import PortInfo
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource, kind


class Port(msgspec.Struct, frozen=True, rename="camel"):
    """One port, as `-o json` shows it.

    Attributes:
        name: By which `kubectl lablet forward` knows it.
        device: The device's label.
        access: The way in: `serial`, `vnc`, `pat` …
        address: Of the worker.
        port: On the worker.
        container: The Pod's container that stands for the device; "" if there is none.
        original_port: The placeholder in the topology.
        internal_port: The device's own port behind it; null for its consoles.
        transport: `tcp` or `udp`; empty if an older version reported it.
        opened: Whether CML listens there.
        via: The address and port of the mux to which the port is lent, or why it has none; "" if it is lent to none.
    """

    name: str
    device: str
    access: str
    address: str
    port: int
    container: str
    original_port: int
    internal_port: int | None
    transport: str
    opened: bool
    via: str

    @property
    def can_be_forwarded(self) -> bool:
        """Whether `kubectl port-forward` leads there: it has no UDP."""
        return self.opened and self.transport != "udp"


class _Definition(msgspec.Struct, frozen=True):
    status: DefinitionStatus = DefinitionStatus()


_answers: Final = msgspec.json.Decoder(dict[str, Access])
_infos: Final = msgspec.json.Decoder(dict[str, PortInfo])
_DEFINITIONS: Final = kind(f"/apis/{names.API_VERSION}", "labletdefinitions", _Definition)


async def containers_of(kube: KubeClient, pod: LabletPod) -> dict[str, str]:
    """Read from the definition which container stands for which device; empty without the right to read it."""
    try:
        definition = await Resource(kube, _DEFINITIONS).get(pod.spec.runtime_class_name)
    except Forbidden:
        return {}
    return {device.label: device.container for device in definition.status.devices} if definition else {}


def ports_of(pod: LabletPod, containers: Mapping[str, str]) -> list[Port]:
    """Parse the ports that a Pod reports.

    Args:
        pod: A lablet's.
        containers: Device label → container name, as far as it is known.

    Raises:
        ClickException: The annotation is invalid.
    """
    text = pod.metadata.annotations.get(names.ANNOTATION_PORT_MAPPINGS, "")
    if not text:
        return []
    try:
        infos = _infos.decode(text)
    except msgspec.MsgspecError as error:
        message = f"annotation {names.ANNOTATION_PORT_MAPPINGS} of pod/{pod.metadata.name} cannot be read: {error}"
        raise click.ClickException(message) from None
    via = _via_of(pod)
    there = {container.name for container in pod.spec.containers}
    labels = {info.device_label for info in infos.values()}
    guessed = Counter(names.container_name(label, set()) for label in labels)

    def container_of(label: str) -> str:
        """Return the container that the definition names, else the only one that the label can mean."""
        name = containers.get(label) or names.container_name(label, set())
        known = label in containers or guessed[name] == 1
        return name if name in there and known else ""

    found = [
        Port(
            name=key,
            device=info.device_label,
            access=info.protocol,
            address=pod.status.pod_ip,
            port=info.allocated_port,
            container=container_of(info.device_label),
            original_port=info.original_port,
            internal_port=info.internal_port,
            transport=info.transport,
            opened=info.opened,
            via=access.text if (access := via.get(key)) is not None else "",
        )
        for key, info in infos.items()
    ]
    return sorted(found, key=lambda row: (row.device, row.port))


def _via_of(pod: LabletPod) -> dict[str, Access]:
    """Parse the answers of a mux that a Pod reports, by the name of the port; none if a later version wrote them."""
    try:
        return _answers.decode(pod.metadata.annotations.get(names.ANNOTATION_ACCESS, "{}"))
    except msgspec.MsgspecError:
        return {}
