"""The ends of sessions: what is open of a session ends with it, though its token may be valid for longer."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from vkprovider.portal.web.visitor import Visitor


class _Session(NamedTuple):
    """A session of which something is open.

    Attributes:
        holders: For each thing that is open, the events that are set when it is to end.
        timer: Ends them all at once.
    """

    holders: set[tuple[asyncio.Event, ...]]
    timer: asyncio.TimerHandle


class Sessions:
    """The sessions of which something is open at this replica."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin with nothing open; `wall` returns Unix seconds."""
        self._wall = wall
        self._open: dict[str, _Session] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    @contextmanager
    def during(self, visitor: Visitor, *events: asyncio.Event) -> Iterator[None]:
        """Have events be set when the session of a visitor ends; one that an ingress names has none."""
        if visitor.ends_at is None:
            yield
            return
        session = self._open.get(visitor.session) or self._begin(visitor.session, visitor.ends_at)
        session.holders.add(events)
        try:
            yield
        finally:
            session.holders.discard(events)
            if not session.holders:
                session.timer.cancel()
                if self._open.get(visitor.session) is session:
                    del self._open[visitor.session]

    def end(self, session: str) -> None:
        """End what is open of a session."""
        ended = self._open.pop(session, None)
        if ended is None:
            return
        ended.timer.cancel()
        for events in ended.holders:
            for event in events:
                event.set()

    def _begin(self, session: str, ends_at: float) -> _Session:
        left_s = max(0.0, ends_at - self._wall())
        timer = asyncio.get_running_loop().call_later(left_s, self.end, session)
        self._open[session] = begun = _Session(set(), timer)
        return begun
