"""A pool of connections to one host."""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from vkprovider.kube.http.auth import Access
from vkprovider.kube.http.connection import Connection

_CONNECT_S_MAX: Final = 5.0
_READ_BYTES: Final = 64 * 1024
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
_UNACKNOWLEDGED_MS_MAX: Final = 30_000


class Pool:
    """A pool of connections to one host, opened on demand and reused.

    It has no limit of its own, because watches hold connections for minutes: `KubeClient` limits requests in flight.
    """

    def __init__(self, *, idle_s_max: float = 60.0) -> None:
        """Close idle connections after `idle_s_max`; by default before the API server does, whose limit is 90 s."""
        self._idle_s_max = idle_s_max
        self._host = ""
        self._port = 0
        self._tls: ssl.SSLContext | None = None
        self._tls_server_name: str | None = None
        self._generation = 0
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._buffer = memoryview(bytearray(_READ_BYTES))

    def use(self, access: Access) -> None:
        """Open connections with these credentials from now on; existing ones finish their request and are closed."""
        url = urlsplit(access.server)
        self._host = url.hostname or ""
        self._port = url.port or (443 if access.tls else 80)
        self._tls = access.tls
        self._tls_server_name = (access.tls_server_name or self._host) if access.tls else None
        self._generation += 1
        while self._idle:
            self._drop(self._idle.pop())

    async def acquire(self, *, fresh: bool = False) -> Connection:
        """Return a connection for one request: the one used last, or a new one if `fresh`.

        Raises:
            OSError: It cannot be opened; includes TimeoutError and the errors of `ssl`.
        """
        if self._closed:
            raise ConnectionResetError("this client has been closed")
        while self._idle and not fresh:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            self._drop(connection)
        generation = self._generation
        async with asyncio.timeout(_CONNECT_S_MAX):
            transport, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._buffer),
                self._host,
                self._port,
                ssl=self._tls,
                server_hostname=self._tls_server_name,
            )
        connection.generation = generation
        self._all.add(connection)
        with suppress(OSError):  # lost already: the request will fail
            _set_keepalive(transport.get_extra_info("socket"))
        return connection

    def release(self, connection: Connection) -> None:
        """Return a connection to the pool; close it unless its response is complete and it may be reused."""
        if not connection.usable or self._closed or connection.generation != self._generation:
            self._drop(connection)
            return
        loop = asyncio.get_running_loop()
        connection.idle_since_s = loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._idle_s_max, self._sweep)

    def _sweep(self) -> None:
        """Close connections that have been idle for too long; the list is ordered by time."""
        loop = asyncio.get_running_loop()
        old_s = loop.time() - self._idle_s_max
        while self._idle and (self._idle[0].closed or self._idle[0].idle_since_s <= old_s):
            self._drop(self._idle.pop(0))
        self._sweeper = loop.call_later(self._idle_s_max / 4, self._sweep) if self._idle else None

    def _drop(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.close()

    async def close(self) -> None:
        """Close every connection, also those in use, and open no others."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._all):
            self._drop(connection)
        self._idle.clear()
        await asyncio.sleep(0)  # the loop closes an aborted socket one step later


def _set_keepalive(sock: socket.socket | None) -> None:
    """Make the kernel detect within half a minute that the peer has vanished."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if option := getattr(socket, name, None):  # macOS has only some
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    if option := getattr(socket, "TCP_USER_TIMEOUT", None):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, option, _UNACKNOWLEDGED_MS_MAX)
