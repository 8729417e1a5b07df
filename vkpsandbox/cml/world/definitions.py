"""Node definitions: the facts that the simulator needs, and CML's JSON of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The facts about a kind of node that the simulator needs."""

    id: str
    cpus: int
    ram_mib: int
    port: Callable[[int], str]
    """Slot number to interface label."""
    ports: int = 4
    """Interfaces that a new node gets."""
    max_ports: int = 32
    serial_ports: int = 1
    vnc: bool = True
    loopback: bool = False
    licensed: bool = True
    """Whether a running node counts against the licence; connectors and unmanaged switches do not."""
    boot_timeout_s: int = 60
    nature: str = "server"
    label: str = ""
    config_name: str = ""
    """Name of the main configuration file; empty if the device has no configuration to extract."""
    driver: str = "KVM"


def _flat(prefix: str, first: int = 0) -> Callable[[int], str]:
    return lambda slot: f"{prefix}{slot + first}"


def _by_four(prefix: str) -> Callable[[int], str]:
    return lambda slot: f"{prefix}{slot // 4}/{slot % 4}"


def _router(name: str, cpus: int, ram_mib: int, port: Callable[[int], str], **other: Any) -> Definition:
    other = {"nature": "router", "loopback": True, "config_name": "ios_config.txt", "vnc": False, **other}
    return Definition(id=name, cpus=cpus, ram_mib=ram_mib, port=port, **other)


_GIG = "GigabitEthernet"
_ALL: Final = (
    Definition(id="alpine", cpus=1, ram_mib=512, port=_flat("eth"), config_name="node.cfg"),
    Definition(id="server", cpus=1, ram_mib=128, port=_flat("eth"), config_name="iosxe_config.txt"),
    Definition(id="desktop", cpus=1, ram_mib=512, port=_flat("eth"), config_name="node.cfg"),
    Definition(id="ubuntu", cpus=1, ram_mib=2048, port=_flat("ens", 2), config_name="user-data", boot_timeout_s=180),
    _router("iosv", 1, 512, _by_four(f"{_GIG}"), serial_ports=2, boot_timeout_s=240),
    _router("iosvl2", 1, 768, _by_four(f"{_GIG}"), nature="switch", boot_timeout_s=240, ports=8),
    _router("csr1000v", 1, 3072, _flat(_GIG, 1), boot_timeout_s=250),
    _router("cat8000v", 1, 4096, _flat(_GIG, 1), serial_ports=2, boot_timeout_s=250),
    _router("cat9000v", 4, 18432, _flat(f"{_GIG}1/0/", 1), nature="switch", boot_timeout_s=900, ports=8),
    _router("nxosv9000", 2, 8192, _flat("Ethernet1/", 1), nature="switch", boot_timeout_s=900, ports=8),
    _router("iosxrv9000", 4, 20480, _flat(f"{_GIG}0/0/0/"), boot_timeout_s=1200),
    _router("asav", 1, 2048, _flat(f"{_GIG}0/"), nature="firewall", loopback=False, vnc=True, boot_timeout_s=240),
    _router("iol-xe", 0, 1000, _by_four("Ethernet"), driver="IOL", boot_timeout_s=30),
    _router("ioll2-xe", 0, 1000, _by_four("Ethernet"), driver="IOL", nature="switch", boot_timeout_s=30),
    Definition(
        id="external_connector",
        cpus=0,
        ram_mib=0,
        port=lambda _: "port",
        ports=1,
        max_ports=1,
        serial_ports=0,
        vnc=False,
        licensed=False,
        boot_timeout_s=5,
        nature="external_connector",
        driver="NONE",
    ),
    Definition(
        id="unmanaged_switch",
        cpus=0,
        ram_mib=0,
        port=_flat("port"),
        ports=8,
        serial_ports=0,
        vnc=False,
        licensed=False,
        boot_timeout_s=5,
        nature="switch",
        driver="NONE",
    ),
)

DEFINITIONS: Final = {definition.id: definition for definition in _ALL}
"""The definitions that the simulator ships, by id."""


def stand_in(name: str) -> Definition:
    """Return a stand-in for an unknown definition: imports of it only get a warning."""
    return Definition(id=name, cpus=1, ram_mib=512, port=_flat("eth"))


def image_id(definition: Definition) -> str | None:
    """Return the image that nodes of this definition run; None if they run none."""
    return None if definition.driver == "NONE" else f"{definition.id}-sim"


def node_definition_json(definition: Definition) -> dict[str, Any]:
    """Render a node definition as CML does, with the values that the simulator really uses."""
    files = [{"name": definition.config_name, "content": "", "editable": True}] if definition.config_name else []
    return {
        "id": definition.id,
        "general": {"nature": definition.nature, "description": definition.label or definition.id, "read_only": True},
        "device": {
            "interfaces": {
                "has_loopback_zero": definition.loopback,
                "default_count": definition.ports,
                "physical": [definition.port(slot) for slot in range(definition.max_ports)],
                "serial_ports": definition.serial_ports,
            }
        },
        "ui": {
            "label_prefix": f"{definition.id}-",
            "icon": definition.nature,
            "label": definition.label or definition.id,
            "visible": True,
            "group": "Cisco" if definition.nature in {"router", "switch", "firewall"} else "Others",
        },
        "sim": {
            "linux_native": {
                "libvirt_domain_driver": definition.driver.lower(),
                "driver": definition.id,
                "ram": definition.ram_mib,
                "cpus": definition.cpus,
                "cpu_limit": 100,
            }
        },
        "boot": {"timeout": definition.boot_timeout_s, "completed": [BOOTED_TEXT] if definition.serial_ports else []},
        "configuration": {
            "generator": {"driver": definition.id if definition.config_name else None},
            "provisioning": {"files": files, "media_type": "iso", "volume_name": "disk0"},
        },
        "inherited": {
            "image": dict.fromkeys(("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size"), True),
            "node": dict.fromkeys(("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size"), True),
        },
        "pyats": {"os": "ios" if definition.nature == "router" else "linux", "series": definition.id},
        "schema_version": "0.0.1",
    }


def image_definition_json(definition: Definition) -> dict[str, Any]:
    """Render the image definition that belongs to a node definition."""
    return {
        "id": image_id(definition),
        "node_definition_id": definition.id,
        "label": f"{definition.id} (simulated)",
        "description": "An image of the simulator; it holds nothing.",
        "disk_image": f"{definition.id}.qcow2",
        "read_only": True,
        "schema_version": "0.0.1",
    }


def from_json(data: dict[str, Any]) -> Definition:
    """Parse the facts of an uploaded node definition; the rest is only stored.

    Raises:
        KeyError: A part that CML requires is missing.
    """
    known = DEFINITIONS.get(data["id"]) or stand_in(data["id"])
    native = data["sim"]["linux_native"]
    interfaces = data["device"]["interfaces"]
    labels: list[str] = interfaces["physical"]
    return Definition(
        id=data["id"],
        cpus=native.get("cpus", known.cpus),
        ram_mib=native.get("ram", known.ram_mib),
        port=lambda slot: labels[slot] if slot < len(labels) else f"port{slot}",
        ports=interfaces.get("default_count", known.ports),
        max_ports=len(labels),
        serial_ports=interfaces.get("serial_ports", 1),
        loopback=interfaces.get("has_loopback_zero", False),
        boot_timeout_s=data["boot"].get("timeout", known.boot_timeout_s),
        nature=data["general"]["nature"],
        label=data["ui"].get("label", ""),
        config_name=known.config_name,
    )


BOOTED_TEXT: Final = "Press RETURN to get started"
"""The console line by which a device says that it has booted."""
