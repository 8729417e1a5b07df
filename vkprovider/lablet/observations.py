"""What is observed of a worker, in CML's own words: its labs, and what it has and uses."""

from typing import Final

import msgspec

DEFINED: Final = "DEFINED_ON_CORE"
QUEUED: Final = "QUEUED"
STARTING: Final = "STARTING"
STARTED: Final = "STARTED"
BOOTED: Final = "BOOTED"
STOPPED: Final = "STOPPED"
DISCONNECTED: Final = "DISCONNECTED"

ACTIVE: Final = frozenset({QUEUED, STARTING, STARTED, BOOTED, DISCONNECTED})
"""States in which a device holds resources; a lab with one of them must be stopped before it is wiped."""
BOOTING: Final = frozenset({QUEUED, STARTING, STARTED})
KNOWN: Final = ACTIVE | {DEFINED, STOPPED}

IMPORT_S: Final = 60.0
"""The deadline of an import."""


class DeviceFact(msgspec.Struct, frozen=True, gc=False):
    """One device of a lab.

    Attributes:
        state: CML's word; one that is not in `KNOWN` never counts as success.
    """

    id: str
    label: str
    definition: str
    state: str


class LinkFact(msgspec.Struct, frozen=True, gc=False):
    """One link of a lab.

    Attributes:
        label: CML's: `r1-GigabitEthernet0/0<->r2-eth0`.
        nodes: The ids of its devices.
        capture_key: Of its capture; "" if none runs.
    """

    id: str
    label: str
    nodes: tuple[str, str]
    capture_key: str = ""


class CaptureFact(msgspec.Struct, frozen=True, gc=False):
    """A capture that runs.

    Attributes:
        key: By which its packets are read.
        packets: How many there are until now.
    """

    key: str
    packets: int


class DeviceFigures(msgspec.Struct, frozen=True, gc=False):
    """What one running device of a node definition needs, as CML says.

    Attributes:
        name: The node definition.
        cpus: Cores.
        ram: MiB; 0 for a device that runs no machine.
        boot_timeout: Seconds after which CML calls the device BOOTED, whatever it does; 0 if CML does not say.
    """

    name: str
    cpus: int
    ram: int
    boot_timeout: int = 0


class WorkerUsage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a worker has and uses; None for a figure that CML does not report.

    Attributes:
        host: Id of the controller's own compute host; "" if CML does not report it.
        cpus: Cores, over all compute hosts.
        cpus_allocated: Cores given to the nodes of all users' labs.
        memory_bytes: Memory, over all compute hosts.
        memory_used_bytes: Memory in use.
        memory_allocated_bytes: Memory given to the nodes of all users' labs.
        licences: Licensed nodes that may run at once.
        licences_started: Licensed nodes that run.
    """

    host: str = ""
    cpus: int | None = None
    cpus_allocated: int | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_allocated_bytes: int | None = None
    licences: int | None = None
    licences_started: int | None = None
