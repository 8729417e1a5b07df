"""The pools of a class: what is made of a definition, and how many free lablets its Deployment is to have."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vkprovider.classroom.deployments import DEPLOYMENTS, Deployment, GivingError, deployment_in, is_replica
from vkprovider.classroom.pods import LabletPod, hindrance, pods_in
from vkprovider.lablet import names
from vkprovider.lablet.models.status import definition_status
from vkprovider.lablet.podspec import RESTRICTED, device_containers, lablet_container
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.api import DEFINITIONS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import CustomResource

REPLICAS_MAX: Final = 1000
"""The most free lablets that a pool is given."""


LABEL_CLASS: Final = "class"
"""The label of a lablet by which commands select those of a class, such as `-l class=friday`."""
_BOOT_S: Final = 1800
"""How long a lablet may boot whose definition does not say so."""
_MARGIN_S: Final = 600


class PoolSize(msgspec.Struct, frozen=True):
    """A pool of a class.

    Attributes:
        name: Of its Deployment.
        definition: Of its lablets.
        replicas: How many free lablets it is to have.
        free: How many can be given now.
        why: Why it makes none; "" if nothing is known to hinder it.
    """

    name: str
    definition: str
    replicas: int
    free: int
    why: str = ""


def sizes(deployments: Sequence[Deployment], pods: Sequence[LabletPod]) -> list[PoolSize]:
    """Return the pools among the Deployments of a class, by name.

    Args:
        deployments: Of the namespace.
        pods: Of the same.
    """
    free = [pod for pod in pods if is_replica(pod) and not hindrance(pod)]
    return [
        PoolSize(
            each.metadata.name,
            each.spec.template.spec.runtime_class_name,
            each.spec.replicas,
            sum(each.spec.selector.match_labels.items() <= pod.metadata.labels.items() for pod in free),
            each.hindrance if each.spec.replicas else "",
        )
        for each in sorted(deployments, key=lambda each: each.metadata.name)
        if each.spec.template.spec.runtime_class_name
    ]


async def pools_in(kube: KubeClient, namespace: str) -> list[PoolSize]:
    """Read the pools of a class.

    Raises:
        OutsideError: They cannot be read.
    """
    deployments = await Resource(kube, DEPLOYMENTS, namespace).list()
    return sizes(deployments, await pods_in(kube, namespace).list())


def offered(definitions: Sequence[CustomResource], namespace: str) -> list[str]:
    """Return the names of the definitions that a class may make a pool of: its own first, then those of nobody."""
    owners = {each.metadata.name: each.metadata.labels.get(names.LABEL_OWNER_NAMESPACE, "") for each in definitions}
    return sorted(
        (name for name, owner in owners.items() if owner in {"", namespace}), key=lambda n: (not owners[n], n)
    )


def pool_body(name: str, definition: CustomResource, class_: str, replicas: int) -> dict[str, Any]:
    """Return the Deployment of a pool, as `manifests/examples/pool.yaml` has it.

    The image has no version, so that the pool takes up new content. A container stands for each device.
    """
    image, status = definition.metadata.name, definition_status(definition)
    boots_s = status.boot_timeout_seconds if isinstance(status.boot_timeout_seconds, int) else _BOOT_S
    selector = {names.LABEL_POOL: name}
    containers = (names.LAB_CONTAINER, *device_containers(definition, f"{image}:{status.version}"))
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {LABEL_CLASS: class_}},
    }
    template = {
        "metadata": {"labels": {**selector, LABEL_CLASS: class_}},
        "spec": {
            "runtimeClassName": image,
            "automountServiceAccountToken": False,
            "topologySpreadConstraints": [spread],
            "securityContext": RESTRICTED,
            "containers": [lablet_container(each, image) for each in containers],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {LABEL_CLASS: class_}},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": boots_s + _MARGIN_S,
            "selector": {"matchLabels": selector},
            "template": template,
        },
    }


async def make(kube: KubeClient, namespace: str, name: str, definition: str, replicas: int) -> None:
    """Make a pool of lablets of a definition.

    Raises:
        GivingError: There is one of that name, the class may use no such definition, or the number cannot be had.
        OutsideError: The API server did not do it.
    """
    _check(replicas)
    found = await Resource(kube, DEFINITIONS).get(definition)
    if found is None or not offered([found], namespace):
        raise GivingError(f"there is no LabletDefinition {definition} that this class may use")
    try:
        await Resource(kube, DEPLOYMENTS, namespace).create(pool_body(name, found, namespace, replicas))
    except Conflict:
        raise GivingError(f"there is a deployment/{name} already; choose another name, or change its size") from None


def _check(replicas: int) -> None:
    if not 0 <= replicas <= REPLICAS_MAX:
        raise GivingError(f"a pool has 0 to {REPLICAS_MAX} free lablets")


async def scale(kube: KubeClient, namespace: str, name: str, replicas: int, *, seen: int) -> None:
    """Set how many free lablets a pool is to have; the lablets that learners have are not counted.

    Args:
        kube: The API server.
        namespace: Of the pool.
        name: Of its Deployment.
        replicas: How many.
        seen: How many there were to be when somebody decided it.

    Raises:
        GivingError: There is no such pool, it was changed meanwhile, or the number cannot be had.
        OutsideError: The API server did not do it.
    """
    _check(replicas)
    deployments = Resource(kube, DEPLOYMENTS, namespace)
    found = await deployment_in(deployments, namespace, name)
    if found.spec.replicas != seen:
        raise GivingError(
            f"deployment/{name} is to have {found.spec.replicas} free lablets now, not {seen}; look again"
        )
    meta = found.metadata
    change = {"spec": {"replicas": replicas}}
    try:
        await deployments.patch(name, change, uid=meta.uid, resource_version=meta.resource_version)
    except Conflict:
        raise GivingError(f"deployment/{name} was changed at the same moment; look again") from None
