"""What a topology needs, and arithmetic with it."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import ResourcesSpec
from vkprovider.labs.pure.topology.resources import SHIPPED, NodeDefinition, Resources, need_of
from vkprovider.labs.pure.topology.topology import Topology, parse
from vkprovider.platform.errors import InputError
from vkpsim.cml.world.platforms import DEFINITIONS

GIB = 2**30
MIB = 2**20
amounts = st.builds(
    Resources, st.integers(0, 10**7), st.integers(0, 2**45), st.integers(0, 10**5), st.integers(0, 10**5)
)


def topology(*devices: dict[str, Any]) -> Topology:
    nodes = [{"label": f"n{i}", "node_definition": "iosv", **device} for i, device in enumerate(devices)]
    return parse(yaml.safe_dump({"lab": {"version": "0.3.0"}, "nodes": nodes, "links": []}))


@given(amounts)
def test_amounts_come_back_from_the_api_server(amount: Resources) -> None:
    assert Resources.from_quantities(amount.quantities()) == amount


@given(amounts, amounts)
def test_union_and_plus_cover_both(one: Resources, other: Resources) -> None:
    for both in (one.union(other), one.plus(other)):
        assert both.covers(one)
        assert both.covers(other)
    assert one.union(one) == one
    assert one.plus(Resources()) == one == one.times(1)
    assert one.plus(one) == one.times(2)


@given(amounts, amounts)
def test_a_shortage_is_exactly_what_is_not_covered(have: Resources, want: Resources) -> None:
    missing = have.shortage(want)
    assert have.covers(want) == (not missing)
    found = zip(have.quantities(), _numbers(have), _numbers(want), strict=True)
    assert [text.split(" ")[0] for text in missing] == [name for name, a, b in found if a < b]


def _numbers(amount: Resources) -> tuple[int, ...]:
    return (amount.cpu_m, amount.memory_bytes, amount.lab_nodes, amount.ports)


def test_what_is_missing_is_nothing() -> None:
    assert Resources.from_quantities({}) == Resources()
    assert Resources.from_quantities({"cpu": "1500m"}) == Resources(cpu_m=1500)
    assert Resources.from_quantities({names.RESOURCE_PORTS: "6k"}) == Resources(ports=6000)


def test_a_topology_is_charged_by_its_devices() -> None:
    """Devices in their definitions' sizes, ports by their tags, licences by their kind."""
    found = need_of(
        topology(
            {},
            {"cpus": 4, "ram": 8192},
            {"node_definition": "unmanaged_switch"},
            {"tags": ["serial:5001", "vnc:5002", "core", "serial:5001"]},
        ),
        ResourcesSpec(),
    )
    assert found == Resources(6000, (512 + 8192 + 512) * MIB, 3, 2)


def test_what_the_topology_leaves_out_comes_from_the_definition() -> None:
    assert need_of(topology({"cpus": 8}), ResourcesSpec()) == Resources(8000, 512 * MIB, 1, 0)
    assert need_of(topology({"ram": 64, "cpus": 0}), ResourcesSpec()) == Resources(1000, 64 * MIB, 1, 0)


def test_overrides_win() -> None:
    spec = ResourcesSpec(cpu="1500m", memory="3Gi", lab_nodes=7, ports=9)
    assert need_of(topology({}, {}), spec) == Resources(1500, 3 * GIB, 7, 9)


def test_an_unknown_definition_is_named() -> None:
    with pytest.raises(InputError) as caught:
        need_of(topology({}, {"node_definition": "mybox"}), ResourcesSpec())
    assert caught.value.reason == "ResourcesUnknown"
    assert "'n1'" in caught.value.message
    assert "'mybox'" in caught.value.message


@pytest.mark.parametrize(
    ("device", "spec", "need"),
    [
        ({"cpus": 2, "ram": 256}, ResourcesSpec(), Resources(2000, 256 * MIB, 1, 0)),
        ({}, ResourcesSpec(cpu="1", memory="1Gi"), Resources(1000, GIB, 1, 0)),
        ({"cpus": 2}, ResourcesSpec(memory="1Gi"), Resources(2000, GIB, 1, 0)),
        ({"ram": 256}, ResourcesSpec(cpu="3"), Resources(3000, 256 * MIB, 1, 0)),
        ({"cpus": 2}, ResourcesSpec(cpu="3"), None),
        ({"ram": 256}, ResourcesSpec(memory="3Gi"), None),
        ({"cpus": 2}, ResourcesSpec(), None),
    ],
)
def test_an_unknown_definition_is_enough_if_the_rest_is_said(
    device: dict[str, Any], spec: ResourcesSpec, need: Resources | None
) -> None:
    unknown = topology({"node_definition": "mybox", **device})
    if need is not None:
        assert need_of(unknown, spec) == need
    else:
        with pytest.raises(InputError, match="ResourcesUnknown"):
            need_of(unknown, spec)


def test_a_setting_adds_definitions() -> None:
    table = {**SHIPPED, "mybox": NodeDefinition(3, 1000, licensed=False)}
    assert need_of(topology({"node_definition": "mybox"}), ResourcesSpec(), table) == Resources(3000, 1000 * MIB, 0, 0)


BEYOND_2_9_1 = {"snort", "xrd"}
"""Ids that Cisco publishes for later releases; the simulator has those of a CML 2.9.1."""


def test_the_shipped_definitions_are_named_as_cml_names_them() -> None:
    assert SHIPPED.keys() - DEFINITIONS.keys() <= BEYOND_2_9_1


def test_the_simulator_has_the_figures_of_the_product() -> None:
    ours = {name: (one.cpus, one.ram_mib) for name, one in SHIPPED.items() if one.licensed}
    its = {name: (one.cpus, one.ram_mib) for name, one in DEFINITIONS.items()}
    assert {name: its[name] for name in ours if name in its and its[name] != ours[name]} == {}


def test_what_has_no_machine_needs_nothing_and_no_licence() -> None:
    bare = {name for name, known in SHIPPED.items() if not known.licensed}
    assert bare == {name for name, one in DEFINITIONS.items() if not one.licensed} & SHIPPED.keys()
    assert {(SHIPPED[name].cpus, SHIPPED[name].ram_mib) for name in bare} == {(0, 0)}


@pytest.mark.parametrize(
    ("definition", "cpus", "ram_mib"),
    [("trex", 1, 512), ("wan_emulator", 1, 512), ("nginx", 1, 256), ("cat-sdwan-edge", 2, 5120), ("chrome", 1, 2048)],
)
def test_labs_of_cisco_itself_have_a_price(definition: str, cpus: int, ram_mib: int) -> None:
    found = need_of(topology({"node_definition": definition}), ResourcesSpec())
    assert found == Resources(cpus * 1000, ram_mib * MIB, 1, 0)
