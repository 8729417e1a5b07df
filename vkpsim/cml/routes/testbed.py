"""The pyATS testbed of a lab: its devices behind the controller's terminal server, and their links."""

from typing import Any
from urllib.parse import urlsplit

import yaml

from vkpsim.cml.calls import Call, Route, Text
from vkpsim.cml.errors import invalid
from vkpsim.cml.routes.definitions import node_definitions
from vkpsim.cml.world.definition_json import node_definition_json
from vkpsim.cml.world.model import Lab, Node

_SSH = 22
_USER = "cisco"
"""User and password of a device whose definition names none."""


def pyats_testbed(call: Call) -> Text:
    """Return the testbed; `hostname` names another address of the terminal server, perhaps with a port."""
    lab = call.lab()
    known = node_definitions(call)
    devices, ports = {}, {}
    for node in lab.nodes.values():
        definition = known.get(node.node_definition) or node_definition_json(
            call.sim.world.definition(node.node_definition)
        )
        pyats = definition.get("pyats", {})
        if definition["device"]["interfaces"].get("serial_ports") and pyats.get("use_in_testbed", True):
            devices[node.label] = _device(lab, node, definition)
            ports[node.label] = {"interfaces": _interfaces(node)}
    own = urlsplit(f"//{call.headers.get('Host', 'localhost')}").hostname
    devices["terminal_server"] = _terminal_server(call.query.get("hostname") or own or "localhost")
    document = {"testbed": {"name": lab.title}, "devices": devices, "topology": ports}
    return Text(yaml.safe_dump(document, allow_unicode=True), "application/yaml")


def _terminal_server(address: str) -> dict[str, Any]:
    try:
        split = urlsplit(f"//{address}")
        host, port = split.hostname or address, split.port
    except ValueError as error:
        raise invalid(f"Value error, {error}", ("query", "hostname")) from error
    return {
        "os": "linux",
        "type": "linux",
        "credentials": {"default": {"username": "change_me", "password": "change_me"}},
        "connections": {"cli": {"protocol": "ssh", "ip": host, "port": port or _SSH}},
    }


def _device(lab: Lab, node: Node, definition: dict[str, Any]) -> dict[str, Any]:
    pyats = definition.get("pyats", {})
    own = {name: value for name, value in (node.pyats or {}).items() if value}
    default = {name: own.get(name) or pyats.get(name) or _USER for name in ("username", "password")}
    enable = {"enable": {"password": own["enable_password"]}} if "enable_password" in own else {}
    return {
        "os": pyats.get("os", "linux"),
        **({"platform": pyats["series"]} if "series" in pyats else {}),
        "type": definition["general"]["nature"],
        "credentials": {"default": default, **enable},
        "connections": {
            "defaults": {"class": "unicon.Unicon"},
            "a": {"protocol": "telnet", "proxy": "terminal_server", "command": f"open /{lab.title}/{node.label}/0"},
        },
    }


def _interfaces(node: Node) -> dict[str, dict[str, str]]:
    return {
        interface.label: {"type": "loopback" if interface.slot is None else "ethernet"}
        | ({"link": interface.link} if interface.link else {})
        for interface in node.interfaces.values()
    }


ROUTES = (Route("GET", "/labs/{lab}/pyats_testbed", pyats_testbed),)
