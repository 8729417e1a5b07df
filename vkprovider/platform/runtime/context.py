"""What every controller needs: the API server, the clocks, and which replica this is."""

import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from vkprovider.platform import wellknown
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.clock import monotonic
from vkprovider.platform.kube.events import EventRecorder, ObjectRef
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.settings import default_replica


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
