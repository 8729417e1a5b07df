"""The agent's end: dials every caller, and dials again after every loss."""

import asyncio
import logging
import os
import random
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import aiohttp

from tunnels import wire
from tunnels.direct import no_tls, why
from tunnels.link.carrier import ALL, Address, CarrierInbox
from tunnels.outgoing import open_session, proxy_of
from tunnels.websocket.socket import MESSAGE_BYTES_MAX, PART_S, PATH, PING_S, Socket, Welcome, decode_welcome
from tunnels.wire import Goodbye

PAUSE_S: Final = 0.5
"""The pause before the first new attempt at an address; each further one is up to twice as long."""
PAUSE_S_MAX: Final = 5.0
TRIES: Final = 4
"""Attempts in vain at a caller's own address, after which it is looked for at the first addresses, too."""
ALWAYS: Final = 12
"""Attempts that led to a caller that is reached already, after which the address will hardly lead to another one."""
OPEN_S: Final = 10.0
"""The deadline for opening a WebSocket and for the caller's greeting."""
LOOK_S: Final = 0.25

_FAREWELL: Final = wire.encode(Goodbye("shut down"))
_LOG: Final = logging.getLogger("tunnels")
_REFUSED: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class DialCredentials:
    """By what an agent and the callers know each other.

    Attributes:
        token: The bearer token; none if empty.
        tls: How certificates of callers are verified, with the agent's own; None: by the system's authorities.
    """

    token: str = ""
    tls: ssl.SSLContext | None = None


class _DialError(Exception):
    """An address does not lead to a caller; the message says why."""


