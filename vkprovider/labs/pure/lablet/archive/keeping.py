"""How much of what learners left is kept: a bound for each namespace and one for all of them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NAMESPACE_SHARE: Final = 4
"""A namespace may use this part of all: one tenant does not push out the work of the others."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One stored object.

    Attributes:
        name: Of the ConfigMap.
        namespace, pod, pod_uid: The lablet's.
        at: When it was written (Unix seconds).
        size_bytes: As stored.
    """

    name: str
    namespace: str
    pod: str
    pod_uid: str
    at: int
    size_bytes: int


def surplus(kept: Iterable[Kept], bytes_max: int) -> list[Kept]:
    """List what has to go, the oldest of a namespace first; of all namespaces, the one that uses most gives first."""
    queues: dict[str, deque[Kept]] = {}
    used: dict[str, int] = {}
    for one in sorted(kept, key=lambda one: (one.at, one.name)):
        queues.setdefault(one.namespace, deque()).append(one)
        used[one.namespace] = used.get(one.namespace, 0) + one.size_bytes
    dropped: list[Kept] = []

    def drop(namespace: str) -> None:
        one = queues[namespace].popleft()
        used[namespace] -= one.size_bytes
        dropped.append(one)

    for namespace in list(queues):
        while used[namespace] > bytes_max // NAMESPACE_SHARE and len(queues[namespace]) > 1:
            drop(namespace)
    while sum(used.values()) > bytes_max:
        drop(max(used, key=lambda namespace: (used[namespace], namespace)))
    return dropped
