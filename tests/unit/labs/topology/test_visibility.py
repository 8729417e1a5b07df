"""Which devices learners see, and what they reach them by."""

from typing import Any

import pytest
import yaml

from vkprovider.lablet.ports import DeviceAccess, PortTemplate, accesses, parse_tag, why_hidden
from vkprovider.labs.pure.topology.topology import parse


@pytest.mark.parametrize(
    ("definition", "tags", "why"),
    [
        ("ubuntu-desktop-24-04-v2", ["serial:5065", "vnc:5066"], None),
        ("iosv", ["serial:5070"], None),
        ("iosv", ["core", "http:80"], None),
        ("external_connector", [], "no port tag"),
        ("external_connector", ["pat:1:2"], "infrastructure"),
        ("unmanaged_switch", ["serial:1"], "infrastructure"),
        ("server", ["hidden", "serial:5099"], "hidden"),
        ("external_connector", ["hidden"], "hidden"),
        ("iosv", ["Hidden", "core"], "no port tag"),
        ("iosv", ["serial"], "no port tag"),
    ],
)
def test_the_first_rule_that_applies_hides_a_device(definition: str, tags: list[str], why: str | None) -> None:
    """R000-083 to R000-086."""
    found = why_hidden(definition, tags)
    assert found is None if why is None else why in str(found)


@pytest.mark.parametrize(
    ("tags", "ways"),
    [
        (["serial:5065", "vnc:5066"], [("d_vnc", "vnc"), ("d_serial", "telnet")]),
        (["serial:1", "pat:2:22"], [("d_pat22", "ssh"), ("d_serial", "telnet")]),
        (["serial:1", "http:2"], [("d_serial", "telnet")]),
        (["pat:1:22", "http:2", "https:3"], [("d_pat22", "ssh")]),
        (["ssh:1", "telnet:2", "http:3", "https:4", "tcp:5"], []),
        (
            ["serial:1", "pat:2:23", "pat:3:22", "pat:4:80", "pat:5:443", "vnc:6"],
            [
                *(("d_vnc", "vnc"), ("d_pat443", "https"), ("d_pat80", "http"), ("d_pat22", "ssh")),
                *(("d_pat23", "telnet"), ("d_serial", "telnet")),
            ],
        ),
        (["serial:1:1", "serial:2"], [("d_serial", "telnet"), ("d_serial1", "telnet")]),
        (["pat:udp:1:22", "pat:2:8080", "tcp:3"], []),
        (["core"], []),
    ],
)
def test_the_best_way_to_a_device_comes_first(tags: list[str], ways: list[tuple[str, str]]) -> None:
    """R000-107, C35; only ports that CML opens, C18."""
    template = PortTemplate.of([("d", "d", tags)])
    assert list(accesses(template.slots)) == [DeviceAccess(*way) for way in ways]


def test_devices_know_their_image_ports_and_primary_access() -> None:
    """R000-069, R000-107."""
    nodes: list[dict[str, Any]] = [
        {"label": "pc", "node_definition": "ubuntu", "image_definition": "desktop-v1", "tags": ["serial:5", "vnc:6"]},
        {"label": "management", "node_definition": "server", "tags": ["hidden", "serial:5099", "vnc:5098"]},
        {"label": "wan", "node_definition": "external_connector"},
    ]
    devices = parse(yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": nodes, "links": []})).devices
    assert [(d.label, d.image, d.visible, d.primary) for d in devices] == [
        ("pc", "desktop-v1", True, "pc_vnc"),
        ("management", None, False, "management_vnc"),
        ("wan", None, False, None),
    ]
    assert [[tag for tag in d.tags if parse_tag(tag)] for d in devices] == [
        ["serial:5", "vnc:6"],
        ["serial:5099", "vnc:5098"],
        [],
    ]
