"""What the simulator accepts as a topology, and the form in which it hands one out."""

import copy
import json
from typing import Any

import pytest
import yaml

from tests.simulators.cml.bench import TWO_HOSTS, Bench
from vkpsim.cml.errors import CmlError
from vkpsim.cml.world.topology import CONVERTED_VERSIONS, VERSIONS, VERSIONS_2_10, parse


def topology(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(yaml.safe_load(TWO_HOSTS)), **changes}


def refused(document: object, versions: tuple[str, ...] = VERSIONS) -> str:
    text = document if isinstance(document, bytes) else yaml.safe_dump(document).encode()
    with pytest.raises(CmlError) as caught:
        parse(text, versions)
    assert caught.value.status == 400
    return caught.value.description


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= "0.1.0"])
def test_versions_with_a_lab_object(version: str) -> None:
    assert parse(yaml.safe_dump(topology(lab={"version": version, "title": "t"})).encode(), VERSIONS).lab.title == "t"


@pytest.mark.parametrize("prefix", ["", "lab_"])
def test_versions_with_a_flat_header(prefix: str) -> None:
    document = topology(
        **{"version": "0.0.5", f"{prefix}title": "t", f"{prefix}notes": "n", f"{prefix}description": ""}
    )
    del document["lab"]
    header = parse(yaml.safe_dump(document).encode(), VERSIONS).lab
    assert (header.version, header.title, header.notes) == ("0.0.5", "t", "n")


OLD = """
lab: {title: old, description: "", notes: "", timestamp: 1600000000.5, version: VERSION, owner: somebody}
nodes:
- {id: n0, label: r0, node_definition: iosv, x: -450, y: 100, configuration: "", ram: 0, cpus: 0, cpu_limit: 100,
   data_volume: 0, boot_disk_size: 0, hide_links: null, tags: [],
   interfaces: [{id: i0, label: Loopback0, node: n0, type: loopback}, {id: i1, node: n0, slot: 0, type: physical}]}
- {id: n1, label: out, node_definition: external_connector, x: 0, y: 0, ram: 0, cpus: 0, cpu_limit: 0,
   interfaces: [{id: i0, node: n1, slot: 0, label: port, type: physical}]}
links: [{id: l0, i1: i1, n1: n0, i2: i0, n2: n1}]
"""
"""An export of CML 2.0 to 2.4: a time stamp, 0 for "as the definition says", null, an interface that names its node."""


@pytest.mark.parametrize("version", CONVERTED_VERSIONS)
def test_files_of_old_versions_are_converted(version: str) -> None:
    found = parse(OLD.replace("VERSION", version).encode(), VERSIONS)
    router, connector = found.nodes
    assert (found.lab.title, router.hide_links, router.cpu_limit, connector.cpu_limit) == ("old", False, 100, None)
    for node in found.nodes:
        assert (node.ram, node.cpus, node.data_volume, node.boot_disk_size) == (None,) * 4


@pytest.mark.parametrize("field", ["timestamp: 1600000000.5", "owner: somebody"])
def test_a_file_of_a_present_version_has_nothing_of_the_old_ones(field: str) -> None:
    assert "unknown field" in refused(f"lab: {{version: 0.2.0, title: t, {field}}}\nnodes: []\nlinks: []".encode())
    for broken in ({"cpus": 0}, {"hide_links": "no"}):
        refused(break_node(**broken) | {"lab": {"version": "0.2.2", "title": "t"}})


def test_a_node_needs_a_label_before_cml_2_10() -> None:
    document = topology(lab={"version": "0.3.0", "title": "t"})
    for number, label in ((0, "alpine-0"), (1, None)):
        document["nodes"][number].update(node_definition="alpine", label=label)
    del document["nodes"][1]["label"]
    assert "missing required field `label` - at `$.nodes[1]`" in refused(document)
    bench = Bench(version="2.10.0")
    lab = bench.load(yaml.safe_dump(document))
    assert [node.label for node in bench.world.labs[lab].nodes.values()] == ["alpine-0", "alpine-1"]


