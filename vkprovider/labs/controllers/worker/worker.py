"""What this replica knows of one worker whose Node it owns, and the workers that it acts for.

Slots limit the turns that await an answer. A turn that gets none ends; `release` names the key whose turn may run next,
in order of arrival.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

import structlog

from vkprovider.cml.spi import Labs
from vkprovider.lablet.models.status import WorkerStatus
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.observations import DeviceFact, DeviceFigures
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.claims.store import ClaimStore
from vkprovider.labs.controllers.worker.connection import WorkerConnection
from vkprovider.labs.controllers.worker.finalizer import Finalizer
from vkprovider.labs.controllers.worker.lab_index import LabIndex
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.worker.capacity import Capacity, Stats
from vkprovider.labs.pure.worker.identity import AGENTS_OWN, UNSEEN, CmlAccess, access_of
from vkprovider.labs.pure.worker.node import Health, address_of, check_version, healthy, in_use, unhealthy
from vkprovider.labs.pure.worker.reach import destination_of
from vkprovider.platform.errors import Fenced, InputError, OutsideError, Unavailable
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.messages import Fault, TimelessCondition

_log: Final = structlog.get_logger(__name__)


class Slots:
    """Slots held by keys, up to a limit, and the keys that wait for one, in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._holders: set[str] = set()
        self._waiting: OrderedDict[str, None] = OrderedDict()

    def has_room(self, key: str) -> bool:
        """Return whether `key` holds a slot or could acquire one; queue `key` if not."""
        if key in self._holders or len(self._holders) < self._limit:
            return True
        self._waiting[key] = None
        return False

    def acquire(self, key: str) -> bool:
        """Acquire a slot for `key`; return False and queue `key` if none is free."""
        if not self.has_room(key):
            return False
        self._waiting.pop(key, None)
        self._holders.add(key)
        return True

    def release(self, key: str) -> str | None:
        """Release `key`'s slot, if it holds one; return the next waiting key.

        Call it at the end of every turn, also of one without a slot: a key that was returned before may not have come.
        """
        self._holders.discard(key)
        if self._waiting and len(self._holders) < self._limit:
            return self._waiting.popitem(last=False)[0]
        return None


_LAST_WRITES_MAX: Final = 4
"""A conflict with our own last write, whose answer was cut off, takes two."""
_TURNS_MAX: Final = 12
"""A few more than the requests that a worker is sent at once, so that no turn starts late."""
NEVER: Final = -1e9
"""A time before any moment of the clock."""
FOREVER: Final = 1e18
"""A time after any moment of the clock."""


@dataclass(slots=True)
class Observation:
    """What the observer has learned of a worker; nothing else writes it.

    Attributes:
        version, lab_ids, devices, usage: CML's version, its labs, their devices by lab id, and what is used.
        version_at, labs_at, devices_at, usage_at, definitions_at, images_at: When the last answer to each was *asked
            for*.
        definitions: What devices of CML's own node definitions need, without those that are known anyway; None while
            that is unknown.
        boot_timeouts: How long CML waits for a device to boot, by node definition; the same.
        images: The names of its image definitions, for its Node; None while they are unknown.
        host: Id of the controller's compute host; "" while it is unknown.
        ip: The address that learners reach, resolved; "" while it is unknown.
        failures: Probes in a row that failed.
        reached: Whether the worker has answered since it failed last, be it an earlier owner of its Node.
        fault: Why the worker cannot be used, for its Node; None while it answers.
        silent_because: The same for its lablets; "" while it answers.
        access: Where and by whom its labs were seen last, be it by an earlier owner.
        login_at: When the credentials were looked at last, after the login.
        login_fault: Why they would not do for another login, while the present one lasts; None if they would.
    """

    version: str = ""
    version_at: float = NEVER
    lab_ids: frozenset[str] = frozenset()
    labs_at: float = NEVER
    devices: dict[str, tuple[DeviceFact, ...]] = field(default_factory=dict)
    devices_at: float = NEVER
    usage: Stats | None = None
    definitions: tuple[DeviceFigures, ...] | None = None
    boot_timeouts: Mapping[str, int] | None = None
    definitions_at: float = NEVER
    usage_at: float = NEVER
    images: tuple[str, ...] | None = None
    images_at: float = NEVER
    host: str = ""
    ip: str = ""
    failures: int = 0
    reached: bool = False
    fault: Health | None = None
    silent_because: str = ""
    access: CmlAccess = UNSEEN
    login_at: float = NEVER
    login_fault: Fault | None = None

    def recall(self, status: WorkerStatus) -> None:
        """Note that the worker answered its last owner, as its status says: it is silent after several failures."""
        if status.is_ready and isinstance(status.cml_version, str):
            self.reached, self.version = True, status.cml_version

    def look(self, lab_id: str, since: float) -> tuple[Presence, tuple[DeviceFact, ...]]:
        """Return the state of a lab by answers that were asked for after `since`."""
        if self.devices_at > since and lab_id in self.devices:
            return Presence.PRESENT, self.devices[lab_id]
        if self.labs_at > since and lab_id not in self.lab_ids:
            return Presence.ABSENT, ()
        if self.devices_at > since and self.labs_at > since:
            return Presence.PRESENT, ()
        return Presence.UNKNOWN, ()


