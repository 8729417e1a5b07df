"""The capacity of a worker, and the image definitions that its Node shows.

A kubelet lists its 50 largest images, because the scheduler only prefers Nodes by them. Here whoever reads the list
asks what a worker lacks, so that a part of it would be wrong: it is the whole list, or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.models.worker import CapacitySpec, CMLWorkerSpec
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform import quantities
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import Node

IMAGES_MAX: Final = 1000
_ID_CHARS_MAX: Final = 250


def shown_images(ids: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names that a Node shows, sorted; None if these are too many, or too long, for a Node.

    >>> shown_images(["iosv-159-3-m3", "alpine-3-19"])
    ('cml/alpine-3-19', 'cml/iosv-159-3-m3')
    """
    if len(ids) > IMAGES_MAX or any(len(each) > _ID_CHARS_MAX for each in ids):
        return None
    return tuple(sorted({names.IMAGE_PREFIX + each for each in ids}))


LABS_DEFAULT: Final = 200
_MEMORY_LEAST: Final = 64 * quantities.MIB
"""Less memory than any device of CML needs: its unit was forgotten."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What CML's system API reports, where `stats: On`.

    Attributes:
        cpus, memory_bytes, lab_nodes: The worker's total.
        foreign: What foreign labs use of it.
    """

    cpus: int | None = None
    memory_bytes: int | None = None
    lab_nodes: int | None = None
    foreign: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker offers.

    Attributes:
        total: All that it has.
        labs: How many labs it may hold.
        foreign: What foreign labs use of it.
        fault: Why it is not known, or nothing fits into it; everything is zero then.
    """

    total: Resources = field(default_factory=Resources)
    labs: int = 0
    foreign: Resources = field(default_factory=Resources)
    fault: InputError | None = None

    def without_ports(self, ports: int) -> "Capacity":
        """Return the capacity less the ports that rows of other owners hold in the worker's claims."""
        return replace(self, foreign=msgspec.structs.replace(self.foreign, ports=ports))

    def amounts(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return capacity and allocatable as a Node has them."""
        pods = {"pods": quantities.format_count(self.labs)}
        return self.total.quantities() | pods, self.total.minus(self.foreign).quantities() | pods


def capacity(spec: CMLWorkerSpec, stats: Stats | None, default_range: tuple[int, int], node: Node | None) -> Capacity:
    """Return a worker's capacity; the last one on its Node if CML cannot be asked.

    Args:
        spec: The CMLWorker's.
        stats: What CML reports; None while it is not known.
        default_range: First and last external port where the spec has none.
        node: The worker's Node as it is.
    """
    if small := too_small(spec.capacity):
        return Capacity(fault=InputError(WorkerReason.CAPACITY_TOO_SMALL, small))
    try:
        return capacity_of(spec, stats, default_range)
    except InputError as fault:
        known = _last_known(node) if spec.stats == "On" and node is not None else None
        return known or Capacity(fault=fault)


def too_small(given: CapacitySpec) -> str:
    """Return which amounts of a CMLWorker's capacity leave no room for any lablet; "" if there are none.

    >>> too_small(CapacitySpec(cpu="0", memory="256"))[:95]
    'spec.capacity.cpu is 0; spec.capacity.memory is 256, which is 256 bytes: write its unit, as in '
    """
    amounts = {"cpu": given.cpu, "memory": given.memory, "labs": given.labs, "labNodes": given.lab_nodes}
    found = [
        f"spec.capacity.{name} is {amount}"
        for name, amount in amounts.items()
        if amount is not None and not quantities.parse(amount)
    ]
    if given.memory is not None and 0 < (size := quantities.parse_bytes(given.memory)) < _MEMORY_LEAST:
        found.append(f"spec.capacity.memory is {given.memory}, which is {size} bytes: write its unit, as in 256Gi")
    return f"{'; '.join(found)}. No lablet fits; kubectl cordon keeps lablets away from a worker" if found else ""


def capacity_of(spec: CMLWorkerSpec, stats: Stats | None, default_range: tuple[int, int]) -> Capacity:
    """Return a worker's capacity by its CMLWorker and, where that is silent, by CML.

    Raises:
        InputError: `CapacityUnknown`: neither the CMLWorker nor CML reports how much there is.
    """
    given, reported = spec.capacity, stats or Stats()
    cpus = quantities.parse_millicores(given.cpu) if given.cpu is not None else None
    if cpus is None and reported.cpus is not None:
        cpus = reported.cpus * 1000
    memory = quantities.parse_bytes(given.memory) if given.memory is not None else reported.memory_bytes
    lab_nodes = given.lab_nodes if given.lab_nodes is not None else reported.lab_nodes
    if cpus is None or memory is None or lab_nodes is None:
        amounts = {"cpu": cpus, "memory": memory, "labNodes": lab_nodes}
        missing = ", ".join(name for name, amount in amounts.items() if amount is None)
        how = "and CML does not report it; set it" if spec.stats == "On" else "set it, or set spec.stats: On to ask CML"
        raise InputError(WorkerReason.CAPACITY_UNKNOWN, f"spec.capacity lacks {missing}; {how}")
    ports = spec.port_range.size if spec.port_range is not None else default_range[1] - default_range[0] + 1
    labs = given.labs if given.labs is not None else LABS_DEFAULT
    return Capacity(Resources(cpus, memory, lab_nodes, max(0, ports)), labs, reported.foreign)


def _last_known(node: Node) -> Capacity | None:
    """Return the capacity that a Node reports; None if it has no usable one."""
    try:
        total = Resources.from_quantities(node.status.capacity)
        left = Resources.from_quantities(node.status.allocatable)
        labs = int(quantities.parse(node.status.capacity.get("pods", "0")))
    except ValueError:
        return None
    return Capacity(total, labs, total.minus(left)) if total.cpu_m and labs else None
