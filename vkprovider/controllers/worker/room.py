"""Room for a few turns at once that wait for one outside system, so that one that hangs does not hold up the others."""

from collections import OrderedDict


class Room:
    """Keys that are in, up to a limit, and those that wait to be let in, in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside: set[str] = set()
        self._queued: OrderedDict[str, None] = OrderedDict()

    def enter(self, key: str) -> bool:
        """Let a key in; False if there is no room: `leave` of another one will name it."""
        if key in self._inside:
            return True
        if len(self._inside) >= self._limit:
            self._queued[key] = None
            return False
        self._queued.pop(key, None)
        self._inside.add(key)
        return True

    def leave(self, key: str) -> str | None:
        """Have a key out, if it was in, and name one that may come now.

        To be called whenever a turn ends, also one that was not in: a key that was named may not want to come any more.
        """
        self._inside.discard(key)
        if self._queued and len(self._inside) < self._limit:
            return self._queued.popitem(last=False)[0]
        return None
