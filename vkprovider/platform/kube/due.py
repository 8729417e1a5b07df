"""The keys of a queue that are due, by priority; pure.

As in controller-runtime, what is only looked at again gives way to what changed; and here, what has been begun goes
before what begins. So a thousand new keys are finished one after the other instead of all of them late.
"""

import enum
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Priority(enum.IntEnum):
    """Which keys run first."""

    BEGUN = 0
    """What it waited for has come: it goes on."""
    CHANGED = 1
    """Something changed, or a pause is over."""
    RESYNC = 2
    """Nothing is known to have changed."""


class Due(Generic[K]):
    """Keys that wait for a worker: by priority, and within one in the order in which they came."""

    def __init__(self) -> None:
        """Begin without a key."""
        self._since: dict[Priority, OrderedDict[K, float]] = {priority: OrderedDict() for priority in Priority}

    def __len__(self) -> int:
        """Count the keys."""
        return sum(map(len, self._since.values()))

    def __contains__(self, key: K) -> bool:
        """Return whether a key waits."""
        return any(key in keys for keys in self._since.values())

    @property
    def oldest(self) -> float | None:
        """Since when the first key of any priority has been due; None without keys."""
        return min((next(iter(keys.values())) for keys in self._since.values() if keys), default=None)

    def add(self, key: K, since: float, priority: Priority) -> None:
        """Add a key; one that waits already keeps the earlier time and the higher priority."""
        for each, keys in self._since.items():
            if key in keys:
                if each <= priority:
                    return
                since = min(since, keys.pop(key))
                break
        self._since[priority][key] = since

    def discard(self, key: K) -> None:
        """Drop a key, if it waits."""
        for keys in self._since.values():
            keys.pop(key, None)

    def pop(self) -> tuple[K, float, Priority]:
        """Remove the next key; return it, since when it has been due, and its priority.

        Raises:
            IndexError: No key waits.
        """
        for priority, keys in self._since.items():
            if keys:
                return *keys.popitem(last=False), priority
        raise IndexError("no key is due")
