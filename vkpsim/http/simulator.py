"""The base of every simulator: listener, clock, access log, state file."""

import abc
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vkpsim.http.access_log import AccessLog
from vkpsim.http.faults import Fault, Faults
from vkpsim.http.listener import Listener
from vkpsim.http.store import Store


class Simulator(abc.ABC):
    """One simulator, listening as a context manager.

    Args:
        host: Address on which it listens.
        port: Port; 0 chooses a free one.
        tls: Context for HTTPS; None is HTTP.
        state: File that keeps its state over a restart.
        access_log: File for the access log.
        faults: Faults of requests in force from the start.
        seed: Seed of the faults.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        state: Path | None,
        access_log: Path | None,
        faults: Iterable[Fault],
        seed: int,
    ) -> None:
        self.listener = Listener(host, port, tls)
        self._anchor = time.time() - time.monotonic()
        self.log = AccessLog(access_log)
        self.faults = Faults(seed)
        for fault in faults:
            self.faults.add(fault, self.now())
        self._state = state
        self.store = Store(state, self._snapshot) if state else None

    def now(self) -> float:
        """Return the time: the wall clock's at the start, advanced by the monotonic clock."""
        return self._anchor + time.monotonic()

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return self.listener.url

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.listener.port

    def changed(self) -> None:
        """Mark the state as changed."""
        if self.store is not None:
            self.store.touch()

    async def __aenter__(self) -> Self:
        try:
            await self._open()
            if self.store is not None:
                await self.store.start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()
        await self.listener.close()
        if self.store is not None:
            await self.store.close()
        self.log.close()

    @abc.abstractmethod
    async def _open(self) -> None:
        """Restore the state, and listen."""

    @abc.abstractmethod
    async def _close(self) -> None:
        """Stop background work; called also after a failed `_open`."""

    @abc.abstractmethod
    def _snapshot(self) -> Any:
        """Return the state to be stored."""
