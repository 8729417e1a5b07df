"""Links that lead nowhere are refused with their field, before CML refuses them."""

from typing import Any

import pytest
import yaml

from tests.support.topologies import topology
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.platform.errors import InputError


def with_links(*links: object, **node: Any) -> str:
    document = yaml.safe_load(topology({"r1": "iosv", "r2": "iosv"}))
    document["nodes"][0] |= node
    return yaml.safe_dump(document | {"links": list(links)})


def link(n1: object = "n0", i1: object = "i0", n2: object = "n1", i2: object = "i1") -> dict[str, object]:
    return {"id": "l0", "n1": n1, "i1": i1, "n2": n2, "i2": i2}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (link(n2="n99"), "links[0].n2 'n99' is not the id of a node; there are n0, n1"),
        (link(i1="i7"), "links[0].i1 'i7' is not an interface of 'r1'; it has i0"),
        (link(n1=["n0"]), "links[0].n1 a list or mapping is not the id of a node; there are n0, n1"),
        ({"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1"}, "links[0].i2 is missing; a link has n1, i1, n2 and i2"),
        ("n0-n1", "links[0] must be a mapping"),
    ],
)
def test_a_link_to_nothing_is_refused(bad: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(with_links(bad))
    assert (caught.value.reason, caught.value.message) == ("TopologyInvalid", message)


def test_a_link_of_a_node_without_interfaces() -> None:
    with pytest.raises(InputError, match="'i0' is not an interface of 'r1'; it has none"):
        parse(with_links(link(), interfaces=[]))


def test_a_long_list_is_cut() -> None:
    many = [{"id": f"i{n}", "label": f"eth{n}", "type": "physical"} for n in range(20)]
    with pytest.raises(InputError, match="it has i0, i1, i2, i3, i4, i5, i6, i7 and 12 more"):
        parse(with_links(link(i1="x"), interfaces=many))


@pytest.mark.parametrize("good", [[], [link()], [link(), link(n1="n1", i1="i1", n2="n0", i2="i0")]])
def test_other_links_are_left_to_cml(good: list[object]) -> None:
    assert len(parse(with_links(*good)).devices) == 2


def test_interfaces_that_cannot_be_told_are_left_to_cml() -> None:
    assert parse(with_links(link(), interfaces=None)).devices
