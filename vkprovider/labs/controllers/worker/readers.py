"""Connections that only read, to workers for which other replicas act.

CML limits logins, and the owner of a worker needs its own; so one connection serves all downloads from a worker, until
none came for a while.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from vkprovider.cml.spi import Labs
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.platform.errors import OutsideError

IDLE_S: Final = 60.0
_OPEN_MAX: Final = 8
_AT_ONCE_MAX: Final = 4
_SWEEP_S: Final = 10.0


@dataclass(slots=True)
class _Reader:
    spec: CMLWorkerSpec
    labs: Labs
    users: int = 0
    used_at: float = 0.0


class Readers:
    """The connections, by the worker's name, the one that was used last at the end."""

    def __init__(
        self, connect: Callable[[str, CMLWorkerSpec], Labs], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Open nothing yet.

        Args:
            connect: Opens a connection to a worker, by its name; raises `InputError` if the CMLWorker is unusable.
            now: A clock.
        """
        self._connect = connect
        self._now = now
        self._open: dict[str, _Reader] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE_MAX)

    @asynccontextmanager
    async def labs(self, worker: str, spec: CMLWorkerSpec) -> AsyncIterator[Labs]:
        """Lend the connection to a worker; a changed spec opens another one.

        Raises:
            InputError: The CMLWorker is unusable.
        """
        async with self._gate:
            reader = self._open.pop(worker, None)
            if reader is not None and reader.spec != spec:
                await self._close(reader)
                reader = None
            if reader is None:
                reader = _Reader(spec, self._connect(worker, spec))
            self._open[worker] = reader
            reader.users += 1
            try:
                yield reader.labs
            finally:
                reader.users -= 1
                reader.used_at = self._now()
                if self._open.get(worker) is not reader:  # replaced meanwhile
                    await self._close(reader)
                await self._close_surplus()

    async def run(self) -> None:
        """Close idle connections from time to time; when cancelled, all of them."""
        try:
            while True:
                await asyncio.sleep(_SWEEP_S)
                await self.sweep()
        finally:
            for worker in [*self._open]:
                await self._close(self._open.pop(worker))

    async def sweep(self) -> None:
        """Close the connections that were not used for a while."""
        for worker, reader in [*self._open.items()]:
            if not reader.users and reader.used_at + IDLE_S <= self._now():
                del self._open[worker]
                await self._close(reader)

    async def _close_surplus(self) -> None:
        idle = [worker for worker, reader in self._open.items() if not reader.users]
        for worker in idle[: max(0, len(self._open) - _OPEN_MAX)]:
            await self._close(self._open.pop(worker))

    @staticmethod
    async def _close(reader: _Reader) -> None:
        """Log out, unless the connection is in use: its last user closes it then."""
        if not reader.users:
            with suppress(OutsideError):
                await reader.labs.close()
