"""Orders of tests to any simulator at run time, under `/sim`: without token, log, latency or faults."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from aiohttp import web

from vkpsim.http.faults import Fault
from vkpsim.http.gate import Gate
from vkpsim.http.listener import Listener

T = TypeVar("T")
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class Silence(msgspec.Struct, forbid_unknown_fields=True):
    """A silence of the whole simulator: `hold` accepts and never answers, `refuse` closes the listener."""

    seconds: Seconds
    mode: Literal["hold", "refuse"] = "hold"


class Latency(msgspec.Struct, forbid_unknown_fields=True):
    """The minimum duration of every request."""

    latency_ms: Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Made:
    """An answer with status 201."""

    body: Any


Order = Callable[[web.Request], Awaitable[Any]]
"""It returns JSON, a `Made`, or None for an empty 204; it refuses by a `web.HTTPException`."""


class GateOrders:
    """The orders of every simulator."""

    def __init__(self, gate: Gate, listener: Listener) -> None:
        self._gate = gate
        self._listener = listener

    @property
    def table(self) -> list[tuple[str, str, Order]]:
        """Method, path and handler of each."""
        return [
            ("GET", "/sim/faults", self.faults),
            ("POST", "/sim/faults", self.add_fault),
            ("DELETE", "/sim/faults", self.clear_faults),
            ("PUT", "/sim/latency", self.latency),
            ("POST", "/sim/silence", self.silence),
            ("GET", "/sim/access-log", self.access_log),
        ]

    async def faults(self, _request: web.Request) -> Any:
        """List the faults in force."""
        return self._gate.faults.list(self._gate.now())

    async def add_fault(self, request: web.Request) -> Any:
        """Put a fault in force: `{"route": regex, "kind": …, "count": N | "seconds": S, …}`."""
        fault = await read(request, Fault)
        self._gate.faults.add(fault, self._gate.now())
        return Made(fault)

    async def clear_faults(self, _request: web.Request) -> Any:
        """End all faults and every silence."""
        self._gate.faults.clear()
        self._gate.release()

    async def latency(self, request: web.Request) -> Any:
        """Change the latency."""
        self._gate.latency_s = (await read(request, Latency)).latency_ms / 1000

    async def silence(self, request: web.Request) -> Any:
        """Silence the whole simulator for a while."""
        given = await read(request, Silence)
        if given.mode == "hold":
            self._gate.silence(given.seconds)
        else:
            await self._listener.refuse(given.seconds, request.transport)

    async def access_log(self, request: web.Request) -> Any:
        """List the entries of the access log, with `?since=N` only those whose number is larger."""
        return self._gate.log.since(int(request.query.get("since", "0")))


async def read(request: web.Request, shape: type[T]) -> T:
    """Read the body of an order.

    Raises:
        web.HTTPBadRequest: It does not have that shape.
    """
    try:
        return msgspec.json.decode(await request.read(), type=shape)
    except msgspec.MsgspecError as error:
        raise web.HTTPBadRequest(text=str(error)) from error


def add_orders(
    application: web.Application,
    table: Iterable[tuple[str, str, Order]],
    *,
    body_of: Callable[[int, str], bytes],
    changed: Callable[[], None],
) -> None:
    """Add orders to an application.

    Args:
        application: The application.
        table: Method, path and handler of each.
        body_of: Makes the body of a refusal from its status and its text.
        changed: Called after each order that is not a GET.
    """
    for method, path, order in table:
        application.router.add_route(method, path, _wrap(order, body_of, changed))


def _wrap(
    order: Order, body_of: Callable[[int, str], bytes], changed: Callable[[], None]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            answer = await order(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, body=body_of(error.status, error.text or ""))
        if request.method != "GET":
            changed()
        if answer is None:
            response = web.Response(status=204)
        else:
            status, body = (201, answer.body) if isinstance(answer, Made) else (200, answer)
            response = web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")
        response.force_close()
        return response

    return handle
