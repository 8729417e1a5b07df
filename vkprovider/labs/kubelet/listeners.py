"""One listener for each Node that is ours: a port that tells which Node a request is for.

Paths such as `/metrics/resource` name no Node, and no SNI comes with an IP address. A listener costs a socket and a few
KiB, no task and no timer; all share one server.
"""

import asyncio
import errno
import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from aiohttp import web

from vkprovider.lablet import names
from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.labs.pure.worker.endpoint import KubeletEndpoint
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.platform.http.connections import Connections, runner_of

_log: Final = structlog.get_logger(__name__)
CONNECTIONS_MAX: Final = 1024
"""Connections of all listeners without a session, at most."""
_KEEPALIVE_S: Final = 30.0
_SHUTDOWN_S: Final = 1.0
_TRIES_MAX: Final = 64
_ENDING_S: Final = 5.0
"""How long sessions have to say goodbye when their Node leaves."""

MOVED: Final = "this worker moved to another replica: run the command again"


@dataclass(slots=True, eq=False)
class NodeListener:
    """A Node's listener.

    Attributes:
        worker: The CMLWorker's name.
        endings: Called when the Node leaves.
        left: Whether it has left.
    """

    worker: str
    endings: set[Callable[[], None]] = field(default_factory=set)
    left: bool = False

    @property
    def node(self) -> str:
        """The Node's name."""
        return names.node_name(self.worker)

    @contextmanager
    def until_left(self, ending: Callable[[], None]) -> Iterator[None]:
        """Call `ending` if the Node leaves before the end of the block."""
        self.endings.add(ending)
        try:
            yield
        finally:
            self.endings.discard(ending)


@dataclass(frozen=True, slots=True)
class _Open:
    listener: NodeListener
    server: asyncio.Server
    endpoint: KubeletEndpoint


class NodeListeners:
    """The listeners of the Nodes that this replica owns."""

    def __init__(self, settings: KubeletSettings, app: web.Application, tls: ServingTls, address: str) -> None:
        """Create them closed.

        Args:
            settings: Address and ports.
            app: Answers requests; `platform.http.connections.listener_of` is the `NodeListener` that one came to.
            tls: Of all connections.
            address: By which the API server reaches this replica.
        """
        self._settings = settings
        self._tls = tls
        self._address = address
        self._host = settings.host or ("::" if ipaddress.ip_address(address).version == 6 else "0.0.0.0")  # noqa: S104, PLR2004 (the API server dials it; a version of IP)
        self._runner = runner_of(app, handler_cancellation=True, keepalive_s=_KEEPALIVE_S, shutdown_s=_SHUTDOWN_S)
        self._starting = asyncio.Lock()
        self._connections: Connections | None = None
        self._next_port = settings.port_range[0]
        self._warned = False
        self._open: dict[str, _Open] = {}
        self._wanted: dict[str, object] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, worker: str) -> KubeletEndpoint | None:
        """Serve the Node of a worker, if it is not yet; None if no port is free, or it was given up meanwhile."""
        found = self._open.get(worker)
        if found is not None:
            return found.endpoint
        mark = self._wanted.setdefault(worker, object())
        connections, listener = await self._started(), NodeListener(worker)
        server = await self._bind(connections, listener)
        if server is None:
            return None
        if self._wanted.get(worker) is not mark or worker in self._open:
            server.close()
            return None
        endpoint = KubeletEndpoint(self._address, int(server.sockets[0].getsockname()[1]))
        self._open[worker] = _Open(listener, server, endpoint)
        return endpoint

    def given_up(self, worker: str) -> None:
        """Close the listener of a Node that is not ours any more; its sessions end within a few seconds."""
        self._wanted.pop(worker, None)
        found = self._open.pop(worker, None)
        if found is None:
            return
        found.server.close()
        listener = found.listener
        listener.left = True
        for ending in list(listener.endings):
            ending()
        if self._connections is not None:
            asyncio.get_running_loop().call_later(_ENDING_S, self._connections.abort, listener)

    async def close(self) -> None:
        """Close every listener and connection."""
        for worker in list(self._open):
            self.given_up(worker)
        await self._runner.cleanup()

    async def _started(self) -> Connections:
        async with self._starting:
            if self._connections is None:
                await self._runner.setup()
                assert self._runner.server is not None  # noqa: S101 (it is set up)
                self._connections = Connections(self._runner.server, connections_max=CONNECTIONS_MAX)
            return self._connections

    async def _bind(self, connections: Connections, listener: NodeListener) -> asyncio.Server | None:
        """Listen on the next free port; None if there is none."""
        for port in self._candidates():
            try:
                return await connections.listen(self._host, port, self._tls.context, listener)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    self._warn(str(error))
                    return None
        self._warn(f"no port of {self._settings.ports} is free")
        return None

    def _candidates(self) -> Iterator[int]:
        first, last = self._settings.port_range
        if first == 0:
            yield 0
            return
        for _ in range(min(_TRIES_MAX, last - first + 1)):
            port = self._next_port
            self._next_port = port + 1 if port < last else first
            yield port

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the kubelet API of a Node cannot be served; see VKPROVIDER_KUBELET_PORTS", why=why)