@dataclass(slots=True)
class Worker:
    """What this replica knows of one worker whose Node it owns.

    `seen`, `awaiting` and `look_at` are written by the observer, `ports_open` by the check of ports, the rest by the
    reconciler of workers.

    Attributes:
        raw_spec: The spec as it came; parsing it takes longer than all the rest of a quiet turn.
        connection: By the spec.
        guard: Called right before every side effect; raises Fenced when this replica has lost the Node meanwhile.
        finalizer: Keeps the CMLWorker as long as it has claims.
        seen: The last observation.
        awaiting: UIDs of Pods that wait for the next observation, whatever it shows; "" for a caller without a Pod.
        look_at: When it is due for them, if the worker is watched by an agent.
        slots: For turns that await the worker, by Pod UID.
        capacity: What it offers; None before its first turn.
        running: Pods on it that run, with or without a claim.
        identity: What tells its controller from others, see `labs.pure.worker.identity`.
        same_as: That an earlier CMLWorker is the same controller, or gives the same ports at one address, so that
            nothing new is begun; else None.
        unapproved: That nobody has approved the agent for which the CMLWorker was made, so that nothing is begun; else
            None.
        parked: Nothing new is begun for it: it is being handed over.
        unrebuilt: Why its claims, which were lost, could not be rebuilt; "" if they are complete, or about to be.
        ports_open: Whether the ports of the lablet that became ready last open; None while unknown.
    """

    name: str
    uid: str
    raw_spec: object
    connection: WorkerConnection
    claims: ClaimStore
    guard: Guard
    finalizer: Finalizer
    seen: Observation = field(default_factory=Observation)
    awaiting: set[str] = field(default_factory=set)
    look_at: float = FOREVER
    slots: Slots = field(default_factory=lambda: Slots(_TURNS_MAX))
    capacity: Capacity | None = None
    running: int = 0
    identity: list[str] = field(default_factory=list)
    same_as: InputError | None = None
    unapproved: InputError | None = None
    parked: bool = False
    unrebuilt: str = ""
    ports_open: TimelessCondition | None = None

    @property
    def spec(self) -> CMLWorkerSpec:
        """The CMLWorker's."""
        return self.connection.spec

    @property
    def labs(self) -> Labs:
        """The connection for labs."""
        return self.connection.labs

    @property
    def lab_index(self) -> LabIndex:
        """The labs that no claim names."""
        return self.connection.lab_index

    @property
    def access(self) -> CmlAccess:
        """Where and by whom the worker is asked now."""
        user = self.labs.user() or (
            AGENTS_OWN if self.spec.tunnel != "direct" and not self.spec.credentials_secret_name else ""
        )
        return access_of(self.spec.cml_url or destination_of(self.name, self.spec), user)

    def doubt(self, asked: CmlAccess) -> Unavailable | None:
        """Return why "not found" does not say that a lab is gone; None if it does.

        Another user or url may show other labs than that by which those of the claims were seen last; the next look
        says whether it does.

        Args:
            asked: The access before the request; the login may have changed since.
        """
        if asked.differs(self.seen.access) or self.access.differs(self.seen.access):
            return Unavailable(f"the labs of worker {self.name} were not seen yet by its present user or url")
        return None

    async def log_in(self) -> None:
        """Make known by whom the labs are seen, if it is known by whom those of the claims were.

        Raises:
            OutsideError: The login failed, or the request by which it is made.
        """
        if self.seen.access.user and not self.access.user:
            await self.labs.list_lab_ids()

    async def check_access(self) -> None:
        """Check that the worker is asked where and by whom the labs of its claims were seen.

        Raises:
            OutsideError: As `log_in`; `Unavailable`: it is not, see `doubt`.
        """
        await self.log_in()
        if (doubt := self.doubt(self.access)) is not None:
            raise doubt

    @property
    def address(self) -> str:
        """What learners reach: an IP address, or a name as long as it is not resolved."""
        return self.seen.ip or address_of(self.spec)

    @property
    def refusal(self) -> InputError | None:
        """Why no lablet may begin on the worker, though it may answer; None if lablets may."""
        return self.unapproved or self.same_as or self.claims.fault

    @property
    def health(self) -> Health:
        """Whether the worker can be used, for its Node."""
        if self.seen.fault is not None:
            return self.seen.fault
        if not self.seen.reached:
            return unhealthy(WorkerReason.STARTING, "the worker has not been asked yet")
        unfit = self.refusal or check_version(self.seen.version)
        if unfit is None and self.capacity is not None:
            unfit = self.capacity.fault
        if unfit is not None:
            return unhealthy(unfit.reason, unfit.message)
        answers = f"CML {self.seen.version} answers"
        if self.unrebuilt:
            text = f"{answers}, but no lablet begins or ends: its claims were lost and not rebuilt, {self.unrebuilt}"
            return Health(ready=True, reason=WorkerReason.CLAIMS_LOST, message=text)
        if (refused := self.seen.login_fault) is None:
            return healthy(answers)
        text = f"{answers} as long as its present login lasts, but another one would fail: {refused.message}"
        return Health(ready=True, reason=refused.reason, message=text)

    @property
    def in_use(self) -> Health:
        """Why its deleted CMLWorker is still there."""
        named = {f"{claim.namespace}/{claim.pod}" for claim in self.claims.claims.values()}
        return in_use(self.name, named, max(len(named), self.running))

    @property
    def offer(self) -> tuple[object, ...]:
        """What lablets are placed by: one that was refused may fit when it changes."""
        offered = self.capacity
        can_begin = self.same_as is None and self.unapproved is None
        return (
            (offered.total, offered.labs, self.seen.ip, can_begin, self.lab_index.examined)
            if offered is not None
            else ()
        )

    async def write_rest(self) -> None:
        """Write what is left of the claims, before another replica continues with them; log what cannot be written."""
        try:
            for _ in range(_LAST_WRITES_MAX):
                if await self.claims.flush(hurry=True) is None:
                    return
            _log.warning("claims not written: others write them too", worker=self.name)
        except (InputError, OutsideError, Fenced) as error:
            _log.warning("claims not written", worker=self.name, error=str(error))


