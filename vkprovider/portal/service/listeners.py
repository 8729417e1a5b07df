"""Events for those who wait for news about something, by its key."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Listeners(Generic[K]):
    """Who waits for news, by key."""

    def __init__(self) -> None:
        """Begin without anybody."""
        self._events: dict[K, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        """Count those who wait."""
        return sum(map(len, self._events.values()))

    @asynccontextmanager
    async def listen(self, key: K) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set whenever there are news about a key; the caller clears it."""
        news = asyncio.Event()
        self._events.setdefault(key, set()).add(news)
        try:
            yield news
        finally:
            its = self._events.get(key, set())
            its.discard(news)
            if not its:
                self._events.pop(key, None)

    def tell(self, key: K) -> None:
        """Set the events of a key."""
        for news in self._events.get(key, ()):
            news.set()
