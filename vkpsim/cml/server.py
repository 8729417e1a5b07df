"""The simulator as a server: `async with CmlSimulator(Settings(password="…")) as sim: sim.url`."""

import ssl
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Middleware

from vkpsim.cml import admin
from vkpsim.cml.calls import Route
from vkpsim.cml.consoles.consoles import Consoles
from vkpsim.cml.consoles.patty import Patty, PattySettings
from vkpsim.cml.endpoint import LARGEST_IMPORT_BYTES, Endpoint
from vkpsim.cml.routes import (
    accounts,
    annotations,
    definitions,
    diagnostics,
    lab_extras,
    labs,
    licensing,
    links,
    manage,
    nodes,
    pools,
    system,
    testbed,
)
from vkpsim.cml.simulation import Settings, Simulation, Snapshot
from vkpsim.http import store
from vkpsim.http.faults import Fault
from vkpsim.http.simulator import Simulator

BASE: Final = "/api/v0"
ROUTES: Final[Sequence[Route]] = (
    *system.ROUTES,
    *labs.ROUTES,
    *lab_extras.ROUTES,
    *testbed.ROUTES,
    *nodes.ROUTES,
    *links.ROUTES,
    *annotations.ROUTES,
    *accounts.ROUTES,
    *pools.ROUTES,
    *definitions.ROUTES,
    *licensing.ROUTES,
    *manage.ROUTES,
    *diagnostics.ROUTES,
)


class CmlSimulator(Simulator):
    """One simulated controller, listening.

    Args:
        settings: Of the controller.
        host: Address on which it listens, also with the ports of tags.
        port: Port; 0 chooses a free one.
        tls: Context for HTTPS; None is HTTP.
        state: File that keeps its state over a restart.
        access_log: File for the access log.
        latency_ms: Minimum duration of every request.
        patty: Settings of PATty; None opens no ports.
        faults: Faults in force from the start.
        middlewares: Of the HTTP server, around every request.
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
        middlewares: Iterable[Middleware] = (),
    ) -> None:
        super().__init__(
            host=host, port=port, tls=tls, state=state, access_log=access_log, faults=faults, seed=settings.seed
        )
        self._middlewares = tuple(middlewares)
        self.simulation = Simulation(settings, self.now(), lambda: str(uuid.uuid4()))
        self.endpoint = Endpoint(self.simulation, self.log, self.faults, self.now, self.changed)
        self.endpoint.latency_s = latency_ms / 1000
        self.consoles = Consoles(self.simulation.world, self.now, self.changed, settings.console_baud)
        self.patty = Patty(self.simulation.world, self.now, host, patty, self.consoles) if patty else None

    async def _open(self) -> None:
        if self._state is not None and (snapshot := store.load(self._state, Snapshot)) is not None:
            self.simulation.restore(snapshot)
        application = web.Application(client_max_size=LARGEST_IMPORT_BYTES, middlewares=self._middlewares)
        for route in ROUTES:
            application.router.add_route(route.method, BASE + route.path, self.endpoint.serve(route))
        admin.add_routes(application, self)
        application.router.add_get("/ws/dispatch/frontend/console", self.consoles.serve)
        application.router.add_get("/ws/dispatch/frontend/vnc", self.consoles.serve_screen)
        application.router.add_route("*", "/{tail:.*}", self.endpoint.serve(None))
        await self.listener.open(application)
        if self.patty is not None:
            self.patty.start()

    async def _close(self) -> None:
        self.endpoint.release()
        await self.consoles.close()
        if self.patty is not None:
            await self.patty.close()

    def _snapshot(self) -> Snapshot:
        return self.simulation.snapshot()
