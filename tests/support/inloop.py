"""A program that runs in the test's own loop, and how it ends."""

import abc
import asyncio
from dataclasses import dataclass

from tests.support.faultyapi import FaultyApi


@dataclass
class InLoop(abc.ABC):
    """A replica that runs in this loop, behind a proxy of its own."""

    api: FaultyApi
    stop_event: asyncio.Event
    task: asyncio.Task[None]

    async def stop(self) -> None:
        """End it as SIGTERM does: it hands over what it has."""
        self.stop_event.set()
        await self.task
        await self.close()

    async def crash(self) -> None:
        """End it as SIGKILL does, as far as others can see: nothing that it still says reaches the API server."""
        self.api.cut()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.close()

    @abc.abstractmethod
    async def close(self) -> None:
        """Close the connections that it has opened."""
