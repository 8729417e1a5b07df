"""The resources that a topology needs of a worker, and the node definitions that say so.

The scheduler sees them as the RuntimeClass's overhead, so these figures are the contract between the stock scheduler
and CML.

The node definitions of a worker are in the status of its CMLWorker, so that every replica knows them. Where several
workers have a definition of one name, the largest figures count, for nobody knows yet which of them a lablet will run
on. How long a device may boot is CML's own, of each worker by itself.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import ResourcesSpec
from vkprovider.lablet.observations import DeviceFigures
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.platform import quantities
from vkprovider.platform.errors import InputError


@dataclass(frozen=True, slots=True)
class NodeDefinition:
    """The resources of one running device of a node definition.

    Attributes:
        licensed: Whether it counts against CML's node licence.
    """

    cpus: int
    ram_mib: int
    licensed: bool = True


_UNKNOWN: Final = NodeDefinition(0, 0)
SHIPPED: Final[Mapping[str, NodeDefinition]] = {
    "alpine": NodeDefinition(1, 512),
    "asav": NodeDefinition(1, 2048),
    "cat-sdwan-controller": NodeDefinition(2, 4096),
    "cat-sdwan-edge": NodeDefinition(2, 5120),
    "cat-sdwan-manager": NodeDefinition(8, 32768),
    "cat-sdwan-validator": NodeDefinition(2, 4096),
    "cat-sdwan-vedge": NodeDefinition(2, 2048),
    "cat8000v": NodeDefinition(1, 4096),
    "cat9000v-q200": NodeDefinition(4, 18432),
    "cat9000v-uadp": NodeDefinition(4, 18432),
    "cat9800": NodeDefinition(2, 6144),
    "chrome": NodeDefinition(1, 2048),
    "csr1000v": NodeDefinition(1, 3072),
    "desktop": NodeDefinition(1, 512),
    "dnsmasq": NodeDefinition(1, 512),
    "external_connector": NodeDefinition(0, 0, licensed=False),
    "firefox": NodeDefinition(1, 2048),
    "fmcv": NodeDefinition(4, 32768),
    "frr": NodeDefinition(1, 256),
    "ftdv": NodeDefinition(4, 8192),
    "iol-xe": NodeDefinition(1, 1024),
    "iol-xe-serial-4eth": NodeDefinition(1, 1024),
    "ioll2-xe": NodeDefinition(1, 1024),
    "ios-xrd-control-plane": NodeDefinition(1, 2048),
    "iosv": NodeDefinition(1, 512),
    "iosvl2": NodeDefinition(1, 768),
    "iosxrv9000": NodeDefinition(4, 20480),
    "net-tools": NodeDefinition(1, 512),
    "nginx": NodeDefinition(1, 256),
    "nxosv9000": NodeDefinition(2, 12288),
    "radius": NodeDefinition(1, 512),
    "server": NodeDefinition(1, 128),
    "snort": NodeDefinition(1, 1024),
    "splunk": NodeDefinition(1, 4096),
    "syslog": NodeDefinition(1, 512),
    "tacplus": NodeDefinition(1, 512),
    "thousandeyes-ea": NodeDefinition(1, 2048),
    "trex": NodeDefinition(1, 512),
    "ubuntu": NodeDefinition(1, 2048),
    "unmanaged_switch": NodeDefinition(0, 0, licensed=False),
    "vwlc": NodeDefinition(1, 2048),
    "wan_emulator": NodeDefinition(1, 512),
    "xrd": NodeDefinition(1, 2048),
}
"""CML's own node definitions with the values that a device inherits; a setting adds site-made ones.

