"""Test orders that only a simulated controller has: passwords, tokens, licences, its compute host."""

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from vkpsim.cml.errors import CmlError, body_of
from vkpsim.http.orders import GateOrders, Order, add_orders, read

if TYPE_CHECKING:
    from vkpsim.cml.server import CmlSimulator


class Password(msgspec.Struct, forbid_unknown_fields=True):
    """A new password: of the named user, or of the first one."""

    password: str
    username: str | None = None


class Licence(msgspec.Struct, forbid_unknown_fields=True):
    """What is licensed."""

    quota: int | None = None
    registered: bool | None = None


class Compute(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the compute host is connected."""

    connected: bool


class Admin:
    """The handlers of one simulator."""

    def __init__(self, simulator: "CmlSimulator") -> None:
        self._sim = simulator

    async def password(self, request: web.Request) -> Any:
        """Change a password and end the user's sessions."""
        given = await read(request, Password)
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
        """Power a device off from inside; it is named by id or label."""
        world, now = self._sim.simulation.world, self._sim.now()
        world.advance(now)
        wanted = request.match_info["node"]
        try:
            lab = world.lab(request.match_info["lab"])
            node = next((node for node in lab.nodes.values() if wanted in {node.id, node.label}), None)
            world.crash(now, node or world.node(lab.id, wanted))
        except CmlError as error:
            raise web.HTTPNotFound(text=error.description) from error

    async def reboot(self, _request: web.Request) -> Any:
        """Restart the host: whatever was active is stopped."""
        now = self._sim.now()
        self._sim.simulation.world.advance(now)
        self._sim.simulation.world.reboot(now)

    async def compute(self, request: web.Request) -> Any:
        """Lose or regain the compute host."""
        now = self._sim.now()
        self._sim.simulation.world.advance(now)
        self._sim.simulation.world.set_connected(now, connected=(await read(request, Compute)).connected)

    async def licence(self, request: web.Request) -> Any:
        """Change the licence quota, or the registration."""
        given = await read(request, Licence)
        world, now = self._sim.simulation.world, self._sim.now()
        world.advance(now)
        if given.registered is not None:
            world.registered = given.registered
        if given.quota is not None:
            world.set_quota(now, given.quota)


def table(simulator: "CmlSimulator") -> list[tuple[str, str, Order]]:
    """Return method, path and handler of each order that only a controller has."""
    admin = Admin(simulator)
    return [
        ("PUT", "/sim/password", admin.password),
        ("DELETE", "/sim/sessions", admin.end_sessions),
        ("POST", "/sim/nodes/{lab}/{node}/crash", admin.crash),
        ("POST", "/sim/reboot", admin.reboot),
        ("POST", "/sim/compute", admin.compute),
        ("POST", "/sim/licence", admin.licence),
    ]


def add_routes(application: web.Application, simulator: "CmlSimulator") -> None:
    """Add the routes under `/sim`."""
    orders = [*table(simulator), *GateOrders(simulator.endpoint, simulator.listener).table]
    add_orders(application, orders, body_of=body_of, changed=simulator.changed)
