"""The simulator as a server: `async with CmlSimulator(Settings(password="…")) as sim: sim.url`."""

import asyncio
import ssl
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from vkprovider.sim import (
    admin,
    routes_accounts,
    routes_annotations,
    routes_definitions,
    routes_lab_extras,
    routes_labs,
    routes_licensing,
    routes_links,
    routes_manage,
    routes_nodes,
    routes_pools,
    routes_system,
    store,
)
from vkprovider.sim.access_log import AccessLog
from vkprovider.sim.calls import Route
from vkprovider.sim.consoles import Consoles
from vkprovider.sim.endpoint import LARGEST_IMPORT_BYTES, Endpoint
from vkprovider.sim.faults import Fault, Faults
from vkprovider.sim.patty import Patty, PattySettings
from vkprovider.sim.simulation import Settings, Simulation, Snapshot

BASE: Final = "/api/v0"
ROUTES: Final[Sequence[Route]] = (
    *routes_system.ROUTES,
    *routes_labs.ROUTES,
    *routes_lab_extras.ROUTES,
    *routes_nodes.ROUTES,
    *routes_links.ROUTES,
    *routes_annotations.ROUTES,
    *routes_accounts.ROUTES,
    *routes_pools.ROUTES,
    *routes_definitions.ROUTES,
    *routes_licensing.ROUTES,
    *routes_manage.ROUTES,
)
SHUTDOWN_S: Final = 0.5
"""How long requests in flight may take when the simulator ends."""


class CmlSimulator:
    """One simulated controller, listening.

    Args:
        settings: What it is.
        host: Address on which it listens, also with the ports of tags.
        port: Port; 0 takes a free one.
        tls: Context for HTTPS; None is HTTP.
        state: File in which it survives its own end.
        access_log: File for the access log.
        latency_ms: How long every request takes at least.
        patty: Whether, and how, tags open ports.
        faults: Faults in force from the start.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        state: Path | None = None,
        access_log: Path | None = None,
        latency_ms: float = 0.0,
        patty: PattySettings | None = None,
        faults: Iterable[Fault] = (),
    ) -> None:
        self.host = host
        self.port = port
        self._tls = tls
        self._state = state
        self._anchor = time.time() - time.monotonic()
        self.simulation = Simulation(settings, self.now(), lambda: str(uuid.uuid4()))
        self.log = AccessLog(access_log)
        self.faults = Faults(settings.seed)
        for fault in faults:
            self.faults.add(fault, self.now())
        self.store = store.Store(state, self.simulation.snapshot) if state else None
        self.endpoint = Endpoint(self.simulation, self.log, self.faults, self.now, self.changed)
        self.endpoint.latency_s = latency_ms / 1000
        self.consoles = Consoles(self.simulation.world, self.now, self.changed)
        self.patty = Patty(self.simulation.world, self.now, host, patty, self.consoles) if patty else None
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._reopening: asyncio.Task[None] | None = None

    def now(self) -> float:
        """Tell the time: the wall clock's when the simulator began, and steady from then on."""
        return self._anchor + time.monotonic()

    @property
    def url(self) -> str:
        """Where the controller answers, without `/api/v0`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def changed(self) -> None:
        """Note that the state was changed."""
        if self.store is not None:
            self.store.touch()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def _start(self) -> None:
        if self._state is not None and (snapshot := store.load(self._state, Snapshot)) is not None:
            self.simulation.restore(snapshot)
        application = web.Application(client_max_size=LARGEST_IMPORT_BYTES)
        for route in ROUTES:
            application.router.add_route(route.method, BASE + route.path, self.endpoint.serve(route))
        admin.add_routes(application, self)
        application.router.add_get("/ws/dispatch/frontend/console", self.consoles.serve)
        application.router.add_route("*", "/{tail:.*}", self.endpoint.serve(None))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        await self._listen()
        if self.store is not None:
            await self.store.start()
        if self.patty is not None:
            self.patty.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.endpoint.release()
        await self.consoles.close()
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.gather(self._reopening, return_exceptions=True)
        if self.patty is not None:
            await self.patty.close()
        if self._runner is not None:
            await self._runner.cleanup()
        if self.store is not None:
            await self.store.close()
        self.log.close()

    async def _listen(self) -> None:
        assert self._runner is not None  # noqa: S101 (called between setup and cleanup only)
        self._site = web.TCPSite(self._runner, self.host, self.port, ssl_context=self._tls, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def close_listener(self, seconds: float, spare: asyncio.BaseTransport | None) -> None:
        """Refuse connections for a while, and break those that are open, but for the one of who ordered it."""
        if self._site is None or self._runner is None or self._runner.server is None:
            return
        await self._site.stop()
        self._site = None
        for connection in self._runner.server.connections:
            if connection.transport is not None and connection.transport is not spare:
                connection.transport.abort()
        self._reopening = asyncio.create_task(self._reopen(seconds), name="sim-reopen")

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen()
