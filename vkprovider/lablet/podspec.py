"""The containers of a lablet that a program makes: that of the lab, and one for each device. Pure."""

from typing import Any, Final

from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.models.status import DefinitionStatus, definition_status
from vkprovider.lablet.ports import INFRASTRUCTURE_NODE_TYPES
from vkprovider.platform.objects import CustomResource

CONTAINERS_MAX: Final = 100
"""The most devices of a lab with a container of their own: each is a few hundred bytes of the Pod."""
RESTRICTED: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""What the Pod Security Standard "restricted" asks of a Pod, which a cluster may enforce; a lab in CML needs none."""
RESTRICTED_CONTAINER: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What it asks of each container."""


def device_containers(definition: CustomResource | None, image: str) -> tuple[str, ...]:
    """Return the names of the containers for the devices of a lab; none of a version whose devices nobody lists.

    A container that names no device of its version would keep the lab from starting.

    Args:
        definition: As it is known; None if it is not.
        image: `NAME:VERSION` of it.
    """
    status = definition_status(definition) if definition is not None else DefinitionStatus()
    if not status.version or tag_of(image)[1] != status.version:
        return ()
    devices = (
        each.container
        for each in status.devices
        if each.node_definition not in INFRASTRUCTURE_NODE_TYPES and each.hidden is not True
    )
    return tuple(dict.fromkeys(each for each in devices if each not in {"", names.LAB_CONTAINER}))[:CONTAINERS_MAX]


def lablet_container(name: str, image: str, *, terminal: bool = True) -> dict[str, Any]:
    """Return a container, as restricted as Pod Security may demand.

    Args:
        name: `lab`, or that of a device.
        image: `NAME:VERSION` of the definition, or its name.
        terminal: Whether it has one, so that `kubectl exec -it` opens a console.
    """
    return {
        "name": name,
        "image": image,
        **({"stdin": True, "tty": True} if terminal else {}),
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
        "securityContext": RESTRICTED_CONTAINER,
    }


def trial_of(definition: str, version: str = "") -> dict[str, Any]:
    """Return the spec of a Pod that is a lablet of a definition, as restricted as Pod Security may demand.

    Args:
        definition: Of which.
        version: Of its content; the current one if empty.
    """
    image = f"{definition}:{version}" if version else definition
    return {
        "runtimeClassName": definition,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": RESTRICTED,
        "containers": [lablet_container(names.LAB_CONTAINER, image, terminal=False)],
    }
