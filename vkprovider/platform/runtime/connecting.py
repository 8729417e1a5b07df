"""How a process reaches the API server, and learns which installation it belongs to."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from vkprovider.platform.errors import Forbidden, OutsideError
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import PROVIDER, Context, Program
from vkprovider.platform.settings import KubeSettings, ReplicaSettings

_log: Final = structlog.get_logger(__name__)
_NO_RIGHTS: Final = (
    "Without its rights this replica does nothing. `kubectl get clusterrolebinding {program} -o wide` names the "
    "namespace of the cluster's one installation: if it is another one, remove this one or move that one "
    "(docs/install.md, Another namespace); if there is none, install again"
)


NO_RIGHTS: Final = "rights"
NO_API_SERVER: Final = "api-server"


async def connect(
    settings: KubeSettings,
    replica: ReplicaSettings,
    waits: Callable[[str], None] = lambda _: None,
    *,
    program: Program = PROVIDER,
) -> Context:
    """Reach the API server and learn which installation this is, however long it takes.

    Args:
        settings: How to reach the API server.
        replica: Who this process is.
        waits: Called with what it waits for, each time that the API server could not be asked.
        program: Whose replica it is.
    """
    kube = await KubeClient.connect(settings, user_agent=user_agent(replica.instance_id, program.name))
    try:
        installation = await _installation(Api(kube, replica.namespace), waits, program)
    except asyncio.CancelledError:
        await kube.close()
        raise
    return Context(
        kube=kube,
        events=EventRecorder(kube, component=program.name, instance=replica.instance_id, wall=kube.clock.wall),
        installation=installation,
        replica=replica.instance_id,
        namespace=replica.namespace,
        program=program,
        logins=replica.logins_namespace,
        wall=kube.clock.wall,
        is_sure=kube.clock.is_sure,
        skew_s=kube.clock.skew_s,
    )


async def _installation(api: Api, waits: Callable[[str], None], program: Program) -> str:
    """Return the UID of the namespace kube-system; wait for an API server that cannot be asked, and for rights."""
    while True:
        try:
            if (system := await api.namespaces.get("kube-system")) is not None:
                return system.metadata.uid
            why, missing = "it has no namespace kube-system", NO_API_SERVER
        except Forbidden as error:
            why, missing = f"{error}. {_NO_RIGHTS.format(program=program.name)}", NO_RIGHTS
        except OutsideError as error:
            why, missing = str(error), NO_API_SERVER
        waits(missing)
        _log.warning("the API server cannot be asked yet", server=api.namespaces.kube.server, error=why)
        await asyncio.sleep(1.0)
