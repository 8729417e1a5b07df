"""What this replica knows of one worker whose node it owns."""

from dataclasses import dataclass, field
from typing import Final

from vkprovider.api.labs import DeviceFact
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.cml.spi import Labs
from vkprovider.cml.stats import WorkerStats
from vkprovider.controllers.claims.store import ClaimStore
from vkprovider.controllers.worker.labfinder import LabFinder
from vkprovider.controllers.worker.slots import Slots
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.topology.resources import Resources
from vkprovider.domain.worker.node import Health, Stats, down
from vkprovider.kube.client import Guard

_TURNS_MAX: Final = 12
"""A few more than it is asked at once, so that nobody is late."""


@dataclass(slots=True)
class Worker:
    """What this replica knows of one worker whose node it owns.

    Attributes:
        asked: The spec as it came; parsing it takes longer than all the rest of a quiet turn.
        labs_at, devices_at: When the last answer to "which labs" and "which devices" was *asked for*.
        silent: Why the worker does not answer; "" while it does.
        awaiting: UIDs of Pods that wait for the next observation, whatever it shows; "" if somebody else does.
        guard: Called right before every side effect; raises Fenced when the node is not ours as it was.
        slots: For turns that await the worker, by Pod UID.
        running: Pods on it that run, with or without a claim.
        ports_open: Whether the ports of the lablet that became ready last open: status, reason, message.
        parked: Nothing new is begun for it: it is being handed over.
    """

    name: str
    asked: object
    spec: CMLWorkerSpec
    claims: ClaimStore
    labs: Labs
    finder: LabFinder
    guard: Guard
    stats: WorkerStats | None = None
    version: str = ""
    version_at: float = -1e9
    lab_ids: frozenset[str] = frozenset()
    labs_at: float = -1e9
    devices: dict[str, tuple[DeviceFact, ...]] = field(default_factory=dict)
    devices_at: float = -1e9
    failures: int = 0
    reached: bool = False
    silent: str = ""
    health: Health = field(default_factory=lambda: down("Starting", "the worker has not been asked yet"))
    awaiting: set[str] = field(default_factory=set)
    slots: Slots = field(default_factory=lambda: Slots(_TURNS_MAX))
    usage: Stats | None = None
    usage_at: float = -1e9
    capacity: Resources | None = None
    pods: int = 0
    running: int = 0
    ip: str = ""
    parked: bool = False
    ports_open: tuple[str, str, str] | None = None

    def look(self, lab_id: str, since: float) -> tuple[Presence, tuple[DeviceFact, ...]]:
        """Tell what is known of a lab from answers that were asked for after `since`."""
        if self.devices_at > since and lab_id in self.devices:
            return Presence.PRESENT, self.devices[lab_id]
        if self.labs_at > since and lab_id not in self.lab_ids:
            return Presence.ABSENT, ()
        if self.devices_at > since and self.labs_at > since:
            return Presence.PRESENT, ()
        return Presence.UNKNOWN, ()
