"""A whole controller: its labs, its accounts, its settings that may change. Pure."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from vkpsim.cml.accounts import Accounts
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.world.boots import BootTimes
from vkpsim.cml.world.definition_json import from_json
from vkpsim.cml.world.host import add
from vkpsim.cml.world.model import Lab, Resources
from vkpsim.cml.world.topology import VERSIONS, VERSIONS_2_10
from vkpsim.cml.world.world import World

DEFAULT_VERSION: Final = "2.9.1+build.7"
LICENCES: Final = ("CML_Enterprise", "CML_Education", "CML_Personal", "CML_Personal40")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a simulated controller. The password is required: a default one would end up in use."""

    password: str = field(repr=False)
    username: str = "admin"
    version: str = DEFAULT_VERSION
    hostname: str = "cml-controller"
    boot_seconds: tuple[float, float] = (1.0, 1.0)
    boot_seconds_by_definition: dict[str, tuple[float, float]] = field(default_factory=dict)
    boot_speed: float = 1.0
    """How many seconds of a boot, and of the time-out of its node definition, pass in one."""
    stop_seconds: float = 0.0
    """How long a node keeps running after a stop request."""
    console_baud: int = 0
    """The speed of serial lines, in bit/s: a device drops keys that come faster; 0: it reads them at once."""
    seed: int = 0
    licence_nodes: int = 500
    cpus: int = 256
    memory_gib: int = 1024

    def boot_times(self) -> BootTimes:
        """Make the table of boot times."""
        by_definition, speed = self.boot_seconds_by_definition, self.boot_speed
        return BootTimes(*self.boot_seconds, seed=self.seed, by_definition=by_definition, speed=speed)


class System(msgspec.Struct, kw_only=True):
    """What an administrator can change, apart from labs and accounts."""

    product_uuid: str
    product_license: str = "CML_Enterprise"
    ssms: str = "https://smartreceiver.cisco.com/licservice/license"
    proxy: dict[str, Any] = msgspec.field(default_factory=lambda: {"server": None, "port": None})
    reservation_mode: bool = False
    maintenance: bool = False
    maintenance_notice: str | None = None
    notices: dict[str, dict[str, Any]] = {}
    connectors: dict[str, dict[str, Any]] = {}
    repositories: dict[str, dict[str, Any]] = {}
    node_definitions: dict[str, dict[str, Any]] = {}
    """Uploaded or changed definitions, as JSON."""
    image_definitions: dict[str, dict[str, Any]] = {}
    dropped_images: list[str] = []
    new_host_state: str = "READY"
    telemetry: str = "unset"
    auth_config: dict[str, Any] = msgspec.field(default_factory=lambda: {"method": "local"})


def nat_bridge(connector_id: str) -> dict[str, Any]:
    """Return the bridge whose network CML translates to its host's."""
    operational = {"forwarding": "NAT", "interface": None, "stp": False, "ip_networks": ["192.168.255.1/24"]}
    return _bridge(connector_id, "virbr0", "NAT", operational)


def system_bridge(connector_id: str) -> dict[str, Any]:
    """Return the bridge into the network of CML's host."""
    operational = {"forwarding": "BRIDGE", "interface": "ens192", "stp": False, "ip_networks": []}
    return _bridge(connector_id, "bridge0", "System Bridge", operational)


def _bridge(connector_id: str, device: str, label: str, operational: dict[str, Any]) -> dict[str, Any]:
    flags = {"label": label, "protected": False, "snooped": True}
    state = {**flags, **operational, "mtu": 1500, "exists": True, "enabled": True}
    return {"id": connector_id, "device_name": device, **flags, "tags": [label], "allowed": True, "operational": state}


class Snapshot(msgspec.Struct, kw_only=True):
    """What the state file holds."""

    labs: dict[str, Lab]
    accounts: Accounts
    system: System
    compute_id: str
    licences: int
    launches: int
    connected: bool
    admission_state: str
    registered: bool


class Simulation:
    """A controller without its network: handlers see it through a `calls.Call`."""

    def __init__(self, settings: Settings, now: float, new_id: Callable[[], str]) -> None:
        self.settings = settings
        self.version = _release(settings.version)
        self.new_id = new_id
        total = Resources(settings.licence_nodes, settings.cpus * 100, settings.memory_gib * 1024)
        self.world = World(total=total, boot_times=settings.boot_times(), new_id=new_id, stop_s=settings.stop_seconds)
        self.system = System(product_uuid=new_id())
        for connector in (nat_bridge(new_id()), system_bridge(new_id())):
            self.system.connectors[connector["id"]] = connector
        self.accounts = Accounts(secret=new_id())
        self.accounts.put_user(now, new_id(), settings.username, settings.password, admin=True)

    @property
    def topology_versions(self) -> tuple[str, ...]:
        """Versions of topology files that this release reads; the last one is what it writes."""
        return VERSIONS_2_10 if self.at_least(2, 10) else VERSIONS

    def at_least(self, major: int, minor: int) -> bool:
        """Return whether the simulated release is this one or a later one."""
        return self.version >= (major, minor)

    def snapshot(self) -> Snapshot:
        """Return the state that must survive a restart; it shares its data with the simulation."""
        world = self.world
        return Snapshot(
            labs=world.labs,
            accounts=self.accounts,
            system=self.system,
            compute_id=world.host.id,
            licences=world.host.total.licences,
            launches=world.launches,
            connected=world.host.connected,
            admission_state=world.host.admission_state,
            registered=world.registered,
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a stored state; its passwords win over that of the settings."""
        world = self.world
        self.accounts, self.system = snapshot.accounts, snapshot.system
        world.host.id, world.launches = snapshot.compute_id, snapshot.launches
        world.host.total.licences = snapshot.licences
        world.host.connected, world.registered = snapshot.connected, snapshot.registered
        world.host.admission_state = snapshot.admission_state
        for name, definition in self.system.node_definitions.items():
            world.definitions[name] = from_json(definition)
        world.resume(snapshot.labs)

    def check_pool(self, user_id: str, lab: Lab, node_ids: list[str]) -> None:
        """Check the resource pool of the user who starts nodes.

        Raises:
            CmlError: The pool has too little left.
        """
        pool_id = self.accounts.user(user_id).resource_pool
        if pool_id is None:
            return
        pool = self.accounts.pool(pool_id)
        usage = self.pool_usage(pool_id)
        for node_id in node_ids:
            node = lab.nodes[node_id]
            usage = add(usage, self.world.needs(node))
            node.resource_pool = pool_id
        limits = ((pool.licenses, usage.licences), (pool.ram, usage.ram_mib), (pool.cpus, usage.cpu_points / 100))
        if any(limit is not None and used > limit for limit, used in limits):
            raise CmlError(E.CANNOT_START, reason=f"resource pool {pool.label} is exhausted.")

    def pool_usage(self, pool_id: str) -> Resources:
        """Add up what running nodes of a pool hold."""
        held = [
            node.held
            for lab in self.world.labs.values()
            for node in lab.nodes.values()
            if node.resource_pool == pool_id and node.held is not None
        ]
        return functools.reduce(add, held, Resources(0, 0, 0))


def _release(version: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)\.", version)
    if match is None:
        raise ValueError(f"{version!r} is not a CML version such as {DEFAULT_VERSION}")
    return int(match[1]), int(match[2])
