"""The caller's end: WebSockets of agents that have dialled in."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from tunnels import wire
from tunnels.link.carrier import ALL, Address, CarrierInbox
from tunnels.websocket.socket import CALLERS_MAX, MESSAGE_BYTES_MAX, PART_S, PING_S, Socket, Welcome, encode_welcome
from tunnels.wire import Goodbye

SOCKETS_MAX: Final = 4000
"""The most sockets of all agents together."""
SOCKETS_OF_A_NAME_MAX: Final = 8
"""An agent that is restarted again and again leaves some behind until their pings fail."""
KEPT_S: Final = 10.0
"""An agent says within this that it keeps a WebSocket."""
LOOK_S: Final = 1.0
"""How often the callers are compared with what agents were told of them."""

_LOST: Final = wire.encode(Goodbye("its connection was lost", lost=True))
_LOG: Final = logging.getLogger("tunnels")


class NoRoomError(Exception):
    """No WebSocket can be accepted now; the message says why."""


@dataclass(eq=False)
class _Guest:
    """An open WebSocket of an agent.

    Attributes:
        address: Of the agent.
        socket: The WebSocket.
        told: The last welcome that was sent.
        is_kept: Whether the agent has said hello on it.
    """

    address: Address
    socket: Socket
    told: str = ""
    is_kept: bool = False


class Listening:
    """A `Carrier` to the agents that have dialled in; `accept` is called for each of them.

    Args:
        caller: The identity of this caller.
        callers: Returns where each caller can be dialled, by identity; empty if only a proxy leads there.
    """

    def __init__(self, caller: str, callers: Callable[[], Mapping[str, str]]) -> None:
        self._caller: Final = caller
        self._callers: Final = callers
        self._inbox: CarrierInbox | None = None
        self._guests: Final[set[_Guest]] = set()
        self._kept: Final[dict[str, _Guest]] = {}
        self._noted: Final[set[str]] = set()

    async def run(self, inbox: CarrierInbox) -> None:
        """Pass frames on, and tell agents which callers there are, until cancelled; then close all WebSockets."""
        self._inbox = inbox
        try:
            while True:
                text = self._welcome()
                for guest in self._guests:
                    self._tell(guest, text)
                await asyncio.sleep(LOOK_S)
        finally:
            self._inbox = None
            await asyncio.gather(*(guest.socket.part() for guest in self._guests))

    def send(self, peer: str, frame: bytes) -> bool:
        """Send a frame to an agent, or to all; see `Carrier`."""
        if peer == ALL:
            sent = [guest.socket.send(frame) for guest in self._kept.values()]
            return any(sent)
        guest = self._kept.get(peer)
        return guest is not None and guest.socket.send(frame)

    async def accept(self, request: web.Request, address: Address) -> web.WebSocketResponse:
        """Handle the request of an agent that dials in, until its WebSocket ends.

        Args:
            request: `GET` with the headers of a WebSocket's handshake.
            address: Of the agent; the server has made sure that the request may bear its name.

        Raises:
            NoRoomError: There are too many WebSockets, or this caller does not run.
            aiohttp.web.HTTPException: The request is not the handshake of a WebSocket.
        """
        inbox = self._inbox
        if inbox is None:
            raise NoRoomError("this caller accepts no agents now")
        if len(self._guests) >= SOCKETS_MAX:
            raise NoRoomError(f"{SOCKETS_MAX} agents are connected")
        if sum(guest.address.name == address.name for guest in self._guests) >= SOCKETS_OF_A_NAME_MAX:
            raise NoRoomError(f"{SOCKETS_OF_A_NAME_MAX} agents {address.name} are connected")
        websocket = web.WebSocketResponse(
            heartbeat=PING_S, timeout=PART_S, max_msg_size=MESSAGE_BYTES_MAX, compress=False
        )
        await websocket.prepare(request)
        if self._inbox is None:
            await websocket.close()
            return websocket
        guest = _Guest(address, Socket(websocket))
        self._guests.add(guest)
        self._tell(guest, self._welcome())
        patience = asyncio.get_running_loop().call_later(KEPT_S, self._lose_patience, guest)
        try:
            why = await guest.socket.run(partial(self._received, guest, inbox))
            self._note(guest, why)
        finally:
            patience.cancel()
            self._leave(guest, inbox)
        return websocket

    def _received(self, guest: _Guest, inbox: CarrierInbox, message: bytes | str) -> None:
        peer = str(guest.address)
        if not guest.is_kept:
            guest.is_kept = True
            earlier = self._kept.get(peer)
            self._kept[peer] = guest
            if earlier is not None:
                earlier.socket.end()
            inbox.connected(peer)
        if self._kept.get(peer) is guest:
            inbox.received(peer, message.encode(errors="replace") if isinstance(message, str) else message)

    def _leave(self, guest: _Guest, inbox: CarrierInbox) -> None:
        """Forget a WebSocket; if the agent has no other one, it may be back in a moment, or not."""
        peer = str(guest.address)
        self._guests.discard(guest)
        if self._kept.get(peer) is guest:
            del self._kept[peer]
            inbox.received(peer, _LOST)
            inbox.disconnected(peer)

    def _lose_patience(self, guest: _Guest) -> None:
        if not guest.is_kept:
            guest.socket.end()

    def _tell(self, guest: _Guest, text: str) -> None:
        if guest.told != text and guest.socket.send(text):
            guest.told = text

    def _welcome(self) -> str:
        callers = dict(sorted(self._callers().items())[:CALLERS_MAX])
        return encode_welcome(Welcome(self._caller, callers))

    def _note(self, guest: _Guest, why: str) -> None:
        """Log why a WebSocket has ended: the first one of each agent for people, further ones for debugging."""
        name = guest.address.name
        level = logging.DEBUG if name in self._noted else logging.INFO
        if len(self._noted) < SOCKETS_MAX:
            self._noted.add(name)
        _LOG.log(level, "tunnel: the WebSocket of %s has ended: %s", guest.address, why)
