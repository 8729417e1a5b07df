"""The simulator as a server: `async with CmlSimulator(Settings(password="…")) as sim: sim.url`."""

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
from vkprovider.sim.listener import Listener
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
        self.listener = Listener(host, port, tls)
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

    def now(self) -> float:
        """Tell the time: the wall clock's when the simulator began, and steady from then on."""
        return self._anchor + time.monotonic()

    @property
    def url(self) -> str:
        """Where the controller answers, without `/api/v0`."""
        return self.listener.url

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.listener.port

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
        await self.listener.open(application)
        if self.store is not None:
            await self.store.start()
        if self.patty is not None:
            self.patty.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.endpoint.release()
        await self.consoles.close()
        if self.patty is not None:
            await self.patty.close()
        await self.listener.close()
        if self.store is not None:
            await self.store.close()
        self.log.close()
