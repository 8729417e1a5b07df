"""The devices of a lablet: their containers in the Pod, and the ports that the Pod reports for them."""

from collections.abc import Mapping
from typing import Final

import click
import msgspec

from vkprovider.classroom.pods import LabletPod
from vkprovider.lablet import names
from vkprovider.lablet.devices import Port, reported_ports
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource, kind


class _Definition(msgspec.Struct, frozen=True):
    status: DefinitionStatus = DefinitionStatus()


_DEFINITIONS: Final = kind(f"/apis/{wellknown.API_VERSION}", "labletdefinitions", _Definition)


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
    try:
        return reported_ports(pod, containers)
    except msgspec.MsgspecError as error:
        message = f"annotation {names.ANNOTATION_PORT_MAPPINGS} of pod/{pod.metadata.name} cannot be read: {error}"
        raise click.ClickException(message) from None
