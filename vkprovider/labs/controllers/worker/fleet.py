"""The workers that this replica acts for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from vkprovider.labs.controllers.worker.worker import Worker


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
