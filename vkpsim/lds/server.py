"""The simulator as a server: `async with LdsSimulator(LdsSettings()) as sim: sim.url`."""

import asyncio
import secrets
import ssl
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from aiohttp import web

from vkpsim.http import store
from vkpsim.http.faults import Fault
from vkpsim.http.simulator import Simulator
from vkpsim.lds import admin
from vkpsim.lds.endpoint import LARGEST_BODY_BYTES, Endpoint
from vkpsim.lds.events.eventfaults import EventFault, EventFaults
from vkpsim.lds.events.sender import EventSettings, Sender
from vkpsim.lds.grading import Grader
from vkpsim.lds.model import Event
from vkpsim.lds.pages.pages import Pages
from vkpsim.lds.routes import ROUTES
from vkpsim.lds.settings import LdsSettings, Snapshot
from vkpsim.lds.world import World

TICK_S: Final = 0.2
"""How often ends of timeslots are checked."""


class LdsSimulator(Simulator):
    """One simulated LDS, listening.

    Args:
        settings: Of the LDS.
        host: Address on which it listens.
        port: Port; 0 chooses a free one.
        tls: Context for HTTPS; None is HTTP.
        base_url: URL for users and clients, if it is not where it listens.
        events: Settings of event delivery.
        grader: Grades what is posted to `/grade`.
        state: File that keeps its state over a restart.
        access_log: File for the access log.
        latency_ms: Minimum duration of every request.
        faults: Faults of requests in force from the start.
        event_faults: Faults of events in force from the start.
    """

    def __init__(
        self,
        settings: LdsSettings,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        base_url: str | None = None,
        events: EventSettings | None = None,
        grader: Grader | None = None,
        state: Path | None = None,
        access_log: Path | None = None,
        latency_ms: float = 0.0,
        faults: Iterable[Fault] = (),
        event_faults: Iterable[EventFault] = (),
    ) -> None:
        super().__init__(
            host=host, port=port, tls=tls, state=state, access_log=access_log, faults=faults, seed=settings.seed
        )
        self._secure = tls is not None
        self._base_url = base_url
        sent = EventFaults(settings.seed)
        for event_fault in event_faults:
            sent.add(event_fault)
        self.sender = Sender(events or EventSettings(), lambda: self.base_url, sent, self.changed)
        self.world = World(settings, lambda: uuid.uuid4().hex, lambda: secrets.token_urlsafe(24), self.sender.put)
        self.endpoint = Endpoint(
            self.world, grader or Grader(), lambda: self.base_url, self.log, self.faults, self.now, self.changed
        )
        self.endpoint.latency_s = latency_ms / 1000
        self._clock: asyncio.Task[None] | None = None

    @property
    def base_url(self) -> str:
        """Its public URL: the prefix of login URLs, and the `source` of events."""
        return self._base_url or self.url

    async def _open(self) -> None:
        undelivered: list[Event] = []
        if self._state is not None and (snapshot := store.load(self._state, Snapshot)) is not None:
            self.world.restore(snapshot)
            undelivered = snapshot.undelivered
        application = web.Application(client_max_size=LARGEST_BODY_BYTES)
        for route in ROUTES:
            application.router.add_route(route.method, route.path, self.endpoint.serve(route))
        Pages(self.world, secure=self._secure).add_routes(application, self.endpoint)
        admin.add_routes(application, self)
        application.router.add_route("*", "/{tail:.*}", self.endpoint.serve(None))
        await self.listener.open(application)
        await self.sender.start(undelivered)
        self._clock = asyncio.create_task(self._tick(), name="lds-clock")

    async def _close(self) -> None:
        self.endpoint.release()
        if self._clock is not None:
            self._clock.cancel()
            await asyncio.gather(self._clock, return_exceptions=True)
        await self.sender.close()

    async def _tick(self) -> None:
        """End timeslots also without requests."""
        while True:
            await asyncio.sleep(TICK_S)
            end = self.world.next_end()
            if end is not None and end <= self.now():
                self.world.advance(self.now())
                self.changed()

    def _snapshot(self) -> Snapshot:
        return self.world.snapshot(list(self.sender.undelivered.values()))
