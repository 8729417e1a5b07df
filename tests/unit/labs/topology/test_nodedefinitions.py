"""What is known of node definitions: ours first, and a worker's own where those lack one."""

from vkprovider.lablet.observations import DeviceFigures
from vkprovider.labs.pure.topology.resources import LISTED_MAX, SHIPPED, NodeDefinition, NodeDefinitions, lacking

ACME = DeviceFigures("acme", 2, 1024)


def test_only_what_is_lacking_is_told_and_only_what_can_be_believed() -> None:
    odd = [DeviceFigures("", 1, 1), DeviceFigures("x" * 65, 1, 1), DeviceFigures("no", 0, 1), DeviceFigures("m", 1, 0)]
    assert lacking([DeviceFigures("iosv", 9, 9), *odd, ACME, DeviceFigures("huge", 1, 2**30)]) == (ACME,)


def test_a_status_never_grows_without_end() -> None:
    many = [DeviceFigures(f"d{number:04}", 1, 512) for number in reversed(range(3 * LISTED_MAX))]
    assert [one.name for one in lacking(many)] == [f"d{number:04}" for number in range(LISTED_MAX)]


def test_a_worker_s_own_fill_the_gaps_as_long_as_it_is_there() -> None:
    known = NodeDefinitions(SHIPPED)
    assert dict(known) == SHIPPED
    known.tell("w1", [ACME, DeviceFigures("iosv", 64, 2**20)])
    assert known["acme"] == NodeDefinition(2, 1024)
    assert known["iosv"] == SHIPPED["iosv"], "a worker's goes before ours"
    known.tell("w2", [DeviceFigures("edited", 0, 0)])
    assert "edited" not in known
    assert len(known) == len(list(known)) == len(SHIPPED) + 1
    known.tell("w1", [])
    assert "acme" not in known


def test_the_largest_of_several_workers_counts() -> None:
    known = NodeDefinitions({})
    known.tell("w1", [ACME])
    known.tell("w2", [DeviceFigures("acme", 1, 4096)])
    assert known["acme"] == NodeDefinition(2, 4096)
    known.tell("w2", ())
    assert known["acme"] == NodeDefinition(2, 1024)
