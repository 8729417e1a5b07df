"""Test orders that only a simulated LDS has: tokens, capacity, sessions, acts of learners, event faults."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from aiohttp import web

from vkpsim.http.orders import GateOrders, Made, Order, add_orders, read
from vkpsim.lds.errors import LdsError, body_of, invalid
from vkpsim.lds.events.eventfaults import EventFault
from vkpsim.lds.model import Session
from vkpsim.lds.states import Op
from vkpsim.lds.views import session_json

if TYPE_CHECKING:
    from vkpsim.lds.server import LdsSimulator

SHIFTS: Final = {"pause": Op.PAUSE, "resume": Op.RESUME, "prelaunch": Op.PRELAUNCH, "launched": Op.LAUNCHED}


class Token(msgspec.Struct, forbid_unknown_fields=True):
    """The bearer token that clients must show from now on."""

    token: str


class Capacity(msgspec.Struct, forbid_unknown_fields=True):
    """Maximum number of sessions."""

    capacity: Annotated[int, msgspec.Meta(ge=0)]


class Targets(msgspec.Struct, forbid_unknown_fields=True):
    """Where events go."""

    targets: list[str]


class FormOrder(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The new content of a form in the store."""

    name: str
    version: str | None = None
    tasks: list[str] | None = None


class Said(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Feedback of a user."""

    rating: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None
    comment: str | None = None


class Answered(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A user's answer to a task."""

    item: str
    answer: Any
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


class NewEmpty(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A session without a part."""

    username: str


class Admin:
    """The handlers, of one simulator."""

    def __init__(self, simulator: "LdsSimulator") -> None:
        self._sim = simulator

    async def token(self, request: web.Request) -> Any:
        """Change the token."""
        self._sim.endpoint.token = (await read(request, Token)).token

    async def capacity(self, request: web.Request) -> Any:
        """Change the capacity."""
        self._sim.world.capacity = (await read(request, Capacity)).capacity

    async def targets(self, request: web.Request) -> Any:
        """Change where events go."""
        self._sim.sender.aim((await read(request, Targets)).targets)

    async def form(self, request: web.Request) -> Any:
        """Put content into the store; the LDS serves it after a content refresh."""
        given = await read(request, FormOrder)
        form = self._sim.world.add_form(given.name)
        form.version = form.version if given.version is None else given.version
        form.tasks = form.tasks if given.tasks is None else given.tasks

    async def empty(self, request: web.Request) -> Any:
        """Make a session without a part."""
        world = self._sim.world
        session = world.create(self._sim.now(), username=(await read(request, NewEmpty)).username)
        return Made(session_json(session, world.settings))

    async def act(self, request: web.Request) -> Any:
        """Act on a session as its user, or a lab of another kind, would."""
        world, now, done = self._sim.world, self._sim.now(), request.match_info["act"]
        session = world.session(request.match_info["session"])
        match done:
            case "log-in":
                world.log_in(now, session)
            case "finish":
                world.finish(now, session)
            case "answer":
                answered = await read(request, Answered)
                world.answer(now, session, answered.item, answered.answer, answered.score)
            case "say":
                said = await read(request, Said)
                world.say(now, session, said.rating, said.comment)
            case _ if done in SHIFTS:
                world.shift(SHIFTS[done], session)
            case _:
                raise invalid(f"there is no such thing to do as {done}")
        return session_json(session, world.settings)

    async def sessions(self, _request: web.Request) -> Any:
        """List all sessions with their devices, also archived ones."""
        return [self._whole(session) for session in self._sim.world.sessions.values()]

    async def event_faults(self, _request: web.Request) -> Any:
        """List the faults of events in force."""
        return self._sim.sender.faults.in_force()

    async def add_event_fault(self, request: web.Request) -> Any:
        """Put a fault of events in force: `{"kind": …, "type": regex, "count": N, …}`."""
        fault = await read(request, EventFault)
        self._sim.sender.faults.add(fault)
        return Made(fault)

    async def clear_event_faults(self, _request: web.Request) -> Any:
        """End all faults of events."""
        self._sim.sender.faults.clear()

    async def deliveries(self, request: web.Request) -> Any:
        """List the tries to deliver events, with `?since=N` only those whose number is larger."""
        since = int(request.query.get("since", "0"))
        return [delivery for delivery in self._sim.sender.deliveries if delivery.number > since]

    async def undelivered(self, _request: web.Request) -> Any:
        """List the events that no target has accepted yet."""
        return list(self._sim.sender.undelivered.values())

    def _whole(self, session: Session) -> dict[str, Any]:
        return {**session_json(session, self._sim.world.settings), "devices": session.devices}


def _refusing(simulator: "LdsSimulator", order: Order) -> Order:
    """Wrap an order: advance the time first, and refuse in the LDS's words."""

    async def handle(request: web.Request) -> Any:
        simulator.world.advance(simulator.now())
        try:
            return await order(request)
        except LdsError as error:
            raise _FAILURES.get(error.status, web.HTTPBadRequest)(text=str(error)) from error

    return handle


_FAILURES: Final[dict[int, Callable[..., web.HTTPException]]] = {
    404: web.HTTPNotFound,
    409: web.HTTPConflict,
    503: web.HTTPServiceUnavailable,
}


def _body(status: int, message: str) -> bytes:
    return body_of(f"Refused{status}", message)


def add_routes(application: web.Application, simulator: "LdsSimulator") -> None:
    """Add the routes under `/sim`."""
    admin = Admin(simulator)
    table: list[tuple[str, str, Callable[[web.Request], Awaitable[Any]]]] = [
        ("PUT", "/sim/token", admin.token),
        ("PUT", "/sim/capacity", admin.capacity),
        ("PUT", "/sim/targets", admin.targets),
        ("PUT", "/sim/forms", admin.form),
        ("GET", "/sim/sessions", admin.sessions),
        ("POST", "/sim/sessions", admin.empty),
        ("POST", "/sim/sessions/{session}/{act}", admin.act),
        ("GET", "/sim/event-faults", admin.event_faults),
        ("POST", "/sim/event-faults", admin.add_event_fault),
        ("DELETE", "/sim/event-faults", admin.clear_event_faults),
        ("GET", "/sim/deliveries", admin.deliveries),
        ("GET", "/sim/undelivered", admin.undelivered),
    ]
    table = [(method, path, _refusing(simulator, order)) for method, path, order in table]
    table += GateOrders(simulator.endpoint, simulator.listener).table
    add_orders(application, table, body_of=_body, changed=simulator.changed)
