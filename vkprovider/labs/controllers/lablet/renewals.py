"""New content for warm pools: chooses, for each pool, which lablet of this replica takes it up next."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from vkprovider.labs.controllers.lablet.index import LabletIndex
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.lablet.pod.intent import Definition
from vkprovider.labs.pure.lablet.pod.renewal import Member, Pool, member_of, next_up, pool_of


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
        pools: defaultdict[Pool, list[Member]] = defaultdict(list)
        for lablet in self.index.items.values():
            if lablet.pod is not None and (pool := pool_of(lablet.pod)) is not None:
                pools[pool].append(member_of(lablet.pod, self.definitions))
        self.due.clear()
        for members in pools.values():
            chosen = next_up(members)
            if chosen is not None and self.index.items[chosen.uid].worker in self.workers:
                self.due[chosen.uid] = chosen.digest
        self.index.wake(self.due)
