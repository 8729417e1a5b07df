"""Topologies: read whatever somebody wrote, refuse it with a place, write it back unchanged."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.labs.pure.topology import topology
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError
from vkpsim.cml.world.topology import parse as parse_as_cml

SMALL: dict[str, Any] = {
    "lab": {"version": "0.3.0", "title": "theirs", "notes": "by the author", "description": "d"},
    "nodes": [
        {"id": "n0", "label": "R1", "node_definition": "iosv", "x": 0, "y": 0, "tags": ["serial:5001"], "cpus": 2},
        {"id": "n1", "label": "r1", "node_definition": "alpine", "x": 0, "y": 0, "ram": 256, "configuration": "a\n b"},
    ],
    "links": [{"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i0"}],
    "annotations": [],
}
FLAT = {"version": "0.0.5", "lab_title": "theirs", "lab_notes": "old", **{k: SMALL[k] for k in ("nodes", "links")}}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
structures = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


def text_of(**changes: Any) -> str:
    document = {**SMALL, **changes}
    return yaml.safe_dump({k: v for k, v in document.items() if v is not ...})


def header(**changes: Any) -> str:
    lab = {**SMALL["lab"], **changes}
    return text_of(lab={k: v for k, v in lab.items() if v is not ...})


def device(**changes: Any) -> str:
    node = {**SMALL["nodes"][0], **changes}
    return text_of(nodes=[{k: v for k, v in node.items() if v is not ...}], links=[])


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.reason == "TopologyInvalid"
    assert len(caught.value.message) < 400, "a message that fits into an Event"
    return caught.value.message


def assert_read_or_refused(text: str) -> None:
    reason = "TopologyInvalid"
    try:
        parse(text).render(title="t", notes="n")
    except InputError as error:
        reason = error.reason
    assert reason == "TopologyInvalid"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a CML topology"),
        ("- a", "not a CML topology"),
        ("a: [", "invalid YAML at line 2"),
        ("a: b: c", "invalid YAML at line 1"),
        ("\x00", "invalid YAML"),
        ("a: !!python/object/apply:os.system [id]", "invalid YAML"),
        ("--- {}\n--- {}", "invalid YAML"),
        (text_of(lab="x"), "lab must be"),
        (header(version=...), "lab.version is missing"),
        (header(version="9.9"), "lab.version '9.9' is unknown, known are 0.0.1"),
        (header(version=0.3), "put it in quotes"),
        (text_of(lab=..., version="0.3.0"), "lab is missing; version 0.3.0 has a mapping there"),
        (text_of(lab=..., version=["0.0.5"]), "lab.version a list is unknown"),
        (header(version=["0.3.0"]), "lab.version a list is unknown"),
        (header(version={}), "lab.version a mapping is unknown"),
        (header(notes=["x"]), "lab.notes must be a text"),
        (text_of(nodes=...), "nodes is missing"),
        (text_of(nodes={}), "nodes is missing or not a list"),
        (text_of(nodes=[]), "nodes is empty"),
        (text_of(links=...), "links is missing"),
        (text_of(links={}), "links is missing or not a list"),
        (text_of(nodes=["r1"]), "nodes[0] must be a mapping"),
        (device(label=...), "nodes[0].label must be a text"),
        (device(label=5), "nodes[0].label must be a text of 1 to 128 characters, not 5"),
        (device(label=""), "nodes[0].label"),
        (device(label="x" * 129), "nodes[0].label"),
        (text_of(nodes=[SMALL["nodes"][0]] * 2), "nodes[1].label 'R1' is nodes[0]'s already"),
        (device(node_definition=...), "nodes[0].node_definition of 'R1'"),
        (device(node_definition=["iosv"]), "nodes[0].node_definition of 'R1'"),
        (device(tags="serial:1"), "nodes[0].tags of 'R1'"),
        (device(tags=[5001]), "nodes[0].tags of 'R1' must be a list of texts"),
        (device(cpus="2"), "nodes[0].cpus of 'R1' must be a whole number, not '2'"),
        (device(cpus=True), "nodes[0].cpus"),
        (device(ram=-1), "nodes[0].ram"),
        (device(ram=1.5), "nodes[0].ram"),
        (device(cpus=2**40), "nodes[0].cpus"),
    ],
)
def test_a_malformed_topology_is_refused_with_the_place(text: str, told: str) -> None:
    assert told in refused(text)


def test_a_field_that_is_no_text_is_never_written_out() -> None:
    bomb = "x0: &x0 [lol, lol]\n" + "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, 11))
    for text in (
        bomb + "lab: {version: *x10}",
        bomb + "lab: {version: '0.3.0', notes: *x10}\nnodes: [{label: a, node_definition: b}]\nlinks: []",
        bomb + "lab: {version: '0.3.0'}\nnodes: [{label: *x10}]\nlinks: []",
        bomb + "lab: {version: '0.3.0'}\nnodes: [{label: a, node_definition: *x10}]\nlinks: []",
        bomb + "lab: {version: '0.3.0'}\nnodes: [{label: a, node_definition: b, cpus: *x10}]\nlinks: []",
    ):
        refused(text)


def test_many_aliases_are_refused() -> None:
    assert "aliases" in refused("a: &a 1\nb: [" + "*a," * 101 + "]")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_a_deep_topology_does_not_end_the_process(opening: str) -> None:
    assert "nested" in refused(opening * 100_000)


def test_a_number_without_end_is_refused() -> None:
    huge = "0x" + "f" * 8000
    refused(f"lab: {{version: {huge}}}")
    refused(f"lab: {{version: '0.3.0'}}\nnodes: [{{label: a, node_definition: b, cpus: {huge}}}]\nlinks: []")
    refused(f"lab: {{version: '0.3.0'}}\nnodes: [{{label: a, node_definition: b, x: {huge}}}]\nlinks: []")
    refused(f"lab: {{version: '0.3.0', x: {huge}}}\nnodes: [{{label: a, node_definition: b}}]\nlinks: []")


@given(st.text() | st.text(alphabet="[]{}:-&*!|>'\"# \n\tab0.", max_size=60))
@example("!!bool x")
@example("!!int ''")
@example("!!float ''")
@example("!!timestamp x")
@example("!!timestamp 2001-99-99")
@example("a: 2001-01-01T00:00:00+99:99")
@example("!!binary ü")
@example("!!omap [a]")
@example("? [a]\n: b")
@example("&a [*a]")
@example("<<: 1")
@example("=: 1")
@example("\ud800")
@example("lab: &a {version: '0.3.0', x: *a}\nnodes: &n [*n]\nlinks: *n")
def test_no_text_ends_in_anything_but_a_refusal(text: str) -> None:
    assert_read_or_refused(text)


@given(structures, st.sampled_from([(), ("lab",), ("lab", "version"), ("lab", "notes"), ("nodes",), ("links",)]))
def test_no_structure_ends_in_anything_but_a_refusal(value: Any, path: tuple[str, ...]) -> None:
    document: Any = {"lab": dict(SMALL["lab"]), "nodes": SMALL["nodes"], "links": []}
    if not path:
        document = value
    elif len(path) == 1:
        document[path[0]] = value
    else:
        document[path[0]][path[1]] = value
    assert_read_or_refused(yaml.safe_dump(document))


@given(st.sampled_from(["id", "label", "node_definition", "tags", "cpus", "ram", "x"]), structures)
def test_no_device_ends_in_anything_but_a_refusal(field: str, value: Any) -> None:
    assert_read_or_refused(device(**{field: value}))


@given(
    fields=st.dictionaries(st.sampled_from(["description", "x1", "x2"]), structures),
    configuration=st.text(max_size=200),
    rest=st.dictionaries(st.text(max_size=5), structures, max_size=3),
    flat=st.booleans(),
)
def test_render_changes_title_notes_and_description_and_nothing_else(
    fields: dict[str, Any], configuration: str, rest: dict[str, Any], *, flat: bool
) -> None:
    """R000-055, R000-058."""
    node = {**SMALL["nodes"][1], "configuration": configuration}
    inner: dict[str, Any] = {"nodes": [SMALL["nodes"][0], node], "links": SMALL["links"]}
    inner |= {k: v for k, v in rest.items() if k not in {*SMALL, *FLAT, "title", "notes"}}
    inner |= {k: v for k, v in (("description", "d"),) if flat}
    head = {"version": "0.0.5", "title": "theirs", "notes": "by them"} if flat else {**fields, **SMALL["lab"]}
    document = {**head, **inner} if flat else {"lab": head, **inner}
    try:
        text = yaml.safe_dump(document, allow_unicode=True)
        before = yaml.safe_load(text)
    except yaml.YAMLError:  # what YAML itself cannot carry, no topology holds
        return
    parsed = parse(text)
    after = yaml.safe_load(parsed.render(title="mine", notes="mark\nof ours"))
    lab = after if flat else after["lab"]
    assert lab["title"] == "mine"
    assert lab["notes"] == f"mark\nof ours\n\n{head['notes']}"
    lab |= {"title": head["title"], "notes": head["notes"]}
    (before if flat else before["lab"]).setdefault("description", "")
    assert after == before
    assert parsed.version == head["version"]


def test_the_old_flat_form_is_read_and_gets_a_title_and_notes() -> None:
    parsed = parse(yaml.safe_dump(FLAT))
    after = yaml.safe_load(parsed.render(title="mine", notes="mark"))
    assert (after["version"], after["title"]) == ("0.0.5", "mine")
    assert after["notes"] == "mark\n\nold"
    assert "lab_title" not in after
    assert after["nodes"] == FLAT["nodes"]


@pytest.mark.parametrize("version", ["version", "lab_version"])
@pytest.mark.parametrize("notes", [("notes", "lab_notes"), ("lab_notes", "notes"), ("lab_notes",), ()])
def test_no_notes_of_the_old_flat_form_hide_the_mark(version: str, notes: tuple[str, ...]) -> None:
    flat = {version: "0.0.1", "lab_title": "x", **dict.fromkeys(notes, "old"), "nodes": SMALL["nodes"], "links": []}
    text = parse(yaml.safe_dump(flat, sort_keys=False)).render(title="mine", notes="mark")
    lab = parse_as_cml(text.encode(), ("0.0.1",)).lab
    assert (lab.title, lab.notes) == ("mine", "mark\n\nold" if notes else "mark")
    assert not {"lab_notes", "lab_title"} & yaml.safe_load(text).keys()


@pytest.mark.parametrize(
    ("fields", "description"),
    [
        ({}, ""),
        ({"description": "OSPF\n# in two: areas"}, "OSPF\n# in two: areas"),
        ({"lab_description": "old"}, "old"),
        ({"lab_description": "old", "description": "new"}, "new"),
    ],
)
@pytest.mark.parametrize("is_flat", [False, True])
def test_a_lab_gets_a_description_in_the_place_of_the_authors(
    fields: dict[str, str], description: str, *, is_flat: bool
) -> None:
    if not is_flat:
        fields = {"description": description} if fields else {}
    head = {"version": "0.0.5" if is_flat else "0.3.0", "title": "t", **fields}
    body = {"nodes": SMALL["nodes"], "links": []}
    parsed = parse(yaml.safe_dump({**head, **body} if is_flat else {"lab": head, **body}))
    assert parsed.description == description
    for given_, wanted in ((None, description), ("", ""), ('Learner: "a"\n\nOSPF', 'Learner: "a"\n\nOSPF')):
        after = yaml.safe_load(parsed.render(title="mine", notes="mark", description=given_))
        lab = after if is_flat else after["lab"]
        assert (lab["title"], lab["notes"], lab["description"]) == ("mine", "mark", wanted)
        assert "lab_description" not in lab


@pytest.mark.parametrize("wrong", [5, None, ["OSPF"]])
def test_a_description_that_is_no_text_stays_as_it_is(wrong: object) -> None:
    parsed = parse(header(description=wrong))
    assert yaml.safe_load(parsed.render(title="t", notes="n", description="mine"))["lab"]["description"] == wrong
    assert parsed.description == ""


def test_notes_begin_with_the_mark_and_stay_within_cmls_limit() -> None:
    parsed = parse(header(notes="x" * 40_000))
    notes = yaml.safe_load(parsed.render(title="t", notes="vkprovider installation=u"))["lab"]["notes"]
    assert notes.startswith("vkprovider installation=u\n")
    assert len(notes) == topology.NOTES_CHARS_MAX


def test_devices_get_container_names_in_topology_order() -> None:
    """R004-017."""
    labels = ["R1", "r1", "r 1", "lab", "r-1", "Ä", "x" * 128]
    nodes = [{"label": label, "node_definition": "iosv"} for label in labels]
    devices = parse(text_of(nodes=nodes, links=[])).devices
    assert [d.label for d in devices] == labels
    assert [d.container for d in devices] == ["r1", "r1-2", "r-1", "lab-2", "r-1-2", "device", "x" * 63]


@pytest.mark.parametrize(
    ("tag", "opens"),
    [
        ("serial:5001", True),
        ("serial:5001:1", True),
        ("vnc:5002", True),
        ("pat:5003:22", True),
        ("pat:tcp:5003:22", True),
        ("pat:udp:5003:22", True),
        ("http:80", True),
        ("https:443", True),
        ("ssh:22", True),
        ("telnet:23", True),
        ("tcp:99", True),
        ("pat:5003", False),
        ("pat:icmp:5003:22", False),
        ("serial", False),
        ("serial:x", False),
        ("core", False),
        ("myserial:5001", False),
        ("hidden", False),
    ],
)
def test_which_tags_open_ports(tag: str, *, opens: bool) -> None:
    """R000-048 to R000-052, C18."""
    parsed = parse(device(tags=[tag, tag, "core"]))
    assert [(slot.device, slot.tag.text) for slot in parsed.template.slots] == ([("R1", tag)] if opens else [])


def test_identical_tags_of_two_devices_are_two_ports() -> None:
    nodes = [{"label": label, "node_definition": "iosv", "tags": ["serial:5001"]} for label in ("a", "b")]
    assert [slot.name for slot in parse(text_of(nodes=nodes, links=[])).template.slots] == ["a_serial", "b_serial"]


@given(st.text(max_size=80))
def test_a_title_never_breaks_the_text(title: str) -> None:
    if re.search(r"[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd]", title):
        return
    assert yaml.safe_load(parse(text_of()).render(title=title, notes="n"))["lab"]["title"] == title
