"""Who types at the consoles of a replica, as far as its own sessions show it.

The provider lets one session type, and tells those whom a change concerns by a line in their output. A session of
another program, or at another replica of the portal, is known by that line alone, and has no name here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from vkprovider.lablet import names
from vkprovider.platform.times import iso
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.frames import Mode
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening

_GIVES_WAY_S: Final = 5.0
_TAKEN, _RETURNED = (f"\r\n[{words}".encode() for words in (names.CONSOLE_TAKEN, names.CONSOLE_RETURNED))
_KEPT_BYTES: Final = max(len(_TAKEN), len(_RETURNED)) - 1


class NoticeReader:
    """Finds the provider's lines about who types in the output of one session."""

    def __init__(self) -> None:
        """Begin with no output."""
        self._rest = b""

    def feed(self, data: bytes) -> bool | None:
        """Return whether the session types after this output; None if no line says so."""
        text = self._rest + data
        taken, returned = text.rfind(_TAKEN), text.rfind(_RETURNED)
        found = max(taken, returned)
        self._rest = text[max(found + 1, len(text) - _KEPT_BYTES) :]
        return None if found < 0 else returned > taken


class BrowserSession:
    """A session of a browser at a console.

    Attributes:
        opening: What was asked for.
        began: When (Unix seconds), by hand: connecting once more is no new beginning.
        types: Whether it types; None until the provider has let it in.
        since: Since when it does, or does not (Unix seconds).
        changed: Is set when somebody begins to type at the console, or ends.
        moved: Is set when the same person opens the console elsewhere.
        over: Is set when it has ended.
    """

    def __init__(self, opening: Opening, now: float) -> None:
        """Begin without a word of the provider's."""
        self.opening = opening
        self.began, self.since = opening.again or now, now
        self.types: bool | None = None
        self.changed, self.moved, self.over = (asyncio.Event() for _ in range(3))


class Typists:
    """The sessions of a replica, by their consoles."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin with none; `wall` returns Unix seconds."""
        self._wall = wall
        self._sessions: dict[ConsoleTarget, list[BrowserSession]] = {}

    def has_moved(self, target: ConsoleTarget, opening: Opening) -> bool:
        """Return whether a page that connects once more by itself was followed by another one meanwhile."""
        own = self._own(target, opening)
        return bool(opening.again) and own is not None and own.began > opening.again

    @contextlib.asynccontextmanager
    async def session(self, target: ConsoleTarget, opening: Opening) -> AsyncIterator[BrowserSession]:
        """Be at a console while the block runs; one's own earlier session, maybe of a broken connection, gives way."""
        here = BrowserSession(opening, self._wall())
        earlier = None if opening.mode is Mode.WATCH else self._own(target, opening)
        sessions = self._sessions.setdefault(target, [])
        sessions.append(here)
        if opening.mode is Mode.WATCH:
            here.changed.set()
        try:
            if earlier is not None:
                earlier.moved.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GIVES_WAY_S):
                        await earlier.over.wait()
            yield here
        finally:
            here.over.set()
            sessions.remove(here)
            if not sessions and self._sessions.get(target) is sessions:
                del self._sessions[target]
            self._tell(target)

    def note(self, target: ConsoleTarget, session: BrowserSession, *, types: bool) -> None:
        """Take note that a session types, or does not any more."""
        if types is not session.types:
            session.types, session.since = types, self._wall()
            self._tell(target)

    def message(self, target: ConsoleTarget, session: BrowserSession) -> str:
        """Return what the page of a session is told of who types; "" before the provider has let the session in."""
        if session.types:
            return frames.typist(you=True, who="", since=iso(int(session.since)))
        watches, other = session.opening.mode is Mode.WATCH, self.other(target, session)
        if session.types is None and not watches:
            return ""
        if other is not None:
            return frames.typist(you=False, who=other.opening.name, since=iso(int(other.since)))
        return frames.typist(you=False, who="", since="" if watches else iso(int(session.since)))

    def other(self, target: ConsoleTarget, session: BrowserSession) -> BrowserSession | None:
        """Return the other session that types at a console; None if this replica knows none."""
        typing = (each for each in self._sessions.get(target, ()) if each.types and each is not session)
        return max(typing, key=lambda each: each.since, default=None)

    def _own(self, target: ConsoleTarget, opening: Opening) -> BrowserSession | None:
        """Return the last session of a person who wants to type."""
        found = [
            each
            for each in self._sessions.get(target, ())
            if each.opening.caller == opening.caller and each.opening.mode is not Mode.WATCH
        ]
        return found[-1] if found else None

    def _tell(self, target: ConsoleTarget) -> None:
        for each in self._sessions.get(target, ()):
            each.changed.set()
