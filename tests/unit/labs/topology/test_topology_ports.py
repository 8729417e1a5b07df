"""A lablet's own ports in a topology's text: every one of them, and nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.topologies import TEST_LAB
from tests.unit.labs.topology.test_domain_topology import FLAT, SMALL, device, refused, structures
from tests.unit.labs.topology.test_tags import port_tags, with_outside
from vkprovider.lablet.ports import parse_tag
from vkprovider.labs.pure.topology.topology import Topology, parse
from vkprovider.platform.errors import InputError
from vkpsim.cml.world.topology import VERSIONS_2_10
from vkpsim.cml.world.topology import parse as parse_as_cml

WORKSTATION = ["serial:5065", "vnc:5066", "pat:5067:22"]


def written(nodes: list[dict[str, Any]], **more: Any) -> str:
    return yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": nodes, "links": [], **more})


def node(label: str, *tags: str, **more: Any) -> dict[str, Any]:
    return {"id": label, "label": label, "node_definition": "iosv", "x": 0, "y": 0, "tags": list(tags), **more}


def numbered(topology: Topology, first: int = 10011) -> dict[str, int]:
    return {slot.name: first + i for i, slot in enumerate(topology.template.slots)}


def rendered(topology: Topology, ports: Mapping[str, int] | None) -> Any:
    return yaml.safe_load(topology.render(title="t", notes="n", ports=ports))


def test_the_worked_example() -> None:
    """R000-056."""
    topology = parse(written([node("workstation", *WORKSTATION)]))
    ports = {"workstation_serial": 10011, "workstation_vnc": 10012, "workstation_pat22": 10013}
    assert [slot.name for slot in topology.template.slots] == list(ports)
    tags = rendered(topology, ports)["nodes"][0]["tags"]
    assert tags == ["serial:10011", "vnc:10012", "pat:10013:22"]


def test_the_reference_lab() -> None:
    """R000-083 to R000-086, R001-005, R001-015, C18, C60."""
    topology = parse(TEST_LAB)
    slots = topology.template.slots
    assert [slot.name for slot in slots] == [
        *("PC_serial", "PC_vnc", "iosv-0_serial", "iosv-0_serial1", "iosv-0_pat22", "iosv-0_patudp161", "iosv-0_http"),
        "management_server_serial",
    ]
    assert [slot.name for slot in slots if not slot.tag.opened] == ["iosv-0_http"], "CML does not listen there"
    assert [slot.protocol for slot in slots] == ["tcp"] * 5 + ["udp"] + ["tcp"] * 2
    assert [(d.label, d.visible, d.primary) for d in topology.devices] == [
        ("PC", True, "PC_vnc"),
        ("iosv-0", True, "iosv-0_pat22"),
        ("management server", False, "management_server_serial"),
        ("ext-conn-0", False, None),
    ]
    before, after = yaml.safe_load(TEST_LAB), rendered(topology, numbered(topology))
    before["lab"] |= {"title": "t", "notes": "n\n\n" + before["lab"]["notes"]}
    before["nodes"][0]["tags"] = ["serial:10011", "vnc:10012"]
    before["nodes"][1]["tags"][1:] = [
        *("serial:10013", "serial:10014:1", "pat:10015:22", "pat:udp:10016:161", "http:10017"),
    ]
    before["nodes"][2]["tags"][1] = "serial:10018"
    before["smart_annotations"][0] |= {"tag": "serial:10011", "label": "serial:10011"}
    before["smart_annotations"][1] |= {"tag": "vnc:10012"}
    assert after == before


def test_without_ports_the_tags_stay() -> None:
    topology = parse(written([node("a", "serial:005041", "core", "pat:udp:0:53")]))
    assert rendered(topology, None)["nodes"][0]["tags"] == ["serial:005041", "core", "pat:udp:0:53"]


def test_a_port_that_is_not_given_is_no_port() -> None:
    topology = parse(written([node("a", *WORKSTATION)]))
    with pytest.raises(KeyError):
        topology.render(title="t", notes="n", ports={"a_serial": 10011})


def test_smart_annotations_follow_their_tags() -> None:
    """C60: tag and label where they are a device's port tag; where devices share a text, the first one's."""
    style = {"is_on": True, "padding": 35}
    annotations = [
        {"tag": "serial:5041", "label": "serial:5041", **style},
        {"tag": "vnc:5042", "label": "The screen", **style},
        {"tag": "core", "label": "pat:5043:22"},
        {"tag": "serial:9999", "label": "nobody's"},
        {"tag": "core"},
        {"tag": None, "label": ["serial:5041"]},
        "serial:5041",
    ]
    nodes = [node("a", "serial:5041", "core"), node("b", "serial:5041", "vnc:5042", "pat:5043:22")]
    after = rendered(topology := parse(written(nodes, smart_annotations=annotations)), numbered(topology))
    assert [n["tags"] for n in after["nodes"]] == [
        ["serial:10011", "core"],
        ["serial:10012", "vnc:10013", "pat:10014:22"],
    ]
    assert after["smart_annotations"] == [
        {"tag": "serial:10011", "label": "serial:10011", **style},
        {"tag": "vnc:10013", "label": "The screen", **style},
        {"tag": "core", "label": "pat:10014:22"},
        *annotations[3:],
    ]


def test_what_only_looks_like_a_tag_stays() -> None:
    """R000-055."""
    told = "a line on serial:5041 and\nserial:5041"
    nodes = [node("serial:5041", "serial:5041", "xserial:5041", configuration=told, image_definition="vnc:1")]
    topology = parse(written(nodes, annotations=[{"type": "text", "text_content": "serial:5041"}], other="serial:5041"))
    after = rendered(topology, {topology.template.slots[0].name: 10011})
    assert after["nodes"] == [{**nodes[0], "tags": ["serial:10011", "xserial:5041"]}]
    assert after["annotations"][0]["text_content"] == after["other"] == "serial:5041"


def test_devices_that_share_their_tags_in_the_text_get_ports_of_their_own() -> None:
    text = """
