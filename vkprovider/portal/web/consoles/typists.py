"""Who types at the consoles of a replica, as far as its own sessions show it.

The provider lets one session type, and tells those whom a change concerns by a line in their output: who loses or gets
back the keyboard, and, when nobody types any more, who watches. A session of another program, or at another replica of
the portal, is known by that line alone, and has no name here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Final

from vkprovider.lablet import names
from vkprovider.platform.times import iso
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.frames import Mode
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening

_GIVES_WAY_S: Final = 5.0


class TypistNotice(Enum):
    """A line of the provider's about who types: its beginning."""

    TAKEN = names.CONSOLE_TAKEN
    RETURNED = names.CONSOLE_RETURNED
    LEFT = names.CONSOLE_LEFT

    @property
    def begins(self) -> bytes:
        """How it looks in the output."""
        return f"\r\n[{self.value}".encode()


_KEPT_BYTES: Final = max(len(notice.begins) for notice in TypistNotice) - 1


class NoticeReader:
    """Finds the provider's lines about who types in the output of one session."""

    def __init__(self) -> None:
        """Begin with no output."""
        self._rest = b""

    def feed(self, data: bytes) -> TypistNotice | None:
        """Return the last line that this output completes; None if there is none."""
        text = self._rest + data
        found, notice = max(((text.rfind(each.begins), each) for each in TypistNotice), key=lambda pair: pair[0])
        self._rest = text[max(found + 1, len(text) - _KEPT_BYTES) :]
        return None if found < 0 else notice


class BrowserSession:
    """A session of a browser at a console.

    Attributes:
        opening: What was asked for.
        began: When (Unix seconds), by hand: connecting once more is no new beginning.
        types: Whether it types; None until the provider has let it in.
        since: Since when it does, or does not (Unix seconds).
        left: When who typed has left, and nobody types, as the provider told who watches (Unix seconds); else 0.
        changed: Is set when somebody begins to type at the console, or ends.
        moved: Is set when the same person opens the console elsewhere.
        over: Is set when it has ended.
        heard: Whether it has got any output.
        notices: Reads what its output says of who types.
    """

    def __init__(self, opening: Opening, now: float) -> None:
        """Begin without a word of the provider's."""
        self.opening = opening
        self.began, self.since = opening.again or now, now
        self.types: bool | None = None
        self.left = 0.0
        self.changed, self.moved, self.over = (asyncio.Event() for _ in range(3))
        self.heard = False
        self.notices = NoticeReader()


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

    def feed(self, target: ConsoleTarget, session: BrowserSession, data: bytes) -> None:
        """Take note of what the output of a session says of who types."""
        said = session.notices.feed(data)
        if session.opening.mode is not Mode.WATCH:  # who is not refused types, until another session takes over
            types = session.types or not session.heard if said is None else said is TypistNotice.RETURNED
            self.note(target, session, types=types)
        elif said is TypistNotice.LEFT:
            self.note_left(session)
        session.heard = True

    def note(self, target: ConsoleTarget, session: BrowserSession, *, types: bool) -> None:
        """Take note that a session types, or does not any more."""
        if types is not session.types:
            session.types, session.since = types, self._wall()
            if types:
                for each in self._sessions.get(target, ()):
                    each.left = 0.0
            self._tell(target)

    def note_left(self, session: BrowserSession) -> None:
        """Take note that nobody types any more, as a session that watches reads it."""
        session.left = self._wall()
        session.changed.set()

    def message(self, target: ConsoleTarget, session: BrowserSession) -> str:
        """Return what the page of a session is told of who types; "" before the provider has let the session in."""
        if session.types:
            return frames.typist(you=True, who="", since=iso(int(session.since)))
        watches, other = session.opening.mode is Mode.WATCH, self.other(target, session)
        if session.types is None and not watches:
            return ""
        if other is not None:
            return frames.typist(you=False, who=other.opening.name, since=iso(int(other.since)))
        left = iso(int(session.left)) if session.left else ""
        return frames.typist(you=False, who="", since="" if watches else iso(int(session.since)), left=left)

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
