"""The story of a spawner's operation, for all who listen to it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from jupyterhub_vkprovider.dialects import Line
from jupyterhub_vkprovider.story import Event, Story


class Progress:
    """The story of the current operation, and a condition that wakes its listeners."""

    def __init__(self) -> None:
        self._story = Story()
        self._told = asyncio.Condition()

    @property
    def story(self) -> Story:
        """What the current operation has told so far."""
        return self._story

    async def clear(self) -> None:
        """Begin the story of the next operation; who listens goes on with that."""
        await self._become(self._story.cleared())

    async def add(self, line: Line) -> None:
        """Add a line; a percentage alone wakes nobody."""
        await self._become(self._story.after(line))

    async def end(self) -> None:
        """End the story of an operation that has no last line."""
        await self._become(self._story.ended())

    def forget(self) -> None:
        """Begin an empty story, without a word to those who listen: they get the lines of the next operation."""
        self._story = self._story.cleared()

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the story that the hub's database has."""
        self._story = self._story.restored(saved)

    async def listen(self) -> AsyncGenerator[Event, None]:
        """Yield the events of the current operation, the past ones first, until it has ended."""
        number, read = self._story.number, 0
        while True:
            async with self._told:
                await self._told.wait_for(
                    lambda: self._story.number != number or self._story.told > read or self._story.done  # noqa: B023 (awaited here)
                )
                story = self._story
            if story.number != number:
                number, read = story.number, 0
            for event in story.since(read):
                yield event
            read = story.told
            if story.done:
                return

    async def _become(self, story: Story) -> None:
        async with self._told:
            before, self._story = self._story, story
            if (story.number, story.told, story.done) != (before.number, before.told, before.done):
                self._told.notify_all()
