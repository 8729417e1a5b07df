"""An open WebSocket: messages wait in a bounded queue; and what a caller says first on it."""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import aiohttp
import msgspec
from msgspec import Meta, Struct

from tunnels.link.carrier import WORD
from tunnels.wire import FRAME_BYTES_MAX

if TYPE_CHECKING:
    from aiohttp import web  # agents do without the server, which is 2 MB


PATH: Final = "/tunnel"
"""The path at which callers accept agents."""
CALLERS_MAX: Final = 64

Url = Annotated[str, Meta(max_length=256, pattern=r"^(https?://[!-~]+)?\Z")]
Name = Annotated[str, Meta(pattern=rf"^({WORD.pattern})\Z")]


class Welcome(Struct, frozen=True):
    """Who speaks, and which callers there are.

    Attributes:
        caller: The identity of the caller that speaks.
        callers: Where each caller can be dialled, by identity; empty if only a proxy leads there.
    """

    caller: Name
    callers: Annotated[dict[Name, Url], Meta(max_length=CALLERS_MAX)] = {}


_DECODER: Final = msgspec.json.Decoder(Welcome)


def encode_welcome(welcome: Welcome) -> str:
    """Return the text of a welcome."""
    return msgspec.json.encode(welcome).decode()


def decode_welcome(text: str) -> Welcome | None:
    """Return the welcome in a text; None if it holds none.

    >>> decode('{"caller": "replica-1", "callers": {"replica-1": "https://192.0.2.1:8443"}}')
    Welcome(caller='replica-1', callers={'replica-1': 'https://192.0.2.1:8443'})
    """
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


QUEUE_BYTES_MAX: Final = 8 * 2**20
"""Messages that wait for a slow peer; further ones are dropped, and the protocol repeats them."""
MESSAGE_BYTES_MAX: Final = FRAME_BYTES_MAX + 2048
"""A message that is a little too long is refused and counted as a frame; a longer one ends the WebSocket."""
PING_S: Final = 20.0
"""The interval of pings; a peer that does not answer one within half of it is gone."""
PART_S: Final = 2.0
"""How long the last messages and the close of a WebSocket may take."""

WebSocket: TypeAlias = "web.WebSocketResponse | aiohttp.ClientWebSocketResponse"


class Socket:
    """Messages over one WebSocket.

    Args:
        websocket: The WebSocket, open.
    """

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket: Final = websocket
        self._queue: Final[deque[bytes | str]] = deque()
        self._bytes = 0
        self._filled: Final = asyncio.Event()
        self._ending = False
        self._ended: Final = asyncio.Event()

    def send(self, message: bytes | str) -> bool:
        """Queue a message; return False if there is no room, or the WebSocket ends."""
        if self._ending or self._websocket.closed or self._bytes + len(message) > QUEUE_BYTES_MAX:
            return False
        self._queue.append(message)
        self._bytes += len(message)
        self._filled.set()
        return True

    def end(self) -> None:
        """Let `run` return when what is queued has been sent."""
        self._ending = True
        self._filled.set()

    async def run(self, received: Callable[[bytes | str], None]) -> str:
        """Exchange messages until either side ends it, and return why it ended.

        Args:
            received: Called with every message; it must not block or raise.
        """
        writing = asyncio.create_task(self._write(), name="messages to a peer")
        fault = ""
        try:
            async for message in self._websocket:
                if message.type is aiohttp.WSMsgType.ERROR:  # a message that is too long, a pong that did not come
                    fault = f", {message.data}"
                    break
                if message.type in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}:
                    received(message.data)
        except (OSError, aiohttp.ClientError) as error:  # a ping whose pong cannot leave any more
            fault = f", {error}"
        finally:
            self._ending = True
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            await self._websocket.close()
            self._ended.set()
        return f"close code {self._websocket.close_code}{fault}"

    async def part(self) -> None:
        """End it, and wait for a moment until `run` has returned; a peer that does not read by then is cut off."""
        self.end()
        try:
            async with asyncio.timeout(PART_S):
                await self._ended.wait()
        except TimeoutError:
            if (connection := self._websocket.get_extra_info("socket")) is not None:
                with (
                    contextlib.suppress(OSError),  # it ends just now
                    socket.fromfd(connection.fileno(), connection.family, connection.type) as own,
                ):
                    own.shutdown(socket.SHUT_RDWR)  # uvloop's refuses

    async def _write(self) -> None:
        """Send what is queued, then what comes; after `end`, close the WebSocket, so that the reader ends, too."""
        with contextlib.suppress(OSError, aiohttp.ClientError):  # the reader sees the same loss
            while self._queue or not self._ending:
                while self._queue:
                    message = self._queue.popleft()
                    self._bytes -= len(message)
                    if isinstance(message, str):
                        await self._websocket.send_str(message)
                    else:
                        await self._websocket.send_bytes(message)
                self._filled.clear()
                if not self._ending:
                    await self._filled.wait()
            await self._websocket.close()
