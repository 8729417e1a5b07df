"""Server-sent events: an open stream to one client, and an event as it is sent.

A quiet stream carries a comment every few seconds, which keeps proxies from ending it and finds clients that are gone.
"""

import asyncio
import re
import socket
from typing import Final, Self

from aiohttp import web

from vkprovider.platform.http.connections import STUCK_S, uncount

HEARTBEAT_S: Final = 15.0
"""The pause between two comments of a quiet stream; proxies end a stream that is silent for 30 to 60 s."""
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
