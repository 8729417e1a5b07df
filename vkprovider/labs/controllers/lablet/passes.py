"""The periodic pass: lablets, their sessions and their claims are looked at again, although nothing announced a change.

One timer for all of them. A turn of a lablet that is as it should be calls no one and writes nothing; it only finds
what a lost event, or a change that none announces, left undone. Claims whose ConfigMap another client deletes are
written again at once or, if the event was lost, with the next pass but one.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vkprovider.lablet import names
from vkprovider.labs.controllers.lablet.index import LabletIndex
from vkprovider.labs.controllers.lablet.renewals import Renewals
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.platform.kube.due import Priority
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import CustomResource

_PARTS: Final = 10
"""A pass is spread over so many moments, so that thousands of turns do not come at once."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The periodic pass of one replica.

    Attributes:
        every_s: From one pass to the next.
        index: The lablets.
        workers: Those that this replica acts for, by name.
        resource: Returns the CMLWorker of a name.
        stored: The metadata of all ConfigMaps of claims.
        renewals: Chooses the warm lablets that take up new content.
    """

    every_s: float
    index: LabletIndex
    workers: Mapping[str, Worker]
    resource: Callable[[str], CustomResource | None]
    stored: Informer[PartialObject]
    renewals: Renewals
    _missing: set[str] = field(default_factory=set, init=False)

    async def run(self) -> None:
        """Pass by all lablets again and again, until cancelled."""
        while True:
            self._check_claims()
            self.renewals.choose()
            for part in range(_PARTS):
                await asyncio.sleep(self.every_s / _PARTS)
                uids = [uid for uid, lablet in self.index.items.items() if lablet.worker in self.workers]
                self.index.wake(uids[part::_PARTS], Priority.RESYNC)

    def claims_changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        """Request that the claims of a worker are written again, if their ConfigMap was deleted."""
        if old is None or new is not None:
            return
        worker = self.workers.get(names.worker_of_claims(old.metadata.name))
        if worker is not None:
            self._write_again(worker, old.metadata.uid)

    def _write_again(self, worker: Worker, uid: str) -> None:
        resource = self.resource(worker.name)
        if resource is not None and resource.metadata.deletion_timestamp is None:  # else its claims go with it
            worker.claims.vanished(uid)

    def _check_claims(self) -> None:
        """Find claims whose ConfigMap is missing for a whole pass: its deletion was missed."""
        if not self.stored.synced.is_set():
            return
        found = {item.metadata.uid for item in self.stored.items.values()}
        by_uid = {worker.claims.config_map_uid: worker for worker in self.workers.values()}
        lost = {uid for uid in by_uid if uid and uid not in found}
        for uid in lost & self._missing:
            self._write_again(by_uid[uid], uid)
        self._missing.clear()
        self._missing.update(lost)
