"""Which CMLWorkers would give two learners one address and port."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.labs.checks.workers import check_addresses
from vkprovider.labs.pure.worker.identity import Identities
from vkprovider.labs.pure.worker.reach import entries_of_address, same_address
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource, Metadata

UNSET = (10_000, 20_000)
CAPACITY = {"labs": 4}


def cmlworker(
    name: str, created: int = 1, *, ports: tuple[int, int] | None = (2000, 2999), resolved: str = "", **spec: Any
) -> CustomResource:
    fields = {"url": f"https://{name}.example.com", "credentialsSecretName": name, "capacity": CAPACITY, **spec}
    if ports is not None:
        fields["portRange"] = {"start": ports[0], "end": ports[1]}
    metadata = Metadata(name, creation_timestamp=f"2026-11-22T10:00:0{created}Z")
    return CustomResource(metadata, fields, {"address": resolved} if resolved else {})


def judge(mine: CustomResource, *everyone: CustomResource) -> InputError | None:
    """Judge as the reconciler does: by the index of all CMLWorkers."""
    known = Identities()
    for each in (mine, *everyone):
        known.changed(None, each)
    return same_address(mine, known.sharing(entries_of_address(mine)), UNSET)


NAT = "198.51.100.1"


@pytest.mark.parametrize(
    ("first", "second", "at"),
    [
        ({"address": NAT}, {"address": NAT}, NAT),
        ({"url": f"https://{NAT}:8443"}, {"url": f"https://{NAT}:9443"}, NAT),
        ({"url": "https://Labs.example.com.:8443"}, {"address": "LABS.example.com"}, "labs.example.com"),
        ({"address": "2001:db8::1"}, {"url": "https://[2001:DB8:0::1]:8443"}, "2001:db8::1"),
        ({"address": NAT}, {"address": f"::ffff:{NAT}"}, NAT),
        ({"address": "labs.example.com", "resolved": NAT}, {"address": NAT}, NAT),
        ({"address": "a.example.com", "resolved": NAT}, {"address": "b.example.com", "resolved": NAT}, NAT),
        ({"url": None, "tunnel": "http", "address": NAT}, {"address": NAT}, NAT),
    ],
)
def test_the_later_of_two_with_one_address_says_which_ports_and_what_to_change(
    first: dict[str, Any], second: dict[str, Any], at: str
) -> None:
    a = cmlworker("a", 1, ports=(2000, 2999), **first)
    b = cmlworker("b", 2, ports=(2500, 3999), **second)
    assert judge(a, b) is None
    fault = judge(b, a)
    assert fault is not None
    assert fault.reason == "SameAddress"
    for words in (at, "CMLWorker a,", "2500-2999", "spec.portRange", "spec.address", "kubectl edit cmlw b"):
        assert words in fault.message


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"address": NAT, "ports": (2000, 2999)}, {"address": NAT, "ports": (3000, 3999)}),
        ({"address": NAT, "ports": None}, {"address": NAT, "ports": (2000, 9999)}),
        ({"address": NAT}, {"address": "198.51.100.2"}),
        ({"address": NAT, "resolved": "198.51.100.9"}, {"address": "198.51.100.9"}),
        ({}, {}),
        ({"url": None, "tunnel": "http"}, {"url": None, "tunnel": "mqtt"}),
        ({"address": NAT, "tunnel": "pigeon"}, {"address": NAT}),
    ],
    ids=["apart", "the default apart", "two addresses", "an old answer", "names", "no address", "a wrong spec"],
)
def test_workers_that_give_no_port_twice_are_both_ready(first: dict[str, Any], second: dict[str, Any]) -> None:
    a, b = cmlworker("a", 1, **first), cmlworker("b", 2, **second)
    assert (judge(a, b), judge(b, a)) == (None, None)


def test_without_a_range_it_is_the_providers() -> None:
    a, b = cmlworker("a", 1, address=NAT, ports=None), cmlworker("b", 2, address=NAT, ports=(19_000, 30_000))
    fault = judge(b, a)
    assert fault is not None
    assert "19000-20000" in fault.message


def test_a_worker_that_nobody_has_approved_keeps_no_other_from_being_ready() -> None:
    a, b = cmlworker("a", 1, address=NAT), cmlworker("b", 2, address=NAT)
    a.metadata.annotations[names.ANNOTATION_APPROVED] = "false"
    assert judge(b, a) is None


@given(seed=st.integers(0, 10**6), size=st.integers(2, 6))
def test_of_any_two_that_overlap_one_is_not_ready_on_every_replica(seed: int, size: int) -> None:
    dice = Random(seed)
    addresses, ranges = [NAT, "198.51.100.2"], [(2000, 2500), (2400, 3000), (3001, 3100)]
    everyone = [
        cmlworker(f"w{n}", dice.randint(1, 3), address=dice.choice(addresses), ports=dice.choice(ranges))
        for n in range(size)
    ]
    orders = [everyone, everyone[::-1]]
    said = [{each.metadata.name for each in everyone if judge(each, *order) is not None} for order in orders]
    assert said[0] == said[1]
    ready = [each for each in everyone if each.metadata.name not in said[0]]
    for one in ready:
        for other in ready:
            ours, theirs = one.spec["portRange"], other.spec["portRange"]
            apart = ours["end"] < theirs["start"] or theirs["end"] < ours["start"]
            assert one is other or apart or one.spec["address"] != other.spec["address"]


def test_the_doctor_says_it_once() -> None:
    a, b = cmlworker("a", 1, address=NAT), cmlworker("b", 2, address=NAT)
    [finding] = check_addresses([a, b])
    assert (finding.object, finding.reason) == ("CMLWorker/b", "SameAddress")
    assert "2000-2999" in finding.message
    told = CustomResource(
        b.metadata, b.spec, {"conditions": [{"type": "Ready", "status": "False", "reason": "SameAddress"}]}
    )
    assert check_addresses([a, told]) == [], "its condition says it"
