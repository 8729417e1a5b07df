"""What tests do to a simulator at run time, under `/sim`: no part of CML, without token, log, latency or faults."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from aiohttp import web

from vkprovider.sim.calls import Created
from vkprovider.sim.errors import CmlError, body_of
from vkprovider.sim.faults import Fault

if TYPE_CHECKING:
    from vkprovider.sim.server import CmlSimulator

T = TypeVar("T")
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Password(msgspec.Struct, forbid_unknown_fields=True):
    """A new password; of the first user, if no name is given."""

    password: str
    username: str | None = None


class Silence(msgspec.Struct, forbid_unknown_fields=True):
    """How long the whole controller is silent: `hold` accepts and never answers, `refuse` closes the listener."""

    seconds: Seconds
    mode: Literal["hold", "refuse"] = "hold"


class Licence(msgspec.Struct, forbid_unknown_fields=True):
    """What is licensed."""

    quota: int | None = None
    registered: bool | None = None


class Compute(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the compute host is connected."""

    connected: bool


class Latency(msgspec.Struct, forbid_unknown_fields=True):
    """How long every request takes at least."""

    latency_ms: Annotated[float, msgspec.Meta(ge=0)]


class Admin:
    """The handlers, of one simulator."""

    def __init__(self, simulator: "CmlSimulator") -> None:
        self._sim = simulator

    async def faults(self, _request: web.Request) -> Any:
        """List the faults in force."""
        return self._sim.faults.list(self._sim.now())

    async def add_fault(self, request: web.Request) -> Any:
        """Put a fault in force: `{"route": regex, "kind": …, "count": N | "seconds": S, …}`."""
        fault = await _read(request, Fault)
        try:
            self._sim.faults.add(fault, self._sim.now())
        except re.error as error:
            raise web.HTTPBadRequest(text=f"route is no regular expression: {error}") from error
        return Created(fault)

    async def clear_faults(self, _request: web.Request) -> Any:
        """End all faults and every silence."""
        self._sim.faults.clear()
        self._sim.endpoint.release()

    async def password(self, request: web.Request) -> Any:
        """Change a password and end the user's sessions."""
        given = await _read(request, Password)
        accounts = self._sim.simulation.accounts
        name = given.username or self._sim.simulation.settings.username
        user = accounts.by_name(name)
        if user is None:
            raise web.HTTPNotFound(text=f"there is no user {name}")
        accounts.set_password(user, given.password)

    async def end_sessions(self, _request: web.Request) -> Any:
        """Make all tokens invalid."""
        for user in self._sim.simulation.accounts.users.values():
            self._sim.simulation.accounts.end_sessions(user)

    async def crash(self, request: web.Request) -> Any:
        """Let a device, named by id or label, power itself off."""
        world, now = self._sim.simulation.world, self._sim.now()
        world.advance(now)
        lab = world.lab(request.match_info["lab"])
        wanted = request.match_info["node"]
        node = next((node for node in lab.nodes.values() if wanted in {node.id, node.label}), None)
        world.crash(now, node or world.node(lab.id, wanted))

    async def reboot(self, _request: web.Request) -> Any:
        """Restart the host: whatever was active is stopped."""
        now = self._sim.now()
        self._sim.simulation.world.advance(now)
        self._sim.simulation.world.reboot(now)

    async def compute(self, request: web.Request) -> Any:
        """Lose or regain the compute host."""
        now = self._sim.now()
        self._sim.simulation.world.advance(now)
        self._sim.simulation.world.set_connected(now, connected=(await _read(request, Compute)).connected)

    async def licence(self, request: web.Request) -> Any:
        """Change the licence quota, or the registration."""
        given = await _read(request, Licence)
        world, now = self._sim.simulation.world, self._sim.now()
        world.advance(now)
        if given.registered is not None:
            world.registered = given.registered
        if given.quota is not None:
            world.set_quota(now, given.quota)

    async def latency(self, request: web.Request) -> Any:
        """Change the latency."""
        self._sim.endpoint.latency_s = (await _read(request, Latency)).latency_ms / 1000

    async def silence(self, request: web.Request) -> Any:
        """Let the whole controller be silent for a while."""
        given = await _read(request, Silence)
        if given.mode == "hold":
            self._sim.endpoint.silence(given.seconds)
        else:
            await self._sim.close_listener(given.seconds, request.transport)

    async def access_log(self, request: web.Request) -> Any:
        """List the entries of the access log, with `?since=N` only those whose number is larger."""
        return self._sim.log.since(int(request.query.get("since", "0")))


async def _read(request: web.Request, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.read(), type=shape)
    except msgspec.MsgspecError as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def _wrap(
    simulator: "CmlSimulator", handler: Callable[[web.Request], Awaitable[Any]]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            answer = await handler(request)
        except CmlError as error:
            return web.Response(status=error.status, body=body_of(error.status, error.description))
        except web.HTTPException as error:
            return web.Response(status=error.status, body=body_of(error.status, error.text or ""))
        if request.method != "GET":
            simulator.changed()
        if answer is None:
            response = web.Response(status=204)
        else:
            status, body = (201, answer.body) if isinstance(answer, Created) else (200, answer)
            response = web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
        response.force_close()
        return response

    return handle


def add_routes(application: web.Application, simulator: "CmlSimulator") -> None:
    """Add the routes under `/sim`."""
    admin = Admin(simulator)
    for method, path, handler in (
        ("GET", "/sim/faults", admin.faults),
        ("POST", "/sim/faults", admin.add_fault),
        ("DELETE", "/sim/faults", admin.clear_faults),
        ("PUT", "/sim/password", admin.password),
        ("DELETE", "/sim/sessions", admin.end_sessions),
        ("POST", "/sim/nodes/{lab}/{node}/crash", admin.crash),
        ("POST", "/sim/reboot", admin.reboot),
        ("POST", "/sim/compute", admin.compute),
        ("POST", "/sim/licence", admin.licence),
        ("PUT", "/sim/latency", admin.latency),
        ("POST", "/sim/silence", admin.silence),
        ("GET", "/sim/access-log", admin.access_log),
    ):
        application.router.add_route(method, path, _wrap(simulator, handler))
