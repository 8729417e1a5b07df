"""Port templates: what a topology's tags ask for, by name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.domain.topology.template import PortDefinition, PortTemplate

PC: dict[str, Any] = {"label": "PC", "node_definition": "ubuntu", "tags": ["serial:4567", "vnc:4568"]}
IOSV: dict[str, Any] = {"label": "iosv-0", "node_definition": "iosv", "tags": ["serial:4566"]}


def slots(*nodes: Any) -> list[str]:
    return [slot.name for slot in PortTemplate.from_cml_nodes(list(nodes)).slots]


def listed(*nodes: Any) -> list[str]:
    return [entry.name for entry in PortTemplate.from_cml_nodes(list(nodes)).definitions]


def test_the_reference_example() -> None:
    """R001-001 to R001-006, R001-014."""
    template = PortTemplate.from_cml_nodes([PC, IOSV])
    assert template.definitions == (
        PortDefinition("PC_serial", "tcp"),
        PortDefinition("PC_vnc", "tcp"),
        PortDefinition("iosv-0_serial", "tcp"),
    )
    assert [(s.name, s.device, s.container, s.kind, s.protocol, s.tag.outside) for s in template.slots] == [
        ("PC_serial", "PC", "pc", "serial", "tcp", 4567),
        ("PC_vnc", "PC", "pc", "vnc", "tcp", 4568),
        ("iosv-0_serial", "iosv-0", "iosv-0", "serial", "tcp", 4566),
    ]


def test_every_kind_has_a_name_of_its_own() -> None:
    """R001-006, C18, C21."""
    tags = ["serial:1", "serial:2:1", "vnc:3", "ssh:4", "telnet:5", "tcp:6", "http:7", "https:8"]
    template = PortTemplate.from_cml_nodes([{"label": "R", "tags": [*tags, "pat:9:22", "pat:udp:10:22", "pat:11:23"]}])
    assert [entry.name for entry in template.definitions] == [
        *("R_serial", "R_serial1", "R_vnc", "R_ssh", "R_telnet", "R_tcp", "R_http", "R_https"),
        *("R_pat22", "R_patudp22", "R_pat23"),
    ]
    assert [entry.protocol for entry in template.definitions] == ["tcp"] * 9 + ["udp", "tcp"]


def test_a_second_way_to_the_same_is_listed_once_and_has_a_port_of_its_own() -> None:
    """R001-009, C19."""
    node = {"label": "R", "tags": ["serial:1", "vnc:2", "serial:3", "serial:1", "serial:4:0"]}
    assert listed(node) == ["R_serial", "R_vnc"]
    assert slots(node) == ["R_serial", "R_vnc", "R_serial-2", "R_serial-3"]


@pytest.mark.parametrize(
    "nodes",
    [
        None,
        [],
        {},
        "nodes",
        [None, "x", 5, []],
        [{}],
        [{"tags": ["serial:1"]}],
        [{"label": None, "tags": ["serial:1"]}],
        [{"label": "", "tags": ["serial:1"]}],
        [{"label": 5, "tags": ["serial:1"]}],
        [{"label": "R"}],
        [{"label": "R", "tags": None}],
        [{"label": "R", "tags": "serial:1"}],
        [{"label": "R", "tags": []}],
        [{"label": "R", "tags": [5, None, ["serial:1"], {"serial": 1}, "rdp:1", "serial", "serial:x", "pat:1:0"]}],
    ],
)
def test_what_asks_for_nothing_gives_an_empty_template(nodes: Any) -> None:
    """R001-007, R001-008, R001-010, R001-013, R001-028."""
    assert PortTemplate.from_cml_nodes(nodes) == PortTemplate()


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
    assert slots(*({"label": label, "tags": ["vnc:1"]} for label in labels)) == [f"{stem}_vnc" for stem in stems]


@given(
    st.lists(st.text(alphabet="aA1 _-.\t*", min_size=1, max_size=4), unique=True, max_size=12),
    st.lists(st.sampled_from(["serial:1", "serial:2", "serial:3:2", "vnc:1", "pat:1:2", "pat:udp:1:2"]), max_size=6),
)
def test_no_two_ports_share_a_name(labels: list[str], tags: list[str]) -> None:
    """R001-012, C20."""
    template = PortTemplate.from_cml_nodes([{"label": label, "tags": tags} for label in labels])
    assert len({slot.name for slot in template.slots}) == len(template.slots) == len(labels) * len(set(tags))
    assert len({slot.container for slot in template.slots}) == (len(labels) if tags else 0)
    assert {entry.name for entry in template.definitions} <= {slot.name for slot in template.slots}
    assert PortTemplate.from_dict(json.loads(json.dumps(template.to_dict()))) == template


def test_plain_data_is_read_back() -> None:
    """R001-019."""
    data = PortTemplate.from_cml_nodes([IOSV]).to_dict()
    assert data == {
        "ports": [
            {
                "name": "iosv-0_serial",
                "protocol": "tcp",
                "device": "iosv-0",
                "container": "iosv-0",
                "tag": "serial:4566",
            }
        ]
    }
    assert PortTemplate.from_dict(data) == PortTemplate.from_cml_nodes([IOSV])


@pytest.mark.parametrize("data", [{}, {"ports": 5}, {"ports": [{}]}, {"ports": ["x"]}, {"ports": [{"tag": "core"}]}])
def test_what_is_no_template_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="port"):
        PortTemplate.from_dict(data)