class WorkerLablets(Protocol):
    """The lablets of the workers, as far as a worker concerns them."""

    def wake(self, uids: Collection[str]) -> None:
        """Queue lablets, by Pod UID: something about their labs is new."""

    def claims_saved(self, uids: Collection[str]) -> None:
        """Queue lablets, by Pod UID, before others: what they began goes on."""

    def worker_changed(self, worker: Worker) -> None:
        """Queue all lablets of a worker: its claims were read, or its capacity, address or claims' fault changed."""

    async def wait_idle(self, worker: str, within_s: float) -> bool:
        """Wait until no turn of a lablet of a worker is in hand; return False if that takes longer than `within_s`."""

    def count_running(self, worker: str) -> int:
        """Count the Pods that run on a worker."""


class Fleet:
    """The workers that this replica acts for and whose claims are read.

    Attributes:
        items: By name; read only.
    """

    def __init__(self) -> None:
        self._items: dict[str, Worker] = {}
        self._given_up: defaultdict[str, list[Worker]] = defaultdict(list)
        self.items: Mapping[str, Worker] = MappingProxyType(self._items)

    def add(self, worker: Worker) -> None:
        """Add a worker whose claims were just read."""
        self._items[worker.name] = worker

    def given_up(self, worker: str) -> None:
        """Drop a worker: from now on another replica may act for it. Its connections still have to be closed."""
        known = self._items.pop(worker, None)
        if known is not None:
            self._given_up[worker].append(known)

    def pop_given_up(self, worker: str) -> Iterator[Worker]:
        """Remove and yield the workers given up under this name; the caller closes their connections."""
        while dropped := self._given_up.get(worker):
            yield dropped.pop()
        self._given_up.pop(worker, None)

    def pop_all_given_up(self) -> Iterator[Worker]:
        """Remove and yield all workers that were given up and not yet closed, as `pop_given_up` does."""
        for worker in [*self._given_up]:
            yield from self.pop_given_up(worker)
