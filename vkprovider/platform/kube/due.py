"""Which keys of a queue are due, by priority, and how long each waits for its next run.

As in controller-runtime, what is only looked at again gives way to what changed; and here, what has been begun goes
before what begins. So a thousand new keys are finished one after the other instead of all of them late.
"""

import enum
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import Throttled, VkproviderError

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


_RUSH_S: Final = 0.1
"""A run that asks for the next one sooner than this is a rush."""
_RUSH_MAX_S: Final = 30.0
_RUSHES_QUIET_MAX: Final = 4
"""The number of rushes in a row that may be real work in small steps."""


class Pauses(Generic[K]):
    """The failures and the rushes of each key, counted in a row.

    Attributes:
        rushes_total: Rushes of all keys.
    """

    def __init__(self, backoff_s: tuple[float, float], rand: Callable[[], float], log: Any) -> None:
        """Create it.

        Args:
            backoff_s: First and greatest bound of the back-off.
            rand: A random number between 0 and 1.
            log: The queue's.
        """
        self.rushes_total = 0
        self._backoff_s = backoff_s
        self._rand = rand
        self._log = log
        self._failures: dict[K, int] = {}
        self._rushes: dict[K, int] = {}

    def forget(self, key: K) -> None:
        """Forget a key."""
        self._failures.pop(key, None)
        self._rushes.pop(key, None)

    def end_failures(self, key: K) -> None:
        """Note that a run did not fail."""
        self._failures.pop(key, None)

    def after_run(self, key: K, after_s: float | None) -> float | None:
        """Return how long `key` waits, which is longer each time in a row that it asks for its next run at once.

        A key whose turns change nothing but always ask for another one would keep a worker, and with it the loop, busy
        for good. `KeyedQueue.add` is not held back: it says that something changed.
        """
        self.end_failures(key)
        if after_s is None or after_s >= _RUSH_S:
            self._rushes.pop(key, None)
            return after_s
        self.rushes_total += 1
        count = self._rushes[key] = self._rushes.get(key, 0) + 1
        wait_s = delay_s(count, first_s=_RUSH_S, cap_s=_RUSH_MAX_S)  # without jitter: no other system is asked
        if count >= _RUSHES_QUIET_MAX and count & (count - 1) == 0:
            self._log.warning("a key keeps asking for its next turn at once", key=key, times=count, wait_s=wait_s)
        return wait_s

    def after_failure(self, key: K, error: BaseException) -> float:
        """Log a failure and return the seconds to wait.

        A key that was added meanwhile waits as long: its own writes may have added it, and it would never pause.
        """
        count = self._failures[key] = self._failures.get(key, 0) + 1
        first_s, cap_s = self._backoff_s
        wait_s = delay_s(count, first_s=first_s, cap_s=cap_s, dice=self._rand(), floor=0)
        if isinstance(error, Throttled):
            wait_s += error.after_s
        if count & (count - 1) == 0:  # the first time and each doubling
            expected = isinstance(error, VkproviderError)
            self._log.warning(
                "reconcile failed; tries again",
                key=key,
                failures=count,
                wait_s=round(wait_s, 3),
                error=str(error) if expected else repr(error),
                exc_info=None if expected else error,
            )
        return wait_s
