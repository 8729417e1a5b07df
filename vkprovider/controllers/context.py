"""What every reconciler needs: the API server, the clocks, the counters, and which replica this is."""

import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from vkprovider.api import names
from vkprovider.api.histogram import LONG_S, Histogram
from vkprovider.api.objects import CustomResource
from vkprovider.content.parsing import shared_parser
from vkprovider.content.spi import Parser
from vkprovider.controllers.timeline import Timeline
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder, ObjectRef
from vkprovider.settings.cluster import default_replica


def monotonic() -> float:
    """Seconds on a clock that goes on while the machine sleeps, so that a fence holds after a suspend."""
    return time.clock_gettime(_BOOTTIME)


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(slots=True)
class Counters:
    """What is counted for /metrics; plain numbers, so that counting costs nothing."""

    steps: dict[str, int] = field(default_factory=dict)
    step_failures: dict[str, int] = field(default_factory=dict)
    transitions: dict[tuple[str, str], int] = field(default_factory=dict)
    transitions_refused: int = 0
    status_writes: int = 0
    claim_writes: int = 0
    fenced: int = 0
    takeovers: int = 0
    lab_starts_s: dict[str, Histogram] = field(default_factory=dict)

    def lab_started(self, worker: str, took_s: float) -> None:
        """Count how long a worker took from the request to start a lab until all of it had booted."""
        histogram = self.lab_starts_s[worker] = self.lab_starts_s.get(worker) or Histogram(LONG_S)
        histogram.observe(took_s)


@dataclass(frozen=True)
class Context:
    """Shared by all reconcilers of one replica.

    Attributes:
        installation: UID of the namespace kube-system; in every lab's notes.
        replica: The name of this replica, unique among those that live; an earlier process may have had it.
        process: This process, unique for ever.
        namespace: Where claims, content, Secrets and membership Leases live.
        agents_url: Where agents dial this replica; empty: only what leads to all replicas does; None: it accepts none.
        parser: Parses untrusted content.
    """

    kube: KubeClient
    events: EventRecorder
    installation: str
    replica: str
    namespace: str
    parser: Parser = field(default_factory=shared_parser)
    counters: Counters = field(default_factory=Counters)
    timeline: Timeline = field(default_factory=Timeline)
    now: Callable[[], float] = monotonic
    wall: Callable[[], float] = time.time
    dice: Callable[[], float] = random.random
    process: str = field(default_factory=default_replica)
    agents_url: str | None = None

    @cached_property
    def api(self) -> Api:
        """Typed handles for the resources of the API server."""
        return Api(self.kube, self.namespace)

    @property
    def now_unix(self) -> int:
        """The wall clock in whole seconds."""
        return int(self.wall())

    @property
    def now_utc(self) -> datetime:
        """The wall clock with its microseconds."""
        return datetime.fromtimestamp(self.wall(), UTC)


def ref_of(resource: CustomResource, kind: str) -> ObjectRef:
    """Make the reference for Events about a custom resource."""
    return ObjectRef(names.API_VERSION, kind, "", resource.metadata.name, resource.metadata.uid)


def own_ip() -> str:
    """Guess the address by which others reach this host; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
