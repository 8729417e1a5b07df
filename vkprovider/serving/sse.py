"""Server-sent events: a feed of events, and any number of clients that read it, each at its own speed.

A feed keeps its last events. A client that comes back says which event it saw last (`Last-Event-ID`, as browsers do by
themselves) and gets those that follow. Where that event is no longer known, or a client falls so far behind that events
it lacks are gone, it gets an event `reset`: it should forget what it knows, and then gets all that are kept. So nothing
is queued per client.

A quiet stream carries a comment every few seconds, which keeps proxies from ending it and finds clients that are gone.
"""

import asyncio
import re
import socket
from collections import deque
from contextlib import suppress
from typing import Final, Self

from aiohttp import web

from vkprovider.serving.connections import STUCK_S, uncount

HEARTBEAT_S: Final = 15.0
"""The pause between two comments of a quiet stream; proxies end a stream that is silent for 30 to 60 s."""
EVENTS_MAX: Final = 1000
CLIENTS_MAX: Final = 512
RESET: Final = "reset"
"""The kind of the event that tells a client to forget what it knows."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would pass events on in lumps
}
_COMMENT: Final = b":\n"
"""A comment, without the blank line that makes some clients, such as httpx-sse, see an event without data."""
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


class EventStream:
    """An open stream to one client."""

    def __init__(self, answer: web.StreamResponse) -> None:
        """Take over an answer that `begin` has prepared."""
        self.answer = answer

    @classmethod
    async def begin(cls, request: web.Request, *, stuck_s: float = STUCK_S) -> Self:
        """Begin to answer a request with a stream.

        The connection does not count against the limit of its server. Who the client is must be known.

        Args:
            request: The client's.
            stuck_s: How long what is sent may wait for its reader, or for the acknowledgement of the client's host.

        Raises:
            ConnectionResetError: The client has left.
        """
        answer = web.StreamResponse(headers=_HEADERS)
        answer.force_close()  # no other request may come on a connection that does not count
        uncount(request, stuck_s=stuck_s)
        _expect_acknowledgements(request, stuck_s)
        await answer.prepare(request)
        await answer.write(_COMMENT)  # with it the head is sent
        return cls(answer)

    async def send(self, frames: bytes) -> None:
        """Send events, each the result of `frame`.

        Raises:
            ConnectionResetError: The client has left; also of our own connection when its reader is stuck.
        """
        await self.answer.write(frames)

    async def wait(self, changed: asyncio.Event, within_s: float = HEARTBEAT_S) -> bool:
        """Wait for news; after a while without any, send a comment. Return whether there are news.

        Raises:
            ConnectionResetError: The client has left.
        """
        try:
            async with asyncio.timeout(within_s):
                await changed.wait()
        except TimeoutError:
            await self.answer.write(_COMMENT)
            return False
        return True


class FeedFullError(Exception):
    """A feed has as many clients as it may have."""


class Feed:
    """Events in their order, and the streams of those who read them."""

    def __init__(self, *, events_max: int = EVENTS_MAX, clients_max: int = CLIENTS_MAX) -> None:
        """Create an empty feed.

        Args:
            events_max: How many events are kept for clients that come back or are slow.
            clients_max: How many clients may read it at once.
        """
        self._kept: deque[tuple[str, bytes]] = deque(maxlen=events_max)
        self._clients_max = clients_max
        self._published = 0
        self._clients = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Count the clients."""
        return self._clients

    def publish(self, id_: str, data: str, kind: str = "message") -> None:
        """Append an event.

        Args:
            id_: What a client that comes back names it by; unique in this feed.
            data: Any text; a client sees each end of a line in it as LF.
            kind: Its name at the client.

        Raises:
            ValueError: `id_` or `kind` contains the end of a line, or NUL.
        """
        if {"\r", "\n", "\0"} & set(id_ + kind):
            raise ValueError(f"an event {kind!r} with the id {id_!r} is more than a line")
        self._kept.append((id_, frame(id_, data, kind)))
        self._published += 1
        self._wake()

    def close(self) -> None:
        """End all streams, and those that begin later at once."""
        self._closed = True
        self._wake()

    async def serve(
        self, request: web.Request, *, heartbeat_s: float = HEARTBEAT_S, stuck_s: float = STUCK_S
    ) -> web.StreamResponse:
        """Answer a request with a stream of the events, until its client leaves or the feed is closed.

        Args:
            request: The client's; see `EventStream.begin`.
            heartbeat_s: The pause between two comments while there are no events.
            stuck_s: How long what is sent may wait for its reader, or for the acknowledgement of the client's host.

        Raises:
            FeedFullError: There are too many clients; nothing is sent.
        """
        if self._clients >= self._clients_max:
            raise FeedFullError(f"{self._clients} clients read already")
        self._clients += 1
        try:
            stream = await EventStream.begin(request, stuck_s=stuck_s)
            with suppress(ConnectionResetError):
                await self._send(stream, self._after(request.headers.get("Last-Event-ID", "")), heartbeat_s)
        except ConnectionResetError:
            return web.Response()  # there is nobody to read it
        finally:
            self._clients -= 1
        return stream.answer

    async def _send(self, stream: EventStream, position: int, heartbeat_s: float) -> None:
        """Send what follows a position, for ever.

        Raises:
            ConnectionResetError: The client has left.
        """
        while not self._closed:
            changed, oldest = self._changed, self._published - len(self._kept)
            if position < oldest:
                position = oldest
                await stream.send(frame("", "", RESET))
            elif position < self._published:
                _, kept = self._kept[position - oldest]
                position += 1
                await stream.send(kept)
            else:
                await stream.wait(changed, heartbeat_s)

    def _after(self, last_id: str) -> int:
        """Return the position of the event after one; of the first that is kept without an id; -1 if it is unknown."""
        if not last_id:
            return self._published - len(self._kept)
        back = next((back for back, (id_, _) in enumerate(reversed(self._kept)) if id_ == last_id), None)
        return self._published - back if back is not None else -1

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def frame(id_: str, data: str, kind: str) -> bytes:
    """Return an event as it is sent; without an id, the client keeps that of the event before."""
    lines = [f"id: {id_}"] if id_ else []
    lines += [f"event: {kind}", *(f"data: {line}" for line in _LINE_END.split(data))]
    return ("\n".join(lines) + "\n\n").encode()


def _expect_acknowledgements(request: web.Request, within_s: float) -> None:
    """Have the kernel end a connection whose other host does not acknowledge what was sent, as after a loss of power.

    A few bytes fit into buffers for hours, so that no write would ever wait for them.
    """
    sock = request.get_extra_info("socket")
    if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(within_s * 1000))