Sources: Cisco's reference platform, CiscoLearning/cml-docker-containers for containers, CiscoDevNet/cml-community for
SD-WAN, wireless and firewalls. Of IOL Cisco publishes none: what users of CML 2.9 report, where it runs in a container.
Most others without a published figure are not here: pagent, iosxrv, nxosv, viptela-edge.
"""


class Resources(msgspec.Struct, frozen=True, gc=False):
    """An amount of each resource that the scheduler knows."""

    cpu_m: int = 0
    memory_bytes: int = 0
    lab_nodes: int = 0
    ports: int = 0

    def covers(self, need: Self) -> bool:
        """Return whether `need` fits into this amount."""
        return all(map(operator.ge, self._amounts(), need._amounts()))

    def shortage(self, need: Self) -> list[str]:
        """List each resource of which `need` exceeds this amount, CPU in cores.

        >>> Resources(cpu_m=64_000).shortage(Resources(cpu_m=120_001))
        ['cpu 120.001 > 64']
        """
        if self.covers(need):
            return []
        mine, wanted = ({**each.quantities(), "cpu": f"{each.cpu_m / 1000:.10g}"} for each in (self, need))
        pairs = zip(self._amounts(), need._amounts(), strict=True)
        return [
            f"{name} {wanted[name]} > {mine[name]}"
            for name, (have, want) in zip(mine, pairs, strict=True)
            if want > have
        ]

    def union(self, other: Self) -> Self:
        """Return the larger amount of each resource."""
        return type(self)(*map(max, self._amounts(), other._amounts()))

    def plus(self, other: Self) -> Self:
        """Add two amounts."""
        return type(self)(*(a + b for a, b in zip(self._amounts(), other._amounts(), strict=True)))

    def minus(self, other: Self) -> Self:
        """Subtract an amount; no resource falls below 0."""
        return type(self)(*(max(0, a - b) for a, b in zip(self._amounts(), other._amounts(), strict=True)))

    def times(self, count: int) -> Self:
        """Multiply an amount."""
        return type(self)(*(amount * count for amount in self._amounts()))

    def _amounts(self) -> tuple[int, int, int, int]:
        return (self.cpu_m, self.memory_bytes, self.lab_nodes, self.ports)

    def quantities(self) -> dict[str, str]:
        """Format the amounts as Kubernetes does: `{"cpu": "2", "memory": "1Gi", "vkprovider.io/lab-nodes": "2", …}`."""
        return {
            "cpu": quantities.format_millicores(self.cpu_m),
            "memory": quantities.format_bytes(self.memory_bytes),
            names.RESOURCE_LAB_NODES: quantities.format_count(self.lab_nodes),
            names.RESOURCE_PORTS: quantities.format_count(self.ports),
        }

    @classmethod
    def from_quantities(cls, amounts: Mapping[str, str]) -> Self:
        """Parse the result of `quantities`; a missing resource is 0.

        Raises:
            ValueError: One of them is not a quantity.
        """
        return cls._parsed(tuple(amounts.items()))

    @classmethod
    @lru_cache(maxsize=256)  # every pod of a definition is charged the same
    def _parsed(cls, items: tuple[tuple[str, str], ...]) -> Self:
        amounts = dict(items)
        return cls(
            quantities.parse_millicores(amounts.get("cpu", "0")),
            quantities.parse_bytes(amounts.get("memory", "0")),
            int(quantities.parse(amounts.get(names.RESOURCE_LAB_NODES, "0"))),
            int(quantities.parse(amounts.get(names.RESOURCE_PORTS, "0"))),
        )


def need_of(topology: Topology, overrides: ResourcesSpec, table: Mapping[str, NodeDefinition] = SHIPPED) -> Resources:
    """Compute the resources of one lablet of a topology.

    Raises:
        InputError: `ResourcesUnknown`: a device has neither CPU nor memory, and its node definition is unknown.
    """
    for device in topology.devices:
        known = table.get(device.definition)
        no_cpus = known is None and device.cpus is None and overrides.cpu is None
        no_ram = known is None and device.ram_mib is None and overrides.memory is None
        if no_cpus or no_ram:
            raise InputError(
                DefinitionReason.RESOURCES_UNKNOWN,
                f"device {device.label!r}: node definition {device.definition!r} is unknown and the topology gives "
                "no cpus and ram for it; give them there, set spec.resources, or extend "
                "VKPROVIDER_NODE_DEFINITIONS; a CMLWorker with spec.stats: On brings those of its CML",
            )
    return known_need(topology, overrides, table)


def known_need(topology: Topology, overrides: ResourcesSpec, table: Mapping[str, NodeDefinition]) -> Resources:
    """Compute the known part of a lablet's resources: a device that `need_of` refuses counts only as a device."""
    cpus = ram_mib = lab_nodes = 0
    for device in topology.devices:
        known = table.get(device.definition, _UNKNOWN)
        cpus += device.cpus if device.cpus is not None else known.cpus
        ram_mib += device.ram_mib if device.ram_mib is not None else known.ram_mib
        lab_nodes += known.licensed
    return Resources(
        cpu_m=quantities.parse_millicores(overrides.cpu) if overrides.cpu is not None else cpus * 1000,
        memory_bytes=quantities.parse_bytes(overrides.memory)
        if overrides.memory is not None
        else ram_mib * quantities.MIB,
        lab_nodes=overrides.lab_nodes if overrides.lab_nodes is not None else lab_nodes,
        ports=overrides.ports if overrides.ports is not None else len(topology.template.slots),
    )


