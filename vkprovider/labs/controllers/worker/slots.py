"""A limited number of slots for turns that await one outside system, so that one that hangs does not block the others.

A turn that gets no slot ends; `release` names the key whose turn may run next, in order of arrival.
"""

from collections import OrderedDict


class Slots:
    """Slots held by keys, up to a limit, and the keys that wait for one, in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._holders: set[str] = set()
        self._waiting: OrderedDict[str, None] = OrderedDict()

    def has_room(self, key: str) -> bool:
        """Return whether `key` holds a slot or could acquire one; queue `key` if not."""
        if key in self._holders or len(self._holders) < self._limit:
            return True
        self._waiting[key] = None
        return False

    def acquire(self, key: str) -> bool:
        """Acquire a slot for `key`; return False and queue `key` if none is free."""
        if not self.has_room(key):
            return False
        self._waiting.pop(key, None)
        self._holders.add(key)
        return True

    def release(self, key: str) -> str | None:
        """Release `key`'s slot, if it holds one; return the next waiting key.

        Call it at the end of every turn, also of one without a slot: a key that was returned before may not have come.
        """
        self._holders.discard(key)
        if self._waiting and len(self._holders) < self._limit:
            return self._waiting.popitem(last=False)[0]
        return None
