"""The HTTP page of a process: probes and metrics for everyone, and the routes of its parts.

It listens before the API server has answered, so that no liveness probe restarts a replica for an outage elsewhere.
The routes are known only with the parts; until then whatever else is asked for is answered with 503 `Starting`.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from aiohttp import web

from vkprovider.platform.errors import InputError
from vkprovider.platform.http.answers import Refused, Starting
from vkprovider.platform.http.connections import listen, runner_of
from vkprovider.platform.http.served import Handler
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.runtime import parts
from vkprovider.platform.runtime.context import NO_API_SERVER
from vkprovider.platform.runtime.metrics import exposition, registry_of
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.settings import HttpSettings

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FINISH_S: Final = 3.0
"""How long requests in hand may go on when the process ends, and again after they were cancelled."""


class Page:
    """Serves what a process reports, and receives requests for its parts.

    Attributes:
        port: That it listens on; 0 before `start`.
    """

    def __init__(
        self,
        settings: HttpSettings,
        replica: str,
        *,
        tls: ssl.SSLContext | None = None,
        starting: Mapping[str, Any],
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare to serve; nothing listens before `start`.

        Args:
            settings: Where to listen.
            replica: The name of the process.
            tls: How to encrypt; None: not.
            starting: The lines of its parts in `GET /health` as long as there are none.
            headers: Those that every answer has.
        """
        self._settings = settings
        self._tls = tls
        self._headers = headers
        self._process: Process | None = None
        self._waits_for = NO_API_SERVER
        self._starting = {**parts.starting(replica), **starting}
        self._routes = _Routes()
        self._hosted: tuple[parts.Hosted, ...] = ()
        self._runner = runner_of(self._application(), shutdown_s=_FINISH_S)
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            InputError: `SettingInvalid`: the port is taken, or the address is not this machine's.
        """
        await self._runner.setup()
        host, port = self._settings.host, self._settings.port
        try:
            self._listener = await listen(self._runner, host, port, self._tls)
        except OSError as error:
            text = (
                f"the page cannot listen on {host or '*'}:{port}: {os.strerror(error.errno) if error.errno else error}"
            )
            free = "end what listens there, or set VKPROVIDER_HTTP_PORT; the address is VKPROVIDER_HTTP_HOST"
            raise InputError(StartReason.SETTING_INVALID, f"{text}; {free}") from error
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._by_host])
        app.on_response_prepare.append(self._prepare)
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.register_resource(self._routes)
        return app

    @web.middleware
    async def _by_host(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Have a request to a host of a part's own be answered there: none of the page's paths is at that host."""
        found = (hosted(request) for hosted in self._hosted)
        return await next((each for each in found if each is not None), handler)(request)

    async def _prepare(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    def serve(self, process: Process) -> None:
        """Answer for a process from now on: the API server has answered, and its parts are built."""
        registry = registry_of(process.measures)

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(body=await exposition(registry), headers={"Content-Type": CONTENT_TYPE})

        routes = Route("GET", "/metrics", metrics), *(route for part in process.parts for route in part.routes)
        self._routes.serve(*(route._replace(handler=partial(_handle, process, route)) for route in routes))
        self._hosted = tuple(part.hosted for part in process.parts if part.hosted is not parts.no_host)
        self._process = process

    def wait_for(self, missing: str) -> None:
        """Name what is missing before there is a process."""
        self._waits_for = missing

    async def _health(self, _: web.Request) -> web.Response:
        """Answer 200 as long as the process does: a fault outside of it does not call for a restart."""
        found = self._process
        return web.json_response(
            parts.health(found.ctx, found.membership, found.parts) if found is not None else self._starting
        )

    async def _ready(self, _: web.Request) -> web.Response:
        missing = self._process.unready() if self._process is not None else [self._waits_for]
        answer: dict[str, Any] = {"ready": not missing, "missing": missing}
        if self._process is not None and (notes := self._process.notes()):
            answer["notes"] = notes
        return web.json_response(answer, status=503 if missing else 200)


async def _handle(process: Process, route: Route, request: web.Request) -> web.StreamResponse:
    """Pass a request on, and count it if it is refused."""
    try:
        return await route.handler(request)
    except Refused as refusal:
        process.refusals[refusal.word] += 1
        raise


async def _too_early(_: web.Request) -> web.StreamResponse:
    raise Starting("the API server has not answered yet")


class _Routes(web.PlainResource):
    """Routes that are not known when the application begins to serve, after which aiohttp takes no more.

    Until they are known, every path leads to `_too_early`.
    """

    def __init__(self) -> None:
        super().__init__("/")
        self._early, self._late = web.UrlDispatcher(), web.UrlDispatcher()
        self._early.add_route("*", "/{path:.*}", _too_early)

    def serve(self, *routes: Route) -> None:
        """Serve these routes from now on."""
        for route in routes:
            self._late.add_route(route.method, route.path, route.handler)

    async def resolve(self, request: web.Request) -> Any:
        """Return the route of a request and nothing; or None and the methods that its path allows."""
        router = self._late if len(self._late.resources()) else self._early
        found = await router.resolve(request)
        if isinstance(found.http_exception, web.HTTPMethodNotAllowed):
            return None, found.http_exception.allowed_methods
        return (found, set()) if found.http_exception is None else (None, set())