def test_a_node_needs_a_place_before_cml_2_10() -> None:
    document = topology(lab={"version": "0.3.0", "title": "t"})
    del document["nodes"][1]["y"]
    assert "missing required field `y` - at `$.nodes[1]`" in refused(document)
    assert parse(yaml.safe_dump(document).encode(), VERSIONS_2_10).nodes[1].y is None
    bench = Bench(version="2.10.0")
    lab = bench.load(yaml.safe_dump(document))
    assert {(node.x, node.y) for node in bench.world.labs[lab].nodes.values()} == {(0, 0), (200, 0)}


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ({"name": "node.cfg", "content": "hostname a"}, [("node.cfg", "hostname a")]),
        ([{"name": "node.cfg", "content": None}, {"name": "b", "content": "c"}], [("node.cfg", ""), ("b", "c")]),
        ([{"name": "node.cfg"}], [("node.cfg", "")]),
    ],
)
def test_forms_of_a_configuration(given: object, files: list[tuple[str, str]]) -> None:
    bench = Bench()
    lab = bench.load(yaml.safe_dump(break_node(configuration=given)))
    node = bench.world.labs[lab].nodes[bench.node(lab, "h0")]
    assert [(file.name, file.content) for file in node.configuration] == files


def test_json_with_escaped_characters_beyond_the_basic_plane_is_read() -> None:
    text = json.dumps(break_node(configuration="banner 🔥"))
    assert "\\ud83d" in text
    assert parse(text.encode(), VERSIONS).nodes[0].configuration == "banner 🔥"
    assert (
        parse(b"{lab: {version: 0.1.0, title: flow style}, nodes: [], links: []}", VERSIONS).lab.title == "flow style"
    )


@pytest.mark.parametrize("version", [None, 0.1, "0.1", "0.3.1", "0.4.0", "", ["0.1.0"]])
def test_unknown_versions_are_refused(version: object) -> None:
    assert "version" in refused(topology(lab={"version": version, "title": "t"}))


def test_the_newest_version_is_read_by_cml_2_10_only() -> None:
    document = topology(lab={"version": "0.3.1", "title": "t", "node_staging": {"enabled": True}})
    assert parse(yaml.safe_dump(document).encode(), VERSIONS_2_10).lab.node_staging == {"enabled": True}
    refused(document | {"lab": {"version": "0.3.0", "title": "t", "node_staging": {"enabled": True}}})


def break_node(**changes: Any) -> dict[str, Any]:
    document = topology()
    node = document["nodes"][0]
    for key, value in changes.items():
        if value is None:
            del node[key]
        else:
            node[key] = value
    return document


def break_link(**changes: Any) -> dict[str, Any]:
    document = topology()
    document["links"][0].update(changes)
    return document


@pytest.mark.parametrize(
    "broken",
    [
        b"lab: [",
        b"\xff\xfe\x00",
        b"",
        b"just text",
        b"[]",
        {"nodes": [], "links": []},
        {key: value for key, value in topology().items() if key != "nodes"},
        {key: value for key, value in topology().items() if key != "links"},
        topology(surprise=1),
        topology(lab={"version": "0.1.0", "title": ""}),
        topology(lab={"version": "0.1.0", "title": "t" * 65}),
        topology(lab={"version": "0.1.0", "title": "t", "notes": "n" * 32769}),
        topology(lab={"version": "0.1.0", "title": "t", "description": "d" * 4097}),
        topology(lab={"version": "0.1.0", "title": 7}),
        break_node(label=None),
        break_node(x=None),
        break_node(y=None),
        break_node(node_definition=None),
        break_node(x=15001),
        break_node(y="0"),
        break_node(label="h1"),
        break_node(label=""),
        break_node(label="h" * 129),
        break_node(id="n1"),
        break_node(tags=["t" * 65]),
        break_node(tags=[1342]),
        break_node(cpus=0) | {"lab": {"version": "0.3.0", "title": "t"}},
        break_node(cpu_limit=19),
        break_node(surprise=True),
        break_node(interfaces=[{"id": "i0", "type": "wireless"}]),
        break_node(interfaces=[{"id": "i0", "type": "physical"}, {"id": "i0", "type": "physical"}]),
        break_link(n2="n7"),
        break_link(i2="i7"),
        break_link(n2="n0"),
        {**topology(), "links": [{"id": "l0", "n1": "n0", "i1": "i0"}]},
        {**topology(), "links": [*topology()["links"], {**topology()["links"][0], "id": "l1"}]},
    ],
)
def test_malformed_topologies_are_refused_and_leave_nothing_behind(broken: object) -> None:
    refused(broken)
    bench = Bench()
    text = broken if isinstance(broken, bytes) else yaml.safe_dump(broken).encode()
    assert bench.request("POST", "/import", text)[0] == 400
    assert bench.world.labs == {}


