"""What CML's own schema refuses is told with its place; what it allows is not."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.support.topologies import TEST_LAB, topology
from vkprovider.labs.pure.topology.topology import Topology, parse
from vkpsim.cml.errors import CmlError
from vkpsim.cml.world.topology import VERSIONS_2_10
from vkpsim.cml.world.topology import parse as parse_as_cml

Change = Callable[[dict[str, Any]], object]
LINK = {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i1"}


def changed(*changes: Change, version: str = "0.3.0") -> str:
    document: dict[str, Any] = yaml.safe_load(topology({"r1": "iosv", "r2": "iosv", "sw": "unmanaged_switch"}))
    document["lab"]["version"] = version
    document["links"] = [dict(LINK)]
    for change in changes:
        change(document)
    return yaml.safe_dump(document)


def node(number: int = 0, **fields: Any) -> Change:
    return lambda document: document["nodes"][number].update(fields)


def without(number: int, *fields: str) -> Change:
    return lambda document: [document["nodes"][number].pop(field) for field in fields]


def links(*found: dict[str, Any]) -> Change:
    return lambda document: document.update(links=list(found))


def both(*changes: Change) -> Change:
    return lambda document: [change(document) for change in changes]


def cml_refuses(text: str) -> bool:
    try:
        parse_as_cml(text.encode(), VERSIONS_2_10)
    except CmlError:
        return True
    return False


PHYSICAL = {"id": "i0", "type": "physical"}
TO_SWITCH = {"id": "l1", "n1": "n2", "i1": "i2", "n2": "n1", "i2": "i1"}
FAULTS: dict[str, Change] = {
    "nodes[0].id of 'r1' must be a text, not 7": both(node(0, id=7), links()),
    "nodes[1].id of 'r2' is missing": both(without(1, "id"), links()),
    "nodes[0].id of 'r1' must have 1 to 64 characters": both(node(0, id="x" * 65), links()),
    "nodes[2].id 'n1' of 'sw' is that of 'r2', too; ids must differ": both(node(2, id="n1"), links()),
    "nodes[0].interfaces[0].id of 'r1' must be a text, not 0": both(
        node(0, interfaces=[PHYSICAL | {"id": 0}]), links()
    ),
    "nodes[0].interfaces[1].id of 'r1': 'i0' is there twice": node(0, interfaces=[PHYSICAL, PHYSICAL]),
    "links[0].id is missing": links({key: value for key, value in LINK.items() if key != "id"}),
    "links[1].id 'l0' is that of links[0], too; ids must differ": links(LINK, TO_SWITCH | {"id": "l0"}),
    "links[0].i1 'i0' is not an interface of 'r1'": without(0, "interfaces"),
    "links[1].i2: 'i1' of 'r2' is taken by links[0]": links(LINK, TO_SWITCH),
    "links[0].i2: 'i0' of 'r1' is taken by links[0]": links({**LINK, "n2": "n0", "i2": "i0"}),
    "links[0].i1 must be a text, not 0": both(
        without(0, "interfaces"), without(1, "interfaces"), links({**LINK, "i1": 0, "i2": 0})
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_no_cml_imports_is_a_fault(fault: str) -> None:
    text = changed(FAULTS[fault])
    assert fault in parse(text).faults
    assert cml_refuses(text), "the simulator imports it"


@pytest.mark.parametrize("fault", FAULTS)
def test_of_a_version_that_cml_converts_it_is_a_doubt(fault: str) -> None:
    found = parse(changed(FAULTS[fault], version="0.1.0"))
    assert found.faults == ()
    assert fault in found.doubts


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.update(extra=1), "the topology has a field that CML does not know: extra"),
        (lambda d: d["lab"].update(author="me"), "lab has a field that CML does not know: author"),
        (lambda d: d.update(annotations=None), "annotations must be a list"),
        (lambda d: d["links"][0].update(colour="red"), "links[0] has a field that CML does not know: colour"),
        (node(1, colour="red", kind=3), "nodes[1] has a field that CML does not know: colour, kind"),
        (lambda d: d["nodes"][0]["interfaces"][0].update(speed=1), "nodes[0].interfaces[0] has a field"),
        (node(0, x=None), "nodes[0].x of 'r1' must be a whole number from -15000 to 15000"),
        (node(0, y=10.5), "nodes[0].y of 'r1' must be a whole number"),
        (node(0, x=20000), "nodes[0].x of 'r1' must be a whole number"),
        (node(0, tags=None), "nodes[0].tags of 'r1' must be a list of texts in one line"),
        (node(0, tags=["a\nb"]), "nodes[0].tags of 'r1' must be a list of texts in one line"),
        (node(0, label="a\nb"), "nodes[0].label of 'a\\nb' must not have line ends"),
        (node(2, interfaces=None), "nodes[2].interfaces of 'sw' must be a list"),
        (node(0, configuration=5), "nodes[0].configuration of 'r1' must be a text, or files with name and content"),
        (node(0, configuration=[{"content": "x"}]), "nodes[0].configuration of 'r1' must be a text, or files"),
        (node(0, parameters={"a": 5}), "nodes[0].parameters of 'r1' must map names to texts; put numbers in quotes"),
        (node(0, cpus=129), "nodes[0].cpus of 'r1' must be at most 128"),
        (node(0, ram=2**20 + 1), "nodes[0].ram of 'r1' must be at most 1048576 (MiB)"),
        (node(0, cpu_limit=10), "nodes[0].cpu_limit of 'r1' must be a whole number from 20 to 100 (percent)"),
        (node(0, image_definition=""), "nodes[0].image_definition of 'r1' is empty; leave the field out"),
    ],
)
def test_what_the_schema_does_not_allow_is_a_doubt(change: Change, told: str) -> None:
    found = parse(changed(change))
    assert found.faults == ()
    assert [doubt for doubt in found.doubts if doubt.startswith(told)], found.doubts
    assert parse(changed(change, version="0.1.0")).doubts == (), "CML converts it first"


@pytest.mark.parametrize(
    "change",
    [
        both(),
        without(0, "x", "tags"),
        without(2, "interfaces"),
        node(0, configuration=[{"name": "ios_config.txt", "content": "hostname x"}, {"name": "b", "content": None}]),
        node(0, configuration={"name": "ios_config.txt", "content": "hostname x"}),
        node(0, configuration=None, ram=None, cpus=None, cpu_limit=None, parameters={"a": None, "b": "1"}),
        node(0, x=-15000, y=15000, cpus=128, cpu_limit=20, hide_links=True, priority=3, pyats={"username": "u"}),
        lambda d: d.update(annotations=[{"type": "text"}], smart_annotations=[]),
    ],
)
def test_what_the_schema_allows_is_none(change: Change) -> None:
    found = parse(changed(change))
    assert (found.faults, found.doubts) == ((), ())


@pytest.mark.parametrize("text", [TEST_LAB, topology({"h0": "alpine"})])
def test_what_cml_exports_has_neither(text: str) -> None:
    found = parse(text)
    assert (found.faults, found.doubts, cml_refuses(text)) == ((), (), False)


def test_few_of_many_are_told() -> None:
    many: list[dict[str, Any]] = [{"label": f"r{n}", "node_definition": "iosv", "colour": 1} for n in range(300)]
    found = parse(yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": many, "links": []}))
    assert (len(found.faults), len(found.doubts)) == (20, 20)


def connected(*pairs: str, tags: dict[str, list[str]] | None = None) -> Topology:
    """Parse a lab of two routers, a switch and a connector with links between them: `r1-sw`."""
    kinds = {"r1": "iosv", "r2": "iosv", "sw": "unmanaged_switch", "nat": "external_connector"}
    document = yaml.safe_load(topology(kinds, tags or {"r1": ["pat:2001:22"], "r2": ["serial:5000"]}))
    ids = {node["label"]: node["id"] for node in document["nodes"]}
    for each in document["nodes"]:
        each["interfaces"] = [PHYSICAL | {"id": f"i{number}"} for number in range(len(pairs))]
    for i, pair in enumerate(pairs):
        one, other = (ids[label] for label in pair.split("-"))
        document["links"].append({"id": f"l{i}", "n1": one, "i1": f"i{i}", "n2": other, "i2": f"i{i}"})
    return parse(yaml.safe_dump(document))


@pytest.mark.parametrize(
    ("pairs", "unreached"),
    [
        ([], ("r1",)),
        (["r1-r2"], ("r1",)),
        (["r1-sw", "r2-nat"], ("r1",)),
        (["r1-nat"], ()),
        (["nat-sw", "sw-r1"], ()),
        (["r1-r2", "r2-sw", "nat-sw", "r1-sw"], ()),
    ],
)
def test_a_pat_tag_needs_a_way_to_a_connector(pairs: list[str], unreached: tuple[str, ...]) -> None:
    assert connected(*pairs).unreached == unreached


def test_only_pat_tags_need_one() -> None:
    assert connected(tags={"r1": ["serial:5000", "vnc:5001", "tcp:5002"]}).unreached == ()
    several = {"r1": ["pat:1:22", "pat:udp:2:53"], "r2": ["pat:3:22"]}
    assert connected("r1-nat", tags=several).unreached == ("r2",)
