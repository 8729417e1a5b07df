"""What the simulator knows of a kind of node: its resources, interfaces, consoles and day-0 configuration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

BOOTED_TEXT: Final = "Press RETURN to get started"
"""The console line by which a device says that it has booted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The facts about a kind of node that the simulator needs."""

    id: str
    cpus: int | None
    """None for a kind that has no virtual machine: CML leaves CPU and memory out of its definition."""
    ram_mib: int | None
    port: Callable[[int], str]
    """Slot number to interface label."""
    ports: int = 4
    """Interfaces that a new node gets."""
    min_ports: int | None = None
    """Interfaces that a node needs to start, as CML states it; the simulator does not enforce it."""
    max_ports: int = 32
    static_ethernets: int | None = None
    """Ethernet ports of an IOL that come before its serial ones; None if it has no serial ones."""
    serial_ports: int = 1
    default_console: int | None = None
    vnc: bool = False
    loopback: bool = False
    licensed: bool = True
    """Whether a running node counts against the licence; connectors and unmanaged switches do not."""
    boot_timeout_s: int = 60
    """When CML calls a device BOOTED that has not said so itself."""
    nature: str = "server"
    description: str = ""
    label: str = ""
    config_name: str = ""
    """Name of the main configuration file; empty if the device has no configuration."""
    day0: str = ""
    """Content of the main configuration file of a new node."""
    extracts: bool = False
    """Whether the configuration of a running node can be extracted."""
    driver: str = "KVM"


def flat(prefix: str, first: int = 0) -> Callable[[int], str]:
    """Label interfaces with one number, as in `eth0`."""
    return lambda slot: f"{prefix}{slot + first}"


def by_four(prefix: str) -> Callable[[int], str]:
    """Label interfaces in modules of four: `Ethernet1/0` follows `Ethernet0/3`."""
    return lambda slot: f"{prefix}{slot // 4}/{slot % 4}"


def after(*first: str, then: Callable[[int], str]) -> Callable[[int], str]:
    """Label the first interfaces by name, and the rest by `then`, which counts from 0 again."""
    return lambda slot: first[slot] if slot < len(first) else then(slot - len(first))


def stand_in(name: str) -> Definition:
    """Return a stand-in for an unknown definition: imports of it only get a warning."""
    return Definition(id=name, cpus=1, ram_mib=512, port=flat("eth"), vnc=True)


def image_id(definition: Definition) -> str | None:
    """Return the image that nodes of this definition run; None if they run none."""
    return None if definition.driver == "NONE" else f"{definition.id}-sim"