def test_a_title_in_the_query_overrides_that_of_the_file_and_has_its_limit() -> None:
    bench = Bench()
    _, answer = bench.request("POST", "/import", TWO_HOSTS.encode(), query={"title": "another"})
    assert bench.request("GET", f"/labs/{answer['id']}")[1]["lab_title"] == "another"
    assert bench.request("POST", "/import", TWO_HOSTS.encode(), query={"title": "t" * 65})[0] == 400
    assert bench.request("POST", "/import", TWO_HOSTS.encode(), query={"title": "t" * 64})[0] == 200


def test_json_is_a_topology_too_and_an_unknown_node_definition_only_a_warning() -> None:
    bench = Bench()
    document = break_node(node_definition="toaster")
    status, answer = bench.request("POST", "/import", document)
    assert (status, answer["warnings"]) == (200, ["Unknown node definition: toaster"])
    assert bench.request("PUT", f"/labs/{answer['id']}/start")[0] == 204


def test_a_downloaded_lab_can_be_imported_again() -> None:
    bench = Bench()
    document = topology(
        lab={"version": "0.3.0", "title": "t", "description": "d", "notes": "line 1\nline 2\n"},
        annotations=[{"type": "text", "x1": 0, "y1": 0, "text_content": "hello"}],
    )
    document["nodes"][0] |= {"ram": 1024, "cpus": 2, "tags": ["serial:4567", "pat:tcp:8080:80"]}
    document["nodes"][0]["configuration"] = [{"name": "node.cfg", "content": "a"}, {"name": "b.cfg", "content": "b"}]
    document["nodes"][0]["interfaces"].append({"id": "lo", "type": "loopback", "label": "Loopback0"})
    document["links"][0]["conditioning"] = {"latency": 50}
    document["smart_annotations"] = [{"tag": "serial:4567", "label": "console", "is_on": False}]
    first = bench.load(yaml.safe_dump(document))
    _, text = bench.request("GET", f"/labs/{first}/download")
    second = bench.load(text)
    _, again = bench.request("GET", f"/labs/{second}/download")
    assert yaml.safe_load(again) == yaml.safe_load(text)
    drawn = yaml.safe_load(text)
    assert drawn["lab"] == {"version": "0.3.0", "title": "t", "description": "d", "notes": "line 1\nline 2\n"}
    assert [(one["tag"], one["label"]) for one in drawn["smart_annotations"]] == [
        ("serial:4567", "console"),
        ("pat:tcp:8080:80", "pat:tcp:8080:80"),
    ]
    assert [node["id"] for node in drawn["nodes"]] == ["n0", "n1"]


def test_smart_annotations_come_and_go_with_tags() -> None:
    bench = Bench()
    lab = bench.load()
    node = f"/labs/{lab}/nodes/{bench.node(lab, 'h0')}"

    def tags() -> list[str]:
        return [one["tag"] for one in bench.request("GET", f"/labs/{lab}/smart_annotations")[1]]

    assert tags() == ["serial:4567"]
    bench.request("PATCH", node, {"tags": ["serial:4567", "blue"]})
    assert tags() == ["serial:4567", "blue"]
    bench.request("PATCH", node, {"tags": []})
    assert tags() == []


def test_configurations_show_in_three_forms() -> None:
    bench = Bench()
    lab = bench.load()
    path = f"/labs/{lab}/nodes/{bench.node(lab, 'h0')}"
    assert bench.request("GET", path)[1]["configuration"] == "hostname h0"
    files = bench.request("GET", path, query={"exclude_configurations": "false"})[1]["configuration"]
    assert files == [{"name": "node.cfg", "content": "hostname h0"}]
    assert "configuration" not in bench.request("GET", path, query={"exclude_configurations": "true"})[1]
    bench.request("PATCH", path, {"configuration": {"name": "Main", "content": "main"}})
    bench.request("PATCH", path, {"configuration": {"name": "extra", "content": "more"}})
    files = bench.request("GET", path, query={"exclude_configurations": "false"})[1]["configuration"]
    assert files == [{"name": "node.cfg", "content": "main"}, {"name": "extra", "content": "more"}]