LISTED_MAX: Final = 200
"""The most definitions in the status of a CMLWorker; CML itself ships about 60."""
_NAME_CHARS_MAX: Final = 64
_CPUS_MAX: Final = 1024
_RAM_MIB_MAX: Final = 2**24
_BOOT_S_MAX: Final = 86400 * 5
"""CML takes a day at most; a device with the smallest share of its CPU gets five times as long."""


def lacking(found: Iterable[DeviceFigures]) -> tuple[DeviceFigures, ...]:
    """Return the definitions of a CML that are not shipped and can be believed, by name; the first few if many."""
    unknown = {
        one.name: one
        for one in found
        if one.name not in SHIPPED
        and 0 < len(one.name) <= _NAME_CHARS_MAX
        and 0 < one.cpus <= _CPUS_MAX
        and 0 < one.ram <= _RAM_MIB_MAX
    }
    return tuple(unknown[name] for name in sorted(unknown)[:LISTED_MAX])


def boot_timeouts(found: Iterable[DeviceFigures]) -> dict[str, int]:
    """Return how long CML waits for devices, by node definition, as far as that can be believed; the first if many."""
    told = {one.name: one.boot_timeout for one in found if 0 < one.boot_timeout <= _BOOT_S_MAX}
    return {name: told[name] for name in sorted(told)[:LISTED_MAX] if 0 < len(name) <= _NAME_CHARS_MAX}


class NodeDefinitions(Mapping[str, NodeDefinition]):
    """The known node definitions, by name; `tell` and `tell_timeouts` are the only writers.

    Attributes:
        timeouts: How long CML waits for a device to boot, by node definition, of each CMLWorker by name.
    """

    def __init__(self, given: Mapping[str, NodeDefinition]) -> None:
        """Create the table.

        Args:
            given: The shipped ones and those of the setting; they go before a worker's.
        """
        self._given = given
        self._told: dict[str, tuple[DeviceFigures, ...]] = {}  # by worker
        self._known = dict(given)
        self.timeouts: dict[str, Mapping[str, int]] = {}

    def tell_timeouts(self, worker: str, found: Mapping[str, int] | None) -> None:
        """Note how long a worker waits for its devices; None if it is gone."""
        if found is None:
            self.timeouts.pop(worker, None)
        elif self.timeouts.get(worker) != found:
            self.timeouts[worker] = found

    def tell(self, worker: str, found: Iterable[DeviceFigures]) -> None:
        """Note which definitions a worker has; none if it is gone.

        Args:
            worker: The CMLWorker's name.
            found: As the status of its CMLWorker has them, which others may have edited.
        """
        told = lacking(found)
        if told == self._told.get(worker, ()):
            return
        self._told[worker] = told
        known = dict[str, NodeDefinition]()
        for one in (one for told in self._told.values() for one in told):
            before = known.get(one.name, NodeDefinition(0, 0))
            known[one.name] = NodeDefinition(max(before.cpus, one.cpus), max(before.ram_mib, one.ram))
        self._known = known | dict(self._given)

    def __getitem__(self, name: str) -> NodeDefinition:
        """Return a definition.

        Raises:
            KeyError: It is unknown.
        """
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._known)

    def __len__(self) -> int:
        """Count the definitions."""
        return len(self._known)