@dataclass
class _Target:
    """An address that is dialled.

    Attributes:
        tries: How often it was dialled since it last led to a caller that was needed.
        due_s: When it is dialled next.
        trouble: What was wrong last.
        dialling: The attempt.
    """

    tries: int = 0
    due_s: float = 0.0
    trouble: str = ""
    dialling: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it is being dialled."""
        return self.dialling is not None and not self.dialling.done()


class Dialing:
    """A `Carrier` to all callers.

    Args:
        urls: Where to dial first, `https://…` or `http://…`: one caller, several, or a proxy in front of them.
        agent: This agent.
        credentials: Returns by what callers know it; asked before every attempt, so that they can be rotated.
        authorities: Where those stand that may sign the certificates of callers, for messages.
    """

    def __init__(
        self,
        urls: Sequence[str],
        agent: Address,
        credentials: Callable[[], DialCredentials],
        *,
        authorities: str = "the trusted certificates",
    ) -> None:
        self._urls: Final = tuple(url.rstrip("/") for url in urls)
        self._encrypted: Final = any(url.startswith("https:") for url in self._urls)
        self._agent: Final = agent
        self._credentials: Final = credentials
        self._authorities: Final = authorities
        self._targets: Final[dict[str, _Target]] = {}
        self._sockets: Final[dict[str, Socket]] = {}
        self._using: Final[set[asyncio.Task[None]]] = set()
        self._said: dict[str, Mapping[str, str]] = {}

    @property
    def reached(self) -> frozenset[str]:
        """The identities of the callers to which there is a WebSocket."""
        return frozenset(self._sockets)

    async def run(self, inbox: CarrierInbox) -> None:
        """Keep a WebSocket to every caller, until cancelled; then say goodbye to all."""
        loop = asyncio.get_running_loop()
        async with open_session(aiohttp.TCPConnector(limit=0), connect_s_max=OPEN_S) as session:
            try:
                while True:
                    wanted = self._wanted()
                    for url in wanted:
                        target = self._targets.setdefault(url, _Target())
                        if not target.is_busy and loop.time() >= target.due_s:
                            target.dialling = asyncio.create_task(self._dial(session, url, target, inbox))
                    for url in [url for url, target in self._targets.items() if not target.is_busy]:
                        if url not in wanted:
                            del self._targets[url]
                    await asyncio.sleep(LOOK_S)
            finally:
                await self._part()

    def send(self, peer: str, frame: bytes) -> bool:
        """Send a frame to a caller, or to all; see `Carrier`."""
        if peer == ALL:
            sent = [socket.send(frame) for socket in self._sockets.values()]
            return any(sent)
        socket = self._sockets.get(peer)
        return socket is not None and socket.send(frame)

    # ------------------------------------------------------------------------------------------ whom to dial

    def _wanted(self) -> set[str]:
        """Return the addresses that may lead to a caller to which there is no WebSocket."""
        callers = {caller: url for said in self._said.values() for caller, url in said.items()}
        missing = {caller: url for caller, url in callers.items() if caller not in self._sockets}
        own = {url for url in missing.values() if url}
        in_vain = any((target := self._targets.get(url)) is not None and target.tries >= TRIES for url in own)
        entries_needed = not self._sockets or in_vain or not all(missing.values())
        return own | set(self._urls) if entries_needed else own

    def _learn(self, said: Welcome) -> None:
        """Note which callers there are, by the word of all that are reached."""
        usable = {caller: url if self._may_dial(url) else "" for caller, url in said.callers.items()}
        self._said = {caller: known for caller, known in self._said.items() if caller in self._sockets}
        self._said[said.caller] = usable

    def _may_dial(self, url: str) -> bool:
        """Return whether the token may go to an address: never in plain text if the first address is encrypted."""
        return url.startswith("https:") or not self._encrypted

    # ------------------------------------------------------------------------------------------ one WebSocket

    async def _dial(self, session: aiohttp.ClientSession, url: str, target: _Target, inbox: CarrierInbox) -> None:
        """Dial an address once, and use the WebSocket if it leads to a caller that was not reached."""
        try:
            websocket, said = await self._open(session, url)
        except (_DialError, aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: not a host's name
            self._failed(url, target, self._trouble(error), logging.WARNING)
            return
        if said.caller in self._sockets:
            await websocket.close()
            self._failed(url, target, *self._known_already(said.caller, target))
            return
        target.tries, target.trouble = 0, ""
        target.due_s = asyncio.get_running_loop().time() + random.uniform(PAUSE_S, 2 * PAUSE_S)
        _LOG.info("tunnel: %s: connected to %s", url, said.caller)
        socket = self._sockets[said.caller] = Socket(websocket)
        task = asyncio.create_task(self._use(socket, said, inbox), name=f"frames of {said.caller}")
        self._using.add(task)
        task.add_done_callback(self._using.discard)

    def _trouble(self, error: Exception) -> str:
        """Return why an address cannot be used, and what helps."""
        match error:
            case TimeoutError():
                return f"no answer within {OPEN_S:.3g} s"
            case aiohttp.ClientConnectorCertificateError():
                cause = error.certificate_error
                text = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else str(cause)
                return f"its certificate cannot be trusted ({text}): put its authority's into {self._authorities}"
            case aiohttp.ClientConnectorSSLError():
                return f"no TLS connection: {no_tls(error)}"
            case aiohttp.ClientConnectorError():
                return why(error.os_error)
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | ConnectionError():
                return "the connection ended before the answer; if it serves TLS, dial https://"
            case aiohttp.InvalidURL():
                return "it is not the URL of a page"
            case _:
                return str(error)

    def _known_already(self, caller: str, target: _Target) -> tuple[str, int]:
        """Return why an attempt that led to a caller that is reached already was in vain, and how that is logged."""
        missing = sorted({other for said in self._said.values() for other in said} - self._sockets.keys())
        if target.tries + 1 < ALWAYS or not missing:
            return f"it leads to {caller}, which is reached already", logging.DEBUG
        never = ", ".join(missing)
        return f"it leads to {caller} each time, and never to {never}: give each an address of its own", logging.WARNING

    async def _open(self, session: aiohttp.ClientSession, url: str) -> tuple[aiohttp.ClientWebSocketResponse, Welcome]:
        """Open a WebSocket and learn whose it is.

        Raises:
            _DialError: It is refused, or no caller is there.
            aiohttp.ClientError: There is no connection.
            TimeoutError: No answer within `OPEN_S`.
        """
        given = self._credentials()
        try:
            async with asyncio.timeout(OPEN_S):
                websocket = await session.ws_connect(
                    url + PATH,
                    params={"agent": str(self._agent)},
                    headers={"Authorization": f"Bearer {given.token}"} if given.token else None,
                    ssl=given.tls if given.tls is not None else True,
                    proxy=proxy_of(url, os.environ),
                    heartbeat=PING_S,
                    timeout=aiohttp.ClientWSTimeout(ws_close=PART_S),
                    max_msg_size=MESSAGE_BYTES_MAX,
                    compress=0,
                )
                try:
                    message = await websocket.receive()
                except BaseException:
                    await websocket.close()
                    raise
        except aiohttp.WSServerHandshakeError as error:
            why = "the agent's token or certificate is refused" if error.status in _REFUSED else "no caller accepts it"
            raise _DialError(f"{why} ({error.status})") from error
        said = decode_welcome(message.data) if message.type is aiohttp.WSMsgType.TEXT else None
        if said is None:
            await websocket.close()
            raise _DialError("what answers is not a caller")
        return websocket, said

    def _failed(self, url: str, target: _Target, trouble: str, level: int) -> None:
        """Note an attempt in vain; log it if the trouble is a new one."""
        target.tries += 1
        pause_s = min(PAUSE_S_MAX, PAUSE_S * 2**target.tries)
        target.due_s = asyncio.get_running_loop().time() + random.uniform(0.5, 1.0) * pause_s
        if trouble != target.trouble:
            target.trouble = trouble
            _LOG.log(level, "tunnel: %s: %s", url, trouble)

    async def _use(self, socket: Socket, said: Welcome, inbox: CarrierInbox) -> None:
        caller = said.caller

        def received(message: bytes | str) -> None:
            if isinstance(message, bytes):
                inbox.received(caller, message)
            elif (news := decode_welcome(message)) is not None and news.caller == caller:
                self._learn(news)

        self._learn(said)
        inbox.connected(caller)
        try:
            why = await socket.run(received)
            _LOG.info("tunnel: the WebSocket to %s has ended: %s", caller, why)
        finally:
            del self._sockets[caller]
            if self._sockets:  # else its word is the last that is known
                self._said.pop(caller, None)
            inbox.disconnected(caller)

    async def _part(self) -> None:
        """Say goodbye, and end everything."""
        dialling = [target.dialling for target in self._targets.values() if target.dialling is not None]
        for task in dialling:
            task.cancel()
        sockets = list(self._sockets.values())
        for socket in sockets:
            socket.send(_FAREWELL)
        await asyncio.gather(*dialling, *(socket.part() for socket in sockets), return_exceptions=True)
        for task in list(self._using):
            task.cancel()
        await asyncio.gather(*self._using, return_exceptions=True)
