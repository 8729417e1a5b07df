"""What every controller needs: the API server, clocks, which replica; and how a process reaches them."""

import asyncio
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

import structlog

from vkprovider.platform import wellknown
from vkprovider.platform.errors import Forbidden, OutsideError
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.clock import monotonic
from vkprovider.platform.kube.events import EventRecorder, ObjectRef
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.settings import KubeSettings, ReplicaSettings, default_replica

_log: Final = structlog.get_logger(__name__)


class Program(NamedTuple):
    """A program whose replicas share out keys among themselves, and with those of no other program.

    Attributes:
        name: What Events and audit logs show as their source; the names of its replicas' Leases begin with it.
        member_label: The label by which its replicas find each other's Leases.
    """

    name: str
    member_label: str

    @property
    def member_prefix(self) -> str:
        """The beginning of the names of its replicas' Leases."""
        return f"{self.name}-replica-"


PROVIDER: Final = Program(wellknown.MANAGER, f"{wellknown.GROUP}/replica")
"""The provider: its replicas share out Nodes."""


@dataclass(frozen=True)
class Context:
    """Shared by all controllers of one replica.

    Attributes:
        installation: UID of the namespace kube-system.
        replica: The name of this replica, unique among those that live; an earlier process may have had it.
        process: This process, unique for ever.
        namespace: Where the Leases of replicas live, and whatever else belongs to this installation alone.
        logins: The namespace of the logins of workers and devices; "" for the usual one.
        program: Whose replica it is.
        now: Monotonic seconds.
        wall: Unix seconds of the API server, by which stamps in its objects are judged.
        is_sure: Whether these are certain enough to end, delete or hand out something because a stamp has passed.
        skew_s: By how many seconds the clock of this machine is ahead of the API server's.
    """

    kube: KubeClient
    events: EventRecorder
    installation: str
    replica: str
    namespace: str
    now: Callable[[], float] = monotonic
    wall: Callable[[], float] = time.time
    is_sure: Callable[[], bool] = lambda: True
    skew_s: Callable[[], float] = lambda: 0.0
    dice: Callable[[], float] = random.random
    process: str = field(default_factory=default_replica)
    program: Program = PROVIDER
    logins: str = ""

    @property
    def logins_namespace(self) -> str:
        """The namespace of the logins of workers and devices."""
        return self.logins or wellknown.logins_namespace(self.namespace)

    @cached_property
    def api(self) -> Api:
        """Typed handles for the resources of the API server."""
        return Api(self.kube, self.namespace, self.logins_namespace)

    @property
    def now_unix(self) -> int:
        """The API server's clock in whole seconds."""
        return int(self.wall())

    @property
    def now_utc(self) -> datetime:
        """The API server's clock with its microseconds."""
        return datetime.fromtimestamp(self.wall(), UTC)


def ref_of(resource: CustomResource, kind: str) -> ObjectRef:
    """Make the reference for Events about a custom resource."""
    return ObjectRef(wellknown.API_VERSION, kind, "", resource.metadata.name, resource.metadata.uid)


def own_ip() -> str:
    """Guess the address by which others reach this host; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


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
