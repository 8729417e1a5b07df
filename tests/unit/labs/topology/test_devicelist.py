"""What a learner's session is told of the devices (R000-106 to R000-108, C35)."""

import msgspec
import yaml

from vkprovider.labs.pure.topology.devices import DeviceAccessInfo, devices_for
from vkprovider.labs.pure.topology.topology import Topology, parse

WORKER = "10.0.1.50"


def topology(**tags: list[str]) -> Topology:
    """One `ubuntu` for each label; `hub` is an unmanaged switch."""
    nodes = [
        {
            "id": f"n{number}",
            "label": label,
            "node_definition": "unmanaged_switch" if label == "hub" else "ubuntu",
            "x": 0,
            "y": 0,
            "interfaces": [],
            "tags": has,
        }
        for number, (label, has) in enumerate(tags.items())
    ]
    lab = {"version": "0.1.0", "title": "t", "description": "", "notes": ""}
    return parse(yaml.safe_dump({"lab": lab, "nodes": nodes, "links": []}))


def test_a_workstation_with_console_and_screen_is_delivered_once_by_its_screen() -> None:
    """The worked example."""
    ports = {"workstation_serial": 10011, "workstation_vnc": 10012}
    told = devices_for(
        topology(workstation=["serial:5065", "vnc:5066"]), ports, WORKER, {"username": "cisco", "password": "geheim"}
    )
    assert told == [
        DeviceAccessInfo("workstation", "vnc", WORKER, 10012, "vnc://10.0.1.50:10012", "cisco", "geheim"),
    ]
    assert msgspec.to_builtins(told[0]) == {
        "name": "workstation",
        "protocol": "vnc",
        "host": "10.0.1.50",
        "port": 10012,
        "uri": "vnc://10.0.1.50:10012",
        "username": "cisco",
        "password": "geheim",
    }
    assert "geheim" not in repr(told)


def test_only_visible_devices_that_a_client_reaches_are_delivered() -> None:
    lab = topology(
        R1=["serial:1"],
        server=["hidden", "serial:2"],
        plain=["core"],
        hub=["serial:3"],
        dns=["pat:udp:4:53"],
        web=["http:5", "serial:6"],
    )
    ports = {slot.name: 2000 + number for number, slot in enumerate(lab.template.slots)}
    told = devices_for(lab, ports, "fd00::5", {})
    assert [(one.name, one.uri) for one in told] == [
        ("R1", f"telnet://[fd00::5]:{ports['R1_serial']}"),
        ("web", f"telnet://[fd00::5]:{ports['web_serial']}"),
    ]
    assert {(one.username, one.password) for one in told} == {(None, None)}
    assert devices_for(lab, {}, WORKER, {}) == [], "no port, no way"


def test_a_device_may_have_credentials_of_its_own() -> None:
    lab = topology(R1=["serial:1"], R2=["pat:2:22"])
    secret = {"username": "cisco", "password": "all", "r2.password": "own"}
    told = devices_for(lab, {"R1_serial": 2001, "R2_pat22": 2002}, WORKER, secret)
    assert [(one.name, one.protocol, one.username, one.password) for one in told] == [
        ("R1", "telnet", "cisco", "all"),
        ("R2", "ssh", "cisco", "own"),
    ]


def test_every_way_to_a_device_is_told_on_request() -> None:
    lab = topology(pc=["serial:1", "vnc:2", "tcp:3"])
    ports = {"pc_serial": 2001, "pc_vnc": 2002, "pc_tcp": 2003}
    told = devices_for(lab, ports, WORKER, {}, every_access=True)
    assert [(one.name, one.uri) for one in told] == [
        ("pc", "vnc://10.0.1.50:2002"),
        ("pc", "telnet://10.0.1.50:2001"),
    ], "nobody speaks plain tcp"
