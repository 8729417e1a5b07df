"""Pod → lab: one key per Pod UID, one step after another, each decided by `domain.lablet`."""

from collections.abc import Callable, Mapping

from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.archive import Archive
from vkprovider.controllers.lablet.factfinder import FactFinder
from vkprovider.controllers.lablet.index import LabletIndex
from vkprovider.controllers.lablet.portcheck import PortCheck
from vkprovider.controllers.lablet.steps import Steps
from vkprovider.controllers.lablet.telling import Teller
from vkprovider.controllers.lablet.turns import Turns
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet.intent import Definition
from vkprovider.kube.queue import Result


class Lablets:
    """Brings the lablets on the Nodes of this replica to what their Pods ask for."""

    def __init__(
        self,
        ctx: Context,
        index: LabletIndex,
        ports: PortCheck,
        workers: Workers,
        definitions: Mapping[str, Definition],
        contents: Mapping[str, Content],
        archive: Archive,
        sessions: Sessions,
        *,
        again: Callable[[str], None],
    ) -> None:
        """Create the reconciler.

        Args:
            ctx: The replica.
            index: The lablets.
            ports: Checks the ports of those that became ready.
            workers: The workers.
            definitions: By name.
            contents: By digest, all that are kept.
            archive: Keeps what a learner leaves.
            sessions: Those of the LDS.
            again: Queues a lablet, by Pod UID.
        """
        self._index = index
        self._workers = workers
        teller = Teller(ctx, contents, workers.items)
        finder = FactFinder(ctx, index.items, definitions, contents, sessions)
        steps = Steps(ctx, workers, definitions, contents, teller, archive, sessions, index.capacity_freed)
        self._turns = Turns(ctx, finder, steps, teller, sessions, ports, workers.observe_soon, again)

    def close(self) -> None:
        """Begin no further step; those in hand are finished."""
        self._turns.closing = True

    async def reconcile(self, uid: str) -> Result:
        """Run the next steps of one lablet."""
        lablet = self._index.items.get(uid)
        if lablet is None or self._turns.closing:
            return Result()
        worker = self._workers.items.get(lablet.worker)
        if worker is None or worker.parked:
            return Result()  # not this replica's; the next owner wakes its lablets
        with self._index.turn(worker.name):
            result = await self._turns.take(lablet, worker)
        if result is None:
            self._index.forget(lablet)
        return result or Result()