lab: {version: '0.3.0', notes: &n shared, description: *n}
nodes:
- {label: a, node_definition: iosv, tags: &t [serial:1, core], when: 2026-11-21}
- {label: b, node_definition: iosv, tags: *t}
links: []
smart_annotations: [&s {tag: serial:1}, *s]
"""
    after = rendered(topology := parse(text), numbered(topology))
    assert [n["tags"] for n in after["nodes"]] == [["serial:10011", "core"], ["serial:10012", "core"]]
    assert after["smart_annotations"] == [{"tag": "serial:10011"}] * 2
    assert after["nodes"][0]["when"] == yaml.safe_load(text)["nodes"][0]["when"]
    assert after["lab"]["description"] == "shared"


@pytest.mark.parametrize("version", VERSIONS_2_10)
def test_cml_reads_what_is_written_in_every_version(version: str) -> None:
    """R000-047."""
    whole = {"lab": {"version": version, "title": "x"}, "nodes": [node("a", *WORKSTATION)], "links": []}
    if version <= FLAT["version"]:
        whole = {"version": version, "lab_title": "x", "lab_notes": "old", "nodes": whole["nodes"], "links": []}
    topology = parse(yaml.safe_dump(whole))
    text = topology.render(title="mine", notes="mark", ports=numbered(topology))
    lab = parse_as_cml(text.encode(), VERSIONS_2_10)
    assert (lab.lab.version, lab.lab.title) == (version, "mine")
    assert lab.lab.notes.startswith("mark")
    assert lab.nodes[0].tags == ["serial:10011", "vnc:10012", "pat:10013:22"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tags": ["core", "pat:5003:70000"]}, "nodes[0].tags of 'R1': 'pat:5003:70000' leads to port 70000"),
        ({"tags": ["pat:udp:5003:0"]}, "nodes[0].tags of 'R1': 'pat:udp:5003:0' leads to port 0 of the device"),
        ({"tags": ["x" * 65]}, "has 65 characters, at most 64"),
        ({"image_definition": 5}, "nodes[0].image_definition of 'R1' must be a text, not 5"),
    ],
)
def test_what_can_never_work_is_refused_with_the_device(changes: dict[str, Any], told: str) -> None:
    assert told in refused(device(**changes))


words = port_tags | st.sampled_from(["core", "hidden", "serial", "serial:1", "vnc:2", "serial:1:1", "a: b", "- x", ""])
tagged = st.lists(
    st.tuples(st.text(min_size=1, max_size=8), st.lists(words, max_size=5), structures),
    min_size=1,
    max_size=5,
    unique_by=lambda found: found[0],
)
smart = st.lists(
    st.fixed_dictionaries({}, optional={"tag": words | structures, "label": words | structures, "x": structures})
    | structures,
    max_size=4,
)


@given(tagged, smart, st.dictionaries(st.text(max_size=5), structures, max_size=2), st.integers(1, 60000))
def test_rewriting_changes_the_outside_ports_and_nothing_else(
    devices: list[tuple[str, list[str], Any]], annotations: list[Any], rest: dict[str, Any], first: int
) -> None:
    """R000-051, R000-055, C18, C19, C60."""
    nodes = [node(label, *tags, configuration=more) for label, tags, more in devices]
    rest = {k: v for k, v in rest.items() if k not in {*SMALL, *FLAT}}
    document = {"lab": SMALL["lab"], **rest, "nodes": nodes, "links": [], "smart_annotations": annotations}
    try:
        text = yaml.safe_dump(document, allow_unicode=True)
        before = yaml.safe_load(text)
        topology = parse(text)
    except (yaml.YAMLError, InputError):  # what YAML itself cannot carry, no topology holds
        return
    ports = numbered(topology, first)
    names = {(slot.device, slot.tag.text): slot.name for slot in topology.template.slots}
    owners: dict[str, str] = {}
    for slot in topology.template.slots:
        owners.setdefault(slot.tag.text, slot.device)

    def moved(label: str, text: str) -> str:
        tag = parse_tag(text)
        return text if tag is None else with_outside(tag, ports[names[label, text]])

    for device_, (_, tags, _) in zip(before["nodes"], devices, strict=True):
        device_["tags"] = [moved(device_["label"], tag) for tag in tags]
    for item in before["smart_annotations"]:
        for field in {"tag", "label"} & item.keys() if isinstance(item, dict) else ():
            if isinstance(item[field], str) and item[field] in owners:
                item[field] = moved(owners[item[field]], item[field])
    after = rendered(topology, ports)
    assert after["lab"].pop("notes") == f"n\n\n{before['lab'].pop('notes')}"
    assert after["lab"].pop("title") == "t"
    del before["lab"]["title"]
    assert after == before
    assert len(set(ports)) == len({(label, tag) for label, tags, _ in devices for tag in tags if parse_tag(tag)})
