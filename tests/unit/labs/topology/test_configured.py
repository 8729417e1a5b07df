"""A topology with saved configurations: device by device, in each form that a configuration has."""

import pytest

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.topology import yamltext
from vkprovider.labs.pure.topology.configured import configured
from vkprovider.platform.errors import InputError

HEAD = 'lab: {version: "0.3.0", title: t}\nlinks: []\nnodes:\n'


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("", "new $(A)"),
        (", configuration: old", "new $(A)"),
        (", configuration: null", "new $(A)"),
        (", configuration: {name: a, content: old}", {"name": "a", "content": "new $(A)"}),
        (
            ", configuration: [{name: a, content: old}, {name: b, content: kept}]",
            [{"name": "a", "content": "new $(A)"}, {"name": "b", "content": "kept"}],
        ),
    ],
)
def test_a_saved_configuration_takes_the_place_of_the_first(given: str, after: object) -> None:
    text = f"{HEAD}- {{label: r1{given}}}\n- {{label: r2, configuration: own}}\n"
    written, absent = configured(text, {"r1": "new $(A)", "gone": "x"})
    document, _ = yamltext.load(written)
    assert [node["configuration"] for node in document["nodes"]] == [after, "own"]
    assert absent == ["gone"]
    assert document["lab"] == {"version": "0.3.0", "title": "t"}


def test_parts_that_are_shared_stay_apart() -> None:
    text = f"{HEAD}- {{label: r1, configuration: &c [{{name: a, content: old}}]}}\n- {{label: r2, configuration: *c}}\n"
    document, _ = yamltext.load(configured(text, {"r1": "new"})[0])
    assert [node["configuration"][0]["content"] for node in document["nodes"]] == ["new", "old"]


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        configured(f"{HEAD}- {{label: r1}}\n", {"r1": "x" * yamltext.CHARS_MAX})
    assert caught.value.reason == Trouble.CREATE_CONTAINER_CONFIG_ERROR


def test_hidden_devices_and_wiring_begin_as_the_topology_has_them() -> None:
    hidden = "- {label: grader, node_definition: server, tags: [hidden], configuration: own}\n"
    wiring = "- {label: out, node_definition: external_connector, configuration: System Bridge}\n"
    document, _ = yamltext.load(configured(f"{HEAD}{hidden}{wiring}", {"grader": "mine", "out": "other0"})[0])
    assert [node["configuration"] for node in document["nodes"]] == ["own", "System Bridge"]
