"""What the doctor says of the muxes to which definitions lend ports."""

import msgspec

from vkprovider.api.objects import CustomResource, Metadata
from vkprovider.doctor.findings import Level
from vkprovider.doctor.muxes.services import MuxService, check_mux, lent_to


def definition(name: str, **expose: object) -> CustomResource:
    return CustomResource(Metadata(name), {"expose": expose} if expose else {})


def test_muxes_are_those_that_definitions_name() -> None:
    named = [definition("a", mux="labs.edge"), definition("b", mux="labs.edge"), definition("c", mux="labs")]
    assert lent_to([*named, definition("d"), definition("e", mux=1)]) == {
        ("edge", "labs"): ["a", "b"],
        ("", "labs"): ["c"],
    }


def test_a_mux_that_is_not_there_is_a_fault_of_each_definition() -> None:
    found = check_mux("edge", "labs", None, ["a", "b"])
    assert [(one.level, one.object, one.reason) for one in found] == [
        (Level.FAULT, "LabletDefinition/a", "MuxMissing"),
        (Level.FAULT, "LabletDefinition/b", "MuxMissing"),
    ]
    assert "edge/labs" in found[0].message


def test_a_mux_that_lets_everybody_in_is_noted() -> None:
    for text in ("{}", '{"spec": {}}', '{"spec": {"loadBalancerSourceRanges": []}}'):
        [found] = check_mux("edge", "labs", msgspec.json.decode(text, type=MuxService), ["a", "b"])
        assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/edge/labs", "MuxOpenToAll")
        assert "loadBalancerSourceRanges" in found.line
    ranges = '{"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"], "allocateLoadBalancerNodePorts": false}}'
    assert check_mux("edge", "labs", msgspec.json.decode(ranges, type=MuxService), ["a"]) == []


def test_a_mux_that_takes_node_ports_is_noted() -> None:
    text = '{"spec": {"loadBalancerSourceRanges": ["192.0.2.0/24"], "allocateLoadBalancerNodePorts": true}}'
    [found] = check_mux("edge", "labs", msgspec.json.decode(text, type=MuxService), ["a"])
    assert (found.level, found.object, found.reason) == (Level.NOTE, "Service/edge/labs", "MuxNodePorts")
