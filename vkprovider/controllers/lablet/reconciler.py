"""Pod → lab: one key per Pod UID, one step after another, each decided by `domain.lablet`."""

from collections.abc import Mapping
from dataclasses import dataclass

from vkprovider.controllers.lablet.index import LabletIndex
from vkprovider.controllers.lablet.turn import Turns
from vkprovider.controllers.worker.worker import Worker
from vkprovider.kube.queue import Result


@dataclass(frozen=True, slots=True)
class Lablets:
    """Brings the lablets on the Nodes of this replica to what their Pods ask for.

    Attributes:
        workers: Those that this replica acts for, by name.
    """

    index: LabletIndex
    workers: Mapping[str, Worker]
    turns: Turns

    def close(self) -> None:
        """Begin no further step; those in hand are finished."""
        self.turns.closing.set()

    async def reconcile(self, uid: str) -> Result:
        """Run the next steps of one lablet."""
        lablet = self.index.items.get(uid)
        if lablet is None or self.turns.closing.is_set():
            return Result()
        worker = self.workers.get(lablet.worker)
        if worker is None or worker.parked:
            return Result()  # not this replica's; the next owner wakes its lablets
        with self.index.turn(worker.name):
            result = await self.turns.run(lablet, worker)
        if result is None:
            self.index.forget(lablet)
        return result or Result()
