"""Port templates: what a topology's tags ask for, by name."""

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.lablet.ports import PortTemplate
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError

PC = ("PC", "pc", ["serial:4567", "vnc:4568"])
IOSV = ("iosv-0", "iosv-0", ["serial:4566"])


def template(*devices: tuple[str, list[str]]) -> PortTemplate:
    taken = {names.LAB_CONTAINER}
    return PortTemplate.of([(label, names.container_name(label, taken), tags) for label, tags in devices])


def slots(*devices: tuple[str, list[str]]) -> list[str]:
    return [slot.name for slot in template(*devices).slots]


def test_the_reference_example() -> None:
    """R001-001 to R001-006, R001-014."""
    found = PortTemplate.of([PC, IOSV])
    assert [(s.name, s.device, s.container, s.kind, s.protocol, s.tag.outside) for s in found.slots] == [
        ("PC_serial", "PC", "pc", "serial", "tcp", 4567),
        ("PC_vnc", "PC", "pc", "vnc", "tcp", 4568),
        ("iosv-0_serial", "iosv-0", "iosv-0", "serial", "tcp", 4566),
    ]


def test_every_kind_has_a_name_of_its_own() -> None:
    """R001-006, C18, C21."""
    tags = ["serial:1", "serial:2:1", "vnc:3", "ssh:4", "telnet:5", "tcp:6", "http:7", "https:8"]
    found = template(("R", [*tags, "pat:9:22", "pat:udp:10:22", "pat:11:23"])).slots
    assert [slot.name for slot in found] == [
        *("R_serial", "R_serial1", "R_vnc", "R_ssh", "R_telnet", "R_tcp", "R_http", "R_https"),
        *("R_pat22", "R_patudp22", "R_pat23"),
    ]
    assert [slot.protocol for slot in found] == ["tcp"] * 9 + ["udp", "tcp"]
    assert [slot.tag.opened for slot in found] == [True] * 3 + [False] * 5 + [True] * 3


def test_identical_tags_share_a_port_and_other_placeholders_have_one_each() -> None:
    """R001-009, C19: each port that a topology's text names is rewritten, or two labs would ask for one."""
    tags = ["serial:1", "vnc:2", "serial:3", "serial:1", "serial:4:0"]
    assert slots(("R", tags)) == ["R_serial", "R_vnc", "R_serial-2", "R_serial-3"]


@pytest.mark.parametrize("tags", [[], ["rdp:1"], ["serial", "serial:x", "serial:", ":1"], ["pat:1:0", "pat:1:65536"]])
def test_tags_of_another_form_request_nothing(tags: list[str]) -> None:
    """R001-007, R001-008, R001-028."""
    assert template(("R", tags)) == PortTemplate()


@pytest.mark.parametrize("tags", [None, []])
def test_a_topology_without_tags_has_an_empty_template(tags: list[str] | None) -> None:
    """R001-013."""
    assert parse(lab({"label": "R", "node_definition": "iosv", "tags": tags})).template == PortTemplate()


@pytest.mark.parametrize(
    ("nodes", "field"),
    [
        (None, "nodes is missing"),
        ([], "nodes is empty"),
        ({}, "nodes is missing or not a list"),
        (["x"], "nodes[0] must be a mapping"),
        ([{"node_definition": "iosv", "tags": ["serial:1"]}], "nodes[0].label"),
        ([{"label": "", "node_definition": "iosv"}], "nodes[0].label"),
        ([{"label": "R", "node_definition": "iosv", "tags": "serial:1"}], "nodes[0].tags"),
        ([{"label": "R", "node_definition": "iosv", "tags": [5]}], "put numbers in quotes"),
    ],
)
def test_a_topology_that_cml_refuses_is_refused_with_the_field(nodes: Any, field: str) -> None:
    """R001-010, R001-013: an author is told at once, instead of by a lab without the port."""
    with pytest.raises(InputError) as caught:
        parse(yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": nodes, "links": []}))
    assert field in caught.value.message


def lab(*nodes: dict[str, Any]) -> str:
    return yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": list(nodes), "links": []})


@pytest.mark.parametrize(
    ("labels", "stems"),
    [
        (["my PC"], ["my_PC"]),
        (["R-1.a (core)!"], ["R-1a_core"]),
        (["Gerät"], ["Gerät"]),
        (["***"], ["device"]),
        (["R 1", "R_1", "R.1", "R1"], ["R_1-2", "R_1", "R1-2", "R1"]),
        (["R 1", "R\t1", "R_1-2"], ["R_1", "R_1-3", "R_1-2"]),
    ],
)
def test_names_are_made_of_labels_and_differ(labels: list[str], stems: list[str]) -> None:
    """R001-005, R001-011, R001-012."""
    assert slots(*((label, ["vnc:1"]) for label in labels)) == [f"{stem}_vnc" for stem in stems]


@given(
    st.lists(st.text(alphabet="aA1 _-.\t*", min_size=1, max_size=4), unique=True, max_size=12),
    st.lists(st.sampled_from(["serial:1", "serial:2", "serial:3:2", "vnc:1", "pat:1:2", "pat:udp:1:2"]), max_size=6),
)
def test_no_two_ports_share_a_name(labels: list[str], tags: list[str]) -> None:
    """R001-012, C20."""
    found = template(*((label, tags) for label in labels))
    assert len({slot.name for slot in found.slots}) == len(found.slots) == len(labels) * len(set(tags))
    assert len({slot.container for slot in found.slots}) == (len(labels) if tags else 0)
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(found))), PortTemplate) == found, "R001-019"
