"""The size of a pool: how many free lablets its Deployment is to have."""

from typing import Final

from vkprovider.classroom.deployments import DEPLOYMENTS, GivingError, deployment_in
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource

REPLICAS_MAX: Final = 1000
"""The most free lablets that a pool is given."""


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
    if not 0 <= replicas <= REPLICAS_MAX:
        raise GivingError(f"a pool has 0 to {REPLICAS_MAX} free lablets")
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
