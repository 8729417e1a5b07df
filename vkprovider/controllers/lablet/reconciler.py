"""Pod → lab: one key per Pod UID, one step after another, each asked of `domain.lablet`.

What is kept here per lablet is volatile: a crash loses it, and the claims, the Pod and the worker tell enough to go on.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from vkprovider.api import names
from vkprovider.api.objects import Pod
from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.factfinder import FactFinder
from vkprovider.controllers.lablet.keeper import Keeper
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.lablet.portcheck import PortCheck
from vkprovider.controllers.lablet.steps import Steps
from vkprovider.controllers.lablet.telling import Teller
from vkprovider.controllers.lablet.turns import Turns
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet.intent import Definition
from vkprovider.kube.queue import KeyedQueue, Result


class Lablets:
    """The lablets on the nodes of this replica.

    Attributes:
        items: By Pod UID.
        ports: Looks whether the ports of lablets open.
    """

    def __init__(
        self,
        ctx: Context,
        workers: Workers,
        definitions: Mapping[str, Definition],
        contents: Mapping[str, Content],
        synced: Callable[[], bool],
        keeper: Keeper,
        sessions: Sessions,
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            workers: The workers.
            definitions: By name.
            contents: By digest, all that are kept.
            synced: Whether the Pods are known completely; before that, a missing Pod means nothing.
            keeper: Keeps what a learner leaves.
            sessions: Those of the LDS.
        """
        self._ctx = ctx
        self._workers = workers
        self._synced = synced
        self.items: dict[str, Lablet] = {}
        self._by_worker: dict[str, set[str]] = {}
        self._busy: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self.queue: KeyedQueue[str] = KeyedQueue(self.reconcile, name="lablets", workers=128)
        self.ports = PortCheck(ctx, self.items, workers.items, contents, self.queue.add)
        teller = Teller(ctx, contents, workers.items)
        finder = FactFinder(ctx, self.items, definitions, contents, sessions)
        steps = Steps(ctx, workers, definitions, contents, teller, keeper, sessions, self._room_made)
        self._turns = Turns(ctx, finder, steps, teller, sessions, self.ports, workers.observe_soon, self.queue.add)
        workers.changed = self._wake
        workers.met = self._met
        workers.gone = self._start_over
        workers.idle = self._wait_idle
        workers.running = self._count_running

    # --------------------------------------------------------------------------------------------- what changes

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take in a change of a Pod on one of our nodes."""
        pod = new or old
        if pod is None:
            return
        worker = names.worker_of(pod.spec.node_name)
        if worker is None:
            return
        lablet = self._lablet(pod.metadata.uid, worker)
        lablet.pod = new
        if worker not in self._workers.items:  # whoever acts for it looks; we only keep the Pod, for when we do
            if new is None:
                self._forget(lablet)
            return
        if new is None or (old is not None and old.metadata.deletion_timestamp != new.metadata.deletion_timestamp):
            lablet.hold_until = 0.0
        if new is None and pod.metadata.deletion_timestamp is not None:
            lablet.gone_confirmed = True  # its deletion was final, and now it has come to its end
        written = lablet.written.version
        if new is not None and not new.terminal and written and new.metadata.resource_version == str(written):
            return  # our own write, come back; after the last one the row can go
        self.queue.add(lablet.uid)

    def definition_changed(self) -> None:
        """Look again at what was refused: a definition changed."""
        self._wake([uid for uid, lablet in self.items.items() if lablet.refused])

    def _room_made(self, worker: str) -> None:
        """Look again at what was refused on a worker: there is more room on it."""
        self._wake([uid for uid in self._by_worker.get(worker, ()) if self.items[uid].refused])

    def _wake(self, uids: Collection[str]) -> None:
        for uid in uids:
            if uid in self.items:
                self.queue.add(uid)

    def _met(self, worker: Worker) -> None:
        for claim in worker.claims.claims.values():
            self._lablet(claim.pod_uid, worker.name)
        self._wake(self._by_worker.get(worker.name, ()))

    def _start_over(self, worker: str) -> None:
        """Forget all but the Pods of a worker that is ours no more: what we did there may be undone by others."""
        for uid in list(self._by_worker.get(worker, ())):
            pod = self.items[uid].pod
            self._drop(self.items[uid])
            if pod is not None:
                self._lablet(uid, worker).pod = pod

    def _count_running(self, worker: str) -> int:
        """Count the Pods that run on a worker; one without a claim gets it back, if its claims were lost."""
        pods = (self.items[uid].pod for uid in self._by_worker.get(worker, ()))
        return sum(pod is not None and pod.status.phase == "Running" for pod in pods)

    async def _wait_idle(self, worker: str, within_s: float) -> bool:
        """Wait until no turn of a lablet of a worker is in hand; False if that takes too long."""
        try:
            async with asyncio.timeout(within_s):
                while self._busy[worker]:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Take no further step; those in hand are finished."""
        self._turns.closing = True

    def resume(self) -> None:
        """Go on with everything: this replica could not act for a while."""
        self._wake(list(self.items))

    def session_changed(self, session: str) -> None:
        """Look at the lablet of a session of which the LDS has said something."""
        self._wake([uid for uid, claim in self._claims() if claim.session is not None and claim.session.id == session])

    def has_session(self, session: str) -> bool:
        """Tell whether a lablet of ours has a session."""
        return any(claim.session is not None and claim.session.id == session for _, claim in self._claims())

    def _claims(self) -> Iterator[tuple[str, Claim]]:
        for worker in self._workers.items.values():
            yield from worker.claims.claims.items()

    def all_synced(self) -> None:
        """Pods are known completely: look at every claim whose Pod may be gone."""
        self._wake(list(self.items))

    def _lablet(self, uid: str, worker: str) -> Lablet:
        lablet = self.items.get(uid)
        if lablet is None:
            lablet = self.items[uid] = Lablet(uid, worker, met_at=self._ctx.now())
            self._by_worker.setdefault(worker, set()).add(uid)
        return lablet

    def _drop(self, lablet: Lablet) -> None:
        self.items.pop(lablet.uid, None)
        self._by_worker.get(lablet.worker, set()).discard(lablet.uid)
        self.queue.forget(lablet.uid)

    def _forget(self, lablet: Lablet) -> None:
        """Drop a lablet that has come to its end."""
        self._drop(lablet)
        self._ctx.events.forget(lablet.uid)

    # --------------------------------------------------------------------------------------------- one turn

    async def reconcile(self, uid: str) -> Result:
        """Take the next steps of one lablet."""
        lablet = self.items.get(uid)
        if lablet is None or self._turns.closing or not self._synced():
            return Result()
        worker = self._workers.items.get(lablet.worker)
        if worker is None or worker.parked:
            return Result()  # not ours; whoever takes the node wakes its lablets
        self._busy[worker.name] += 1
        try:
            result = await self._turns.take(lablet, worker)
        finally:
            self._busy[worker.name] -= 1
            if not self._busy[worker.name]:
                self._idle.set()
        if result is None:
            self._forget(lablet)
        return result or Result()
