"""The pyATS testbed of a lab, as pyATS and Cisco's `ClPyats` read it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import Plain, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings

TOPOLOGY = """
lab: {version: 0.3.0, title: 'a: "b" # c'}
nodes:
- {id: n0, label: '- r: 1', node_definition: iosv, x: 0, y: 0, interfaces: [
   {id: i0, label: Loopback0, type: loopback}, {id: i1, label: GigabitEthernet0/0, slot: 0, type: physical}]}
- {id: n1, label: "on", node_definition: nxosv9000, x: 0, y: 0, interfaces: [{id: i0, label: mgmt0, slot: 0,
   type: physical}]}
- {id: n2, label: '{h}', node_definition: alpine, x: 0, y: 0}
- {id: n3, label: Überweg, node_definition: iosxrv9000, x: 0, y: 0}
- {id: n4, label: '*fw', node_definition: asav, x: 0, y: 0}
- {id: n5, label: out, node_definition: external_connector, x: 0, y: 0}
links: [{id: l0, n1: n0, i1: i1, n2: n1, i2: i0}]
"""
"""Title and labels that YAML would read as something else if they were not quoted."""


@pytest.fixture
async def client(simulator: CmlSimulator) -> AsyncIterator[Plain]:
    async with plain(simulator) as client:
        yield client


async def read_testbed(client: Plain, lab: str, query: str = "") -> Any:
    status, text = await client.api("GET", f"/labs/{lab}/pyats_testbed{query}")
    assert status == 200, text
    return yaml.safe_load(text)


async def test_devices_stand_behind_the_terminal_server(client: Plain) -> None:
    found = await read_testbed(client, await client.load(TOPOLOGY))
    assert found["testbed"]["name"] == 'a: "b" # c'
    devices = {label: (one["os"], one.get("platform"), one["type"]) for label, one in found["devices"].items()}
    assert devices == {
        "terminal_server": ("linux", None, "linux"),
        "- r: 1": ("ios", "iosv", "router"),
        "on": ("nxos", "n9k", "switch"),
        "{h}": ("linux", "alpine", "server"),
        "Überweg": ("iosxr", "iosxrv9k", "router"),
        "*fw": ("asa", "asav", "firewall"),
    }
    assert found["devices"]["- r: 1"]["connections"]["a"] == {
        "protocol": "telnet",
        "proxy": "terminal_server",
        "command": 'open /a: "b" # c/- r: 1/0',
    }
    assert found["devices"]["on"]["credentials"] == {"default": {"username": "cisco", "password": "cisco"}}
    router, switch = (found["topology"][label]["interfaces"] for label in ("- r: 1", "on"))
    assert router["Loopback0"] == {"type": "loopback"}
    assert router["GigabitEthernet0/0"] == switch["mgmt0"]


@pytest.mark.parametrize(
    ("query", "ip", "port"),
    [
        ("", "127.0.0.1", None),
        ("?hostname=cml.example.com", "cml.example.com", 22),
        ("?hostname=cml.example.com:1122", "cml.example.com", 1122),
        ("?hostname=[2001:db8::7]:2222", "2001:db8::7", 2222),
        ("?hostname=", "127.0.0.1", None),
    ],
)
async def test_the_address_of_the_terminal_server(client: Plain, query: str, ip: str, port: int | None) -> None:
    found = await read_testbed(client, await client.load(), query)
    cli = found["devices"]["terminal_server"]["connections"]["cli"]
    assert cli == {"protocol": "ssh", "ip": ip, "port": port or 22}


async def test_an_address_that_is_none_is_refused(client: Plain) -> None:
    lab = await client.load()
    status, answer = await client.api("GET", f"/labs/{lab}/pyats_testbed?hostname=cml:seventy")
    assert (status, "hostname" in answer["description"]) == (400, True)


async def test_logins_are_those_of_the_node_or_else_of_its_definition() -> None:
    async with (
        CmlSimulator(Settings(password=PASSWORD, version="2.10.0+build.13")) as simulator,
        plain(simulator) as client,
    ):
        definition = (await client.api("GET", "/node_definitions/alpine?json=true"))[1]
        definition |= {"id": "mine", "pyats": {"os": "linux", "username": "root", "password": "secret"}}
        assert (await client.api("POST", "/node_definitions", json=definition))[0] == 200
        lab = await client.load("""
lab: {version: 0.3.1, title: logins}
nodes:
- {id: n0, label: a, node_definition: mine}
- {id: n1, label: b, node_definition: iosv, pyats: {username: ada, password: pw, enable_password: en}}
links: []
""")
        devices = (await read_testbed(client, lab))["devices"]
    assert devices["a"]["credentials"] == {"default": {"username": "root", "password": "secret"}}
    assert devices["b"]["credentials"] == {
        "default": {"username": "ada", "password": "pw"},
        "enable": {"password": "en"},
    }


async def test_a_device_that_its_definition_keeps_out_of_testbeds_is_left_out(client: Plain) -> None:
    definition = (await client.api("GET", "/node_definitions/alpine?json=true"))[1]
    definition |= {"id": "hidden", "pyats": {"os": "linux", "use_in_testbed": False}}
    assert (await client.api("POST", "/node_definitions", json=definition))[0] == 200
    _, lab = await client.api("POST", "/labs", json={"title": "t"})
    body = {"label": "h", "node_definition": "hidden", "x": 0, "y": 0}
    assert (await client.api("POST", f"/labs/{lab['id']}/nodes", json=body))[0] == 200
    assert set((await read_testbed(client, lab["id"]))["devices"]) == {"terminal_server"}
