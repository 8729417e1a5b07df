"""The periodic pass over lablets, their sessions and claims; and new content for warm pools.

One timer serves all lablets. A turn of a lablet that is as it should be calls no one and writes nothing; it only finds
what a lost event, or a change that none announces, left undone. Claims whose ConfigMap another client deletes are
written again at once or, if the event was lost, with the next pass but one.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vkprovider.lablet import names
from vkprovider.labs.controllers.lablet.index import LabletIndex
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.lablet.intent import Definition, Member, WarmPool, member_of, next_up, pool_of
from vkprovider.platform.kube.due import Priority
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import CustomResource


@dataclass(frozen=True, slots=True)
class Renewals:
    """The lablets whose turn it is.

    Attributes:
        index: The lablets on all Nodes.
        workers: Those that this replica acts for, by name.
        definitions: By name.
        due: The digest of the content that a lablet is to take up, by Pod UID; as chosen last.
    """

    index: LabletIndex
    workers: Mapping[str, Worker]
    definitions: Mapping[str, Definition]
    due: dict[str, str] = field(default_factory=dict, init=False)

    def choose(self) -> None:
        """Choose again, and queue the chosen lablets."""
        pools: defaultdict[WarmPool, list[Member]] = defaultdict(list)
        for lablet in self.index.items.values():
            if lablet.pod is not None and (pool := pool_of(lablet.pod)) is not None:
                pools[pool].append(member_of(lablet.pod, self.definitions))
        self.due.clear()
        for members in pools.values():
            chosen = next_up(members)
            if chosen is not None and self.index.items[chosen.uid].worker in self.workers:
                self.due[chosen.uid] = chosen.digest
        self.index.wake(self.due)


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
