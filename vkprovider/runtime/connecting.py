"""How a process reaches the API server, and learns which installation it belongs to."""

import asyncio
from typing import Final

import structlog

from vkprovider.api import names
from vkprovider.api.errors import OutsideError
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient, user_agent
from vkprovider.kube.events import EventRecorder
from vkprovider.runtime.context import Context
from vkprovider.settings.cluster import KubeSettings, ReplicaSettings

_log: Final = structlog.get_logger(__name__)


async def connect(settings: KubeSettings, replica: ReplicaSettings) -> Context:
    """Reach the API server and learn which installation this is, however long it takes.

    Args:
        settings: How to reach the API server.
        replica: Who this process is.
    """
    kube = await KubeClient.connect(settings, user_agent=user_agent(replica.instance_id))
    return Context(
        kube=kube,
        events=EventRecorder(kube, component=names.MANAGER, instance=replica.instance_id),
        installation=await _installation(Api(kube, replica.namespace)),
        replica=replica.instance_id,
        namespace=replica.namespace,
    )


async def _installation(api: Api) -> str:
    """Return the UID of the namespace kube-system; wait for an API server that cannot be asked."""
    while True:
        try:
            if (system := await api.namespaces.get("kube-system")) is not None:
                return system.metadata.uid
            why = "it has no namespace kube-system"
        except OutsideError as error:
            why = str(error)
        _log.warning("the API server cannot be asked yet", server=api.namespaces.kube.server, error=why)
        await asyncio.sleep(1.0)
