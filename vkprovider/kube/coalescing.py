"""Take answers together that would come one by one.

A process that waits is woken by every answer, and a wake-up with cold caches costs more than what it is for. Network
cards coalesce interrupts for that reason; here the loop rests for a moment while many answers are awaited, and then
finds several of them, with the news on its watches. The rest blocks the loop on purpose: whatever did not would be
woken by the first answer.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

_MANY: Final = 20
_REST_S: Final = 0.004
_WORK_S: Final = 0.001  # at least as much between two rests
_LONG_WORK_S: Final = 0.005  # what comes meanwhile gathers without a rest
_FRUITLESS_MAX: Final = 10  # rounds in a row without an answer


class Coalescing:
    """Counts requests that await their answer, and has the loop rest while they are many.

    Around each request: `with coalescing: ...`. While they are few, or nobody answers, there is neither a rest nor a
    timer.
    """

    def __init__(
        self, *, now: Callable[[], float] = time.monotonic, rest: Callable[[float], None] = time.sleep
    ) -> None:
        self._now = now
        self._rest = rest
        self._awaited = 0
        self._fruitless = 0
        self._armed = False
        self._rested_at_s = 0.0

    def __enter__(self) -> None:
        """Count a request that is sent."""
        self._awaited += 1
        if self._awaited >= _MANY and not self._armed:
            self._armed = True
            self._fruitless = 0
            self._rested_at_s = self._now()
            asyncio.get_running_loop().call_later(_WORK_S, self._pause)

    def __exit__(self, *_: object) -> None:
        """Count it off: it is answered, or given up."""
        self._awaited -= 1
        self._fruitless = 0

    def _pause(self) -> None:
        self._fruitless += 1
        if self._awaited < _MANY or self._fruitless > _FRUITLESS_MAX:
            self._armed = False
            return
        loop = asyncio.get_running_loop()
        if self._now() - self._rested_at_s > _LONG_WORK_S:
            loop.call_later(_WORK_S, self._pause)
        else:
            loop.call_later(_REST_S + _WORK_S, self._pause)  # first, for uvloop's clock stands still while we rest
            self._rest(_REST_S)
        self._rested_at_s = self._now()
