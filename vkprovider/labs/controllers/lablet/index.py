"""The lablets that this replica knows, by Pod UID and by worker, and the record of each.

A change elsewhere (of a Pod, session, definition or worker) ends here, as keys in the queue of lablets. What is known
of a lablet is volatile: a crash loses it, and the claims, the Pod and the worker are enough to continue.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from vkprovider.lablet import exposure, names
from vkprovider.lablet.standing import State
from vkprovider.labs.controllers.counters import DELETION_SEEN, REMOVAL_SEEN, SEEN, Counters
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.console.writers import NO_ACTIVITY, Activity
from vkprovider.labs.pure.lablet.memory import BLANK, Memory
from vkprovider.labs.pure.lablet.status import LabletStatus
from vkprovider.platform.kube.due import Priority
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import EndpointSlice, Pod
from vkprovider.platform.runtime.context import Context


@dataclass(slots=True)
class Written:
    """The last status written of one Pod.

    Attributes:
        version: The resourceVersion of that write; an older Pod in the informer's cache does not count.
        at: When it was written.
        sending: Whether a write awaits its answer.
        progress_since: Since when there has been progress that is not written.
    """

    status: LabletStatus | None = None
    version: int = 0
    at: float = -1e9
    sending: bool = False
    progress_since: float = 0.0


@dataclass(slots=True)
class Lablet:
    """One Pod UID on one worker. Each field has one writer.

    Attributes:
        pod: As the informer has it; written by the Pod handler.
        changes: How often it has changed; counted by the Pod handler.
        removal_seen: The informer showed the Pod's deletion and then its removal; written by the Pod handler.
        memory: Replaced by the turn alone.
        awaits_claim: Whether the last turn awaits the stored claim; written by the turn.
        written: The last status written; changed by the publisher alone.
        ports_open: The condition `PortsOpen`, None while unknown; written by the check of ports.
        activity: The input at its consoles that was noted last; written by the consoles.
    """

    uid: str
    worker: str
    pod: Pod | None = None
    changes: int = 0
    removal_seen: bool = False
    memory: Memory = BLANK
    awaits_claim: bool = True
    written: Written = field(default_factory=Written)
    ports_open: TimelessCondition | None = None
    activity: Activity = NO_ACTIVITY

    @property
    def state(self) -> State | None:
        """The state last reported."""
        return self.memory.state

    @property
    def ready_since(self) -> float:
        """Since when it is Ready (monotonic seconds), 0 if it is not."""
        return self.memory.ready_since


class LabletIndex:
    """The lablets on all of our Nodes.

    Attributes:
        items: By Pod UID; of a worker that another replica acts for, only the Pod is known.
    """

    def __init__(self, ctx: Context, counters: Counters, queue: KeyedQueue[str], workers: Mapping[str, Worker]) -> None:
        """Create an empty index.

        Args:
            ctx: The replica.
            counters: Note when changes of Pods are seen.
            queue: Of lablets, by Pod UID.
            workers: Those that this replica acts for, by name.
        """
        self._ctx = ctx
        self._counters = counters
        self._queue = queue
        self._workers = workers
        self.items: dict[str, Lablet] = {}
        self._by_worker: dict[str, set[str]] = {}
        self._busy: Counter[str] = Counter()
        self._idle = asyncio.Event()

    # --------------------------------------------------------------------------------------------- what changes

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a change of a Pod on one of our Nodes."""
        pod = new or old
        if pod is None:
            return
        worker = names.worker_of(pod.spec.node_name)
        if worker is None:
            return
        lablet = self._lablet(pod.metadata.uid, worker)
        lablet.pod = new
        lablet.changes += 1
        self._counters.timeline.note(lablet.uid, _stage(new))
        if worker not in self._workers:  # its owner acts; keep the Pod for the case that this replica takes over
            if new is None:
                self.forget(lablet)
            return
        if new is None and pod.metadata.deletion_timestamp is not None:
            lablet.removal_seen = True
        if new is not None and not new.terminal:  # after the last write the row can go
            written = lablet.written
            if written.sending:
                return  # often the echo of our own write, before its answer; the publisher queues it if it is not
            if written.version and new.metadata.resource_version == str(written.version):
                return
        self._queue.add(lablet.uid)

    def slice_changed(self, old: EndpointSlice | None, new: EndpointSlice | None) -> None:
        """Queue the lablet whose slice has changed."""
        if (found := new or old) is not None:
            self.wake([exposure.pod_uid_of(found.metadata.name)])

    def definition_changed(self) -> None:
        """Queue the refused lablets: a definition changed."""
        self.wake([uid for uid, lablet in self.items.items() if lablet.memory.refused])

    def capacity_freed(self, worker: str) -> None:
        """Queue the refused lablets of a worker: it has more capacity."""
        self.wake([uid for uid in self._by_worker.get(worker, ()) if self.items[uid].memory.refused])

    def session_changed(self, session: str) -> None:
        """Queue the lablet of a session about which the LDS sent an event."""
        for worker in self._workers.values():
            if (uid := worker.claims.sessions.get(session)) is not None:
                self.wake([uid])

    def has_session(self, session: str) -> bool:
        """Return whether a claim of this replica names a session."""
        return any(session in worker.claims.sessions for worker in self._workers.values())

    def worker_changed(self, worker: Worker) -> None:
        """Queue all lablets of a worker: its claims were read, or its capacity, address or claims' fault changed."""
        for claim in worker.claims.claims.values():
            self._lablet(claim.pod_uid, worker.name)
        self.wake(self._by_worker.get(worker.name, ()))

    def given_up(self, worker: str) -> None:
        """Forget all but the Pods of a worker: from now on another replica may change what was done there."""
        for uid in list(self._by_worker.get(worker, ())):
            pod = self.items[uid].pod
            self._drop(self.items[uid])
            if pod is not None:
                self._lablet(uid, worker).pod = pod

    def wake(self, uids: Collection[str], priority: Priority = Priority.CHANGED) -> None:
        """Queue the lablets among `uids` that are known."""
        for uid in uids:
            if uid in self.items:
                self._queue.add(uid, priority=priority)

    def claims_saved(self, uids: Collection[str]) -> None:
        """Queue the lablets that waited for their claims to be saved: what they began goes on, before others begin."""
        self.wake([uid for uid in uids if uid in self.items and self.items[uid].awaits_claim], Priority.BEGUN)

    def wake_all(self) -> None:
        """Queue every lablet: all Pods are known now, or this replica could not act for a while."""
        self.wake(list(self.items))

    def forget(self, lablet: Lablet) -> None:
        """Drop a lablet that has come to its end."""
        if self.items.get(lablet.uid) is not lablet:
            return  # a turn that began before its Node was lost, and taken again
        self._drop(lablet)
        self._ctx.events.forget(lablet.uid)

    def _lablet(self, uid: str, worker: str) -> Lablet:
        lablet = self.items.get(uid)
        if lablet is None:
            lablet = self.items[uid] = Lablet(uid, worker, memory=Memory(met_at=self._ctx.now()))
            self._by_worker.setdefault(worker, set()).add(uid)
        return lablet

    def _drop(self, lablet: Lablet) -> None:
        self.items.pop(lablet.uid, None)
        self._by_worker.get(lablet.worker, set()).discard(lablet.uid)
        self._queue.forget(lablet.uid)

    # --------------------------------------------------------------------------------------------- what runs

    def pods_on(self, worker: str) -> list[Pod]:
        """List the Pods on a worker, of whatever owner."""
        known = (self.items[uid].pod for uid in self._by_worker.get(worker, ()))
        return [pod for pod in known if pod is not None]

    def count_running(self, worker: str) -> int:
        """Count the Pods that run on a worker, also those without a claim: they get it back if the claims were lost."""
        return sum(pod.status.phase == "Running" for pod in self.pods_on(worker))

    @contextmanager
    def turn(self, worker: str) -> Iterator[None]:
        """Count a turn of a lablet of `worker` as in hand while the block runs."""
        self._busy[worker] += 1
        try:
            yield
        finally:
            self._busy[worker] -= 1
            if not self._busy[worker]:
                self._idle.set()

    async def wait_idle(self, worker: str, within_s: float) -> bool:
        """Wait until no turn of a lablet of a worker is in hand; return False if that takes longer than `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                while self._busy[worker]:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return False
        return True


def _stage(pod: Pod | None) -> str:
    if pod is None:
        return REMOVAL_SEEN
    return SEEN if pod.metadata.deletion_timestamp is None else DELETION_SEEN
