"""CML's JSON of node and image definitions: the full one, the simplified one, and what an upload states."""

from typing import Any, Final

from vkpsim.cml.world.definitions import BOOTED_TEXT, Definition, image_id, stand_in
from vkpsim.cml.world.platforms import DEFINITIONS

INHERITED: Final = ("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size")
"""Figures that a node inherits from its image definition, and that from its node definition."""
_DOMAINS: Final = {"KVM": "kvm", "IOL": "iol", "DOCKER": "docker", "NONE": "none"}
_SIMULATION_DRIVERS: Final = {"iol-xe": "iol", "iol-xe-serial-4eth": "iol", "ioll2-xe": "iol_l2", "desktop": "server"}
_KNOWN_DRIVERS: Final = (
    *("asav", "alpine", "coreos", "csr1000v", "external_connector", "iosv", "iosvl2", "iosxrv", "iosxrv9000"),
    *("nxosv", "nxosv9000", "pagent", "server", "trex", "ubuntu", "unmanaged_switch", "wan_emulator"),
)
"""Simulation drivers of CML that are named as their node definition."""
_SYSTEMS: Final = (
    (("iosxrv9000",), "iosxr", "iosxrv9k"),
    (("iosxrv",), "iosxr", "iosxrv"),
    (("ios-xrd",), "iosxr", "xrd"),
    (("nxosv9000",), "nxos", "n9k"),
    (("nxosv",), "nxos", "nxosv"),
    (("asav",), "asa", "asav"),
    (("ftdv",), "fxos", "ftd"),
    (("iosvl2",), "ios", "iosvl2"),
    (("iosv", "pagent"), "ios", "iosv"),
    (("frr",), "ios", "frr"),
    (("iol", "ioll2"), "iosxe", "iol"),
    (("csr1000v",), "iosxe", "csr1000v"),
    (("cat8000v",), "iosxe", "cat8k"),
    (("cat9",), "iosxe", "cat9k"),
    (("cat-sdwan-edge", "iosxe-sdwan"), "iosxe", "sdwan"),
    (("cat-sdwan", "viptela"), "viptela", "vedge"),
)
"""The beginning of a node definition's name, and what unicon calls its operating system and series."""


def node_definition_json(definition: Definition) -> dict[str, Any]:
    """Render a node definition as CML does; figures that a kind does not have are left out."""
    return {
        "id": definition.id,
        "general": _general(definition),
        "device": {"interfaces": _interfaces(definition)},
        "ui": _ui(definition),
        "sim": {"linux_native": _native(definition)},
        "boot": {"timeout": definition.boot_timeout_s}
        | ({"completed": [BOOTED_TEXT]} if definition.serial_ports else {}),
        "configuration": _configuration(definition),
        "inherited": {
            "image": dict.fromkeys(INHERITED, definition.cpus is not None),
            "node": dict.fromkeys(INHERITED, definition.cpus is not None),
        },
        "schema_version": "0.0.1",
    } | ({"pyats": _pyats(definition)} if definition.serial_ports else {})


def simplified_json(full: dict[str, Any], image_ids: list[str]) -> dict[str, Any]:
    """Reduce a full node definition, shipped or uploaded, to what a user interface needs."""
    interfaces = full["device"]["interfaces"]
    native = full["sim"]["linux_native"]
    files = full.get("configuration", {}).get("provisioning", {}).get("files", [])
    pyats = full.get("pyats", {})
    shown = {f"show_{name}": bool(full.get("inherited", {}).get("node", {}).get(name)) for name in INHERITED}
    figures = {name: native[name] for name in INHERITED if native.get(name) is not None}
    runs = native["libvirt_domain_driver"] != "none"
    return {
        "id": full["id"],
        "general": full["general"],
        "device": full["device"],
        "ui": {
            **full["ui"],
            "has_configuration": bool(files),
            "has_config_extraction": bool(pyats.get("config_extract_command")),
            **shown,
        },
        "sim": {
            **figures,
            "console": bool(interfaces.get("serial_ports")),
            "simulate": runs,
            "vnc": bool(native.get("video")),
            "custom_mac": runs,
            "parameters": full["sim"].get("parameters", {}),
        },
        "image_definitions": image_ids,
    }


