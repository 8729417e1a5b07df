"""What every reconciler needs: the API server, the clock, the settings, who we are."""

import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from vkprovider.api import names
from vkprovider.api.histogram import LONG_S, Histogram
from vkprovider.api.objects import CustomResource
from vkprovider.content.objects import StorePlace, open_store
from vkprovider.content.spi import ContentStore
from vkprovider.domain.definition.package import PackageLimits
from vkprovider.domain.lablet.facts import Limits
from vkprovider.domain.topology.resources import SHIPPED, NodeDefinition
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder, ObjectRef


def monotonic() -> float:
    """Seconds on a clock that goes on while the machine sleeps, so that a fence holds after a suspend."""
    return time.clock_gettime(_BOOTTIME)


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Tuning:
    """What can be set about the controllers; times in seconds."""

    lease_ttl_s: float = 15.0
    workload_levels: int = 10
    probe_s: float = 5.0
    probe_timeout_s: float = 3.0
    probe_failures_max: int = 3
    refresh_s: float = 10.0
    transition_s: float = 1.0
    reconcile_s: float = 30.0
    progress_after_s: float = 2.0
    progress_every_s: float = 15.0
    retry_first_s: float = 1.0
    retry_cap_s: float = 30.0
    kept_s: float = 7 * 86400.0
    port_range: tuple[int, int] = (10000, 20000)
    ports_per_instance_max: int = 50
    port_check_s: float = 60.0
    every_access: bool = False
    taint_effect: str = "NoExecute"
    internal_ip: str = ""
    kubelet_version: str = "v1.36.3-vkprovider"


def default_replica() -> str:
    """Name this process: host and process id, and four letters that no earlier process had."""
    return f"{os.uname().nodename.split('.')[0].lower()}-{os.getpid()}-{random.randbytes(2).hex()}"


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


@dataclass(frozen=True, slots=True)
class Context:
    """Shared by all reconcilers of one replica.

    Attributes:
        installation: UID of the namespace kube-system; in every lab's notes.
        replica: The name of this replica, unique among those that live; an earlier process may have had it.
        process: This process, unique for ever.
        namespace: Where claims, content, Secrets and membership Leases live.
        content: Where content packages are; asked on request only.
        environment: Node definitions beyond the shipped ones are merged into `node_definitions`.
    """

    kube: KubeClient
    events: EventRecorder
    installation: str
    replica: str
    namespace: str
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)
    node_definitions: Mapping[str, NodeDefinition] = field(default_factory=lambda: SHIPPED)
    content: ContentStore = field(default_factory=lambda: open_store(StorePlace()))
    package_limits: PackageLimits = field(default_factory=PackageLimits)
    counters: Counters = field(default_factory=Counters)
    now: Callable[[], float] = monotonic
    wall: Callable[[], float] = time.time
    dice: Callable[[], float] = random.random
    process: str = field(default_factory=default_replica)

    @property
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
