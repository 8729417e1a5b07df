"""The `Transport` to the server beside one agent."""

from collections.abc import Callable, Mapping
from typing import Final

from tunnels.allowlist import AllowList
from tunnels.base import Response
from tunnels.errors import ConnectFailed
from tunnels.link.hub import Hub
from tunnels.link.stream import ByteStream
from tunnels.outgoing.guard import Guard
from tunnels.wire.messages import Request, StreamOpen


class TunnelTransport:
    """A `Transport` through an agent; the hub and its connection are shared with all others.

    Args:
        hub: Of the carrier.
        name: The agent's name.
        allow: The requests that may be sent; the agent has a list of its own.
        guard: Asked in the same step of the event loop in which a frame leaves, repetitions included; what it raises
            passes through unchanged.
        epoch: Returns the epoch of the caller's ownership; 0: it may only read.
        user_agent: The `User-Agent` header; none if empty.
    """

    def __init__(
        self,
        hub: Hub,
        name: str,
        *,
        allow: AllowList,
        guard: Guard | None = None,
        epoch: Callable[[], int],
        user_agent: str = "",
    ) -> None:
        self._hub: Final = hub
        self._name: Final = name
        self._allow: Final = allow
        self._guard: Final = guard
        self._epoch: Final = epoch
        self._headers: Final = {"User-Agent": user_agent} if user_agent else {}
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> Response:
        """Send one request and return the whole response; see `Transport.request`.

        Raises:
            RequestRefused: The allow-list, or the agent's, does not name it.
            StaleEpoch: The agent has seen a newer epoch.
            ConnectFailed: The agent is away, or has no connection to the server.
            CertificateInvalid: The agent cannot trust the server's certificate.
            ConnectionLost: The agent, or its connection to the server, ended before the response.
            DeadlineExceeded: No response within `deadline_s`.
        """
        self._allow.check(method, path)
        if self._closed:
            raise ConnectFailed(f"{self._name}: the transport is closed")
        head = Request(
            op="-",
            epoch=self._epoch(),
            expires_ms=0,
            method=method,
            path=path,
            params=dict(params or {}),
            headers={**self._headers, **(headers or {})},
        )
        return await self._hub.request(self._name, head, body or b"", guard=self._guard, deadline_s=deadline_s)

    async def open_stream(self, path: str, *, params: Mapping[str, str] | None = None, deadline_s: float) -> ByteStream:
        """Open a stream of bytes, such as a console; the allow-list names it with the method `OPEN`.

        Raises:
            TransportError: It was not opened.
        """
        self._allow.check("OPEN", path)
        if self._closed:
            raise ConnectFailed(f"{self._name}: the transport is closed")
        opening = StreamOpen("-", self._epoch(), 0, path, dict(params or {}))
        return await self._hub.open_stream(self._name, opening, guard=self._guard, deadline_s=deadline_s)

    async def close(self) -> None:
        """Refuse later requests; the connection stays, for the others."""
        self._closed = True