def image_definition_json(definition: Definition) -> dict[str, Any]:
    """Render the image definition that belongs to a node definition; null figures are inherited."""
    return {
        "id": image_id(definition),
        "node_definition_id": definition.id,
        "label": f"{definition.id} (simulated)",
        "description": "An image of the simulator; it holds nothing.",
        "disk_image": f"{definition.id}.qcow2",
        "read_only": True,
        "configuration": None,
        "pyats": None,
        **dict.fromkeys(INHERITED),
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
    files = data.get("configuration", {}).get("provisioning", {}).get("files") or [{"name": "", "content": ""}]
    return Definition(
        id=data["id"],
        cpus=native.get("cpus", known.cpus),
        ram_mib=native.get("ram", known.ram_mib),
        port=lambda slot: labels[slot] if slot < len(labels) else f"port{slot}",
        ports=interfaces.get("default_count", known.ports),
        max_ports=len(labels),
        serial_ports=interfaces.get("serial_ports", 1),
        loopback=interfaces.get("has_loopback_zero", False),
        vnc=bool(native.get("video")),
        boot_timeout_s=data["boot"].get("timeout", known.boot_timeout_s),
        nature=data["general"]["nature"],
        label=data["ui"].get("label", ""),
        config_name=files[0]["name"],
        day0=files[0].get("content") or "",
        extracts=bool(data.get("pyats", {}).get("config_extract_command")) or known.extracts,
    )


def _general(definition: Definition) -> dict[str, Any]:
    return {"nature": definition.nature, "description": definition.description or definition.id, "read_only": True}


def _interfaces(definition: Definition) -> dict[str, Any]:
    optional = {
        "min_count": definition.min_ports,
        "default_console": definition.default_console,
        "iol_static_ethernets": definition.static_ethernets,
    }
    return {
        "has_loopback_zero": definition.loopback,
        "default_count": definition.ports,
        "physical": [definition.port(slot) for slot in range(definition.max_ports)],
        "serial_ports": definition.serial_ports,
        **{name: value for name, value in optional.items() if value is not None},
        **({"loopback": ["Loopback0"]} if definition.loopback else {}),
    }


def _ui(definition: Definition) -> dict[str, Any]:
    cisco = definition.nature in {"router", "switch", "firewall"} and definition.driver in {"KVM", "IOL"}
    return {
        "label_prefix": "ext-conn-" if definition.id == "external_connector" else f"{definition.id}-",
        "icon": "cloud" if definition.nature == "external_connector" else definition.nature,
        "label": definition.label or definition.id,
        "visible": True,
        "group": "Cisco" if cisco else "Others",
        "description": definition.description or definition.id,
    }


def _native(definition: Definition) -> dict[str, Any]:
    name = definition.id
    driver = _SIMULATION_DRIVERS.get(name) or (name if name in _KNOWN_DRIVERS else "server")
    figures = {"ram": definition.ram_mib, "cpus": definition.cpus}
    return {
        "libvirt_domain_driver": _DOMAINS[definition.driver],
        "driver": driver,
        **{key: value for key, value in figures.items() if value},
        **(_drivers(definition) if definition.driver == "KVM" else {}),
        "cpu_limit": 100,
        **({"video": {"model": "vga", "memory": 16}} if definition.vnc else {}),
    }


def _drivers(definition: Definition) -> dict[str, str]:
    """Return the devices of a virtual machine; CML requires both with KVM."""
    disk = "sata" if definition.id == "nxosv9000" else "virtio"
    return {"disk_driver": disk, "nic_driver": "e1000" if definition.extracts and definition.loopback else "virtio"}


def _configuration(definition: Definition) -> dict[str, Any]:
    if not definition.config_name:
        return {"generator": {"driver": None}}
    known = definition.id if definition.id in _KNOWN_DRIVERS and definition.extracts else None
    file = {"name": definition.config_name, "content": definition.day0, "editable": True}
    bare = definition.driver == "NONE"
    media = {"media_type": "raw" if bare else "iso", "volume_name": "disk" if bare else "disk0"}
    return {"generator": {"driver": known}, "provisioning": {"files": [file], **media}}


def _pyats(definition: Definition) -> dict[str, Any]:
    known = ((os, series) for names, os, series in _SYSTEMS if definition.id.startswith(names))
    os, series = next(known, ("linux", definition.id))
    extraction = {"config_extract_command": "show running-config"} if definition.extracts else {}
    return {"os": os, "series": series, "use_in_testbed": True, **extraction}
