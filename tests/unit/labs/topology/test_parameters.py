"""`$(NAME)` in day-0 configurations: what is a parameter, and that a value changes nothing but its configuration."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.topology import yamltext
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError

VALUES = {"HOST": "r1", "PASSWORD": 'a"b\n\tc: {d} #$(HOST)', "EMPTY": "", "a.b-c": "dotted"}
"""What the container `lab` has."""


def text_of(*configurations: Any, **changes: Any) -> str:
    """Make a topology with one device for each configuration: `h0`, `h1`, …"""
    nodes = [
        {"id": f"n{i}", "label": f"h{i}", "node_definition": "alpine", "x": 0, "y": 0, "configuration": configuration}
        for i, configuration in enumerate(configurations)
    ]
    return yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": nodes, "links": [], **changes})


def rendered(text: str, environment: dict[str, dict[str, str]], **ports: int) -> dict[str, Any]:
    """Render a topology and read it again."""
    found = parse(text).render(title="t", notes="n", ports=ports or None, environment=environment)
    document: dict[str, Any] = yaml.safe_load(found)
    return document


def configured(configuration: Any, values: dict[str, str]) -> Any:
    """Return the configuration of one device with these variables of `lab`."""
    return rendered(text_of(configuration), {"lab": values})["nodes"][0]["configuration"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("hostname $(HOST)\n", "hostname r1\n"),
        ("$(HOST)$(HOST)", "r1r1"),
        ("$(PASSWORD)", VALUES["PASSWORD"]),
        ("[$(EMPTY)]", "[]"),
        ("$(a.b-c)", "dotted"),
        ("$(UNKNOWN) $(HOST", "$(UNKNOWN) $(HOST"),
        ("$$(HOST)", "$(HOST)"),
        ("$$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$$(HOST)", "$r1"),
        ("$$$$(HOST)", "$$(HOST)"),
        ("$$$(UNKNOWN)", "$$(UNKNOWN)"),
        ("$(echo $(HOST))", "$(echo r1)"),
        ("$1$$k $$ $ $((1+1)) $() ${HOST} $HOST", "$1$$k $$ $ $((1+1)) $() ${HOST} $HOST"),
        ("$(1HOST) $(HO ST) $( HOST)", "$(1HOST) $(HO ST) $( HOST)"),
        ("", ""),
    ],
)
def test_what_is_a_parameter(written: str, read: str) -> None:
    assert configured(written, VALUES) == read


def test_every_form_of_a_configuration_has_parameters() -> None:
    files = [{"name": "a.cfg", "content": "$(HOST)"}, {"name": "$(HOST)", "content": "b"}, {"name": "c"}, "odd"]
    changed = [{"name": "a.cfg", "content": "r1"}, *files[1:]]
    assert configured(files, VALUES) == changed
    assert configured({"name": "a.cfg", "content": "$(HOST)"}, VALUES) == {"name": "a.cfg", "content": "r1"}
    for other in (None, 5, [], {}, [None], {"content": 5}):
        assert configured(other, VALUES) == other


def test_nothing_else_of_a_topology_has_parameters() -> None:
    text = text_of("$(HOST)", annotations=[{"text_content": "$(HOST)"}], lab={"version": "0.3.0", "notes": "$(HOST)"})
    found = rendered(text, {"lab": VALUES})
    assert found["annotations"] == [{"text_content": "$(HOST)"}]
    assert found["lab"]["notes"] == "n\n\n$(HOST)"
    assert found["nodes"] == [{**yaml.safe_load(text)["nodes"][0], "configuration": "r1"}]


def test_a_device_has_the_variables_of_its_container_and_else_those_of_the_lab() -> None:
    text = text_of("$(HOST)", "$(HOST)", "$(HOST)")
    found = rendered(text, {"lab": {"HOST": "all"}, "h1": {"HOST": "one"}, "h2": {}})
    assert [node["configuration"] for node in found["nodes"]] == ["all", "one", "$(HOST)"]
    assert [node["configuration"] for node in rendered(text, {})["nodes"]] == ["$(HOST)"] * 3


def test_ports_and_parameters_are_filled_in_together() -> None:
    text = text_of("$(HOST)", "b")
    document = yaml.safe_load(text)
    document["nodes"][0]["tags"] = ["serial:4000"]
    document["smart_annotations"] = [{"tag": "serial:4000", "label": "serial:4000"}]
    text = yaml.safe_dump(document)
    found = rendered(text, {"lab": VALUES}, h0_serial=2001)
    assert (found["nodes"][0]["tags"], found["nodes"][0]["configuration"]) == (["serial:2001"], "r1")
    assert found["smart_annotations"] == [{"tag": "serial:2001", "label": "serial:2001"}]
    assert rendered(text, {"lab": VALUES})["nodes"][0]["tags"] == ["serial:4000"]


def test_a_topology_that_json_cannot_hold_has_parameters() -> None:
    """A date, and a configuration that YAML aliases share between devices whose variables differ."""
    text = """
lab: {version: 0.3.0}
common: &files [{name: day0, content: 'hostname $(HOST)'}]
made: 2026-01-31
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, configuration: *files}
- {id: n1, label: h1, node_definition: alpine, x: 0, y: 0, configuration: *files}
- {id: n2, label: h2, node_definition: alpine, x: 0, y: 0, configuration: 'x $(HOST)'}
links: []
"""
    found = rendered(text, {"lab": {"HOST": "a: [\n'\"b"}, "h1": {"HOST": "two"}})
    configurations = [node["configuration"] for node in found["nodes"]]
    assert configurations[0] == [{"name": "day0", "content": "hostname a: [\n'\"b"}]
    assert configurations[1] == [{"name": "day0", "content": "hostname two"}]
    assert configurations[2] == "x a: [\n'\"b"


@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["A", "B", "C"]), st.text(max_size=20), max_size=3),
    st.lists(st.sampled_from(["A", "B", "C", "D"]), min_size=1, max_size=3),
)
def test_no_value_changes_the_topology_around_its_configuration(
    texts: list[str], values: dict[str, str], names: list[str]
) -> None:
    written = [text.replace("$", "") + "".join(f"$({name})" for name in names) for text in texts]
    source = text_of(*written)
    found, expected = rendered(source, {"lab": values}), yaml.safe_load(source)
    wanted = "".join(values.get(name, f"$({name})") for name in names)
    for node, text in zip(expected["nodes"], texts, strict=True):
        node["configuration"] = text.replace("$", "") + wanted
    assert {key: found[key] for key in ("nodes", "links")} == {key: expected[key] for key in ("nodes", "links")}


def test_values_that_are_too_long_are_refused_before_they_are_written() -> None:
    topology = parse(text_of("$(A)" * 1000))
    with pytest.raises(InputError) as caught:
        topology.render(title="t", notes="n", environment={"lab": {"A": "x" * 10_000}})
    assert caught.value.reason == "CreateContainerConfigError"
    assert f"more than {yamltext.CHARS_MAX} characters" in caught.value.message


@pytest.mark.parametrize("hostile", ["$" * 300_000, "$(" * 150_000, "$(a" * 100_000, "$(" + "a" * 300_000])
def test_hostile_configurations_are_read_at_once(hostile: str) -> None:
    """In quadratic time each of them would take minutes."""
    assert parse(text_of(hostile)).configurations == ()
