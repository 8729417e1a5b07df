"""What a mux withdraws when it cannot decide."""

from typing import Any

import pytest

from vkprovider.mux.pure.endpoints import Backends, lent_targets, slice_without_ended, subsets_without_ended
from vkprovider.mux.pure.facts import Owner, ServicePort
from vkprovider.mux.pure.state import DISCARD
from vkprovider.platform.objects import Endpoint, EndpointConditions, EndpointPort, EndpointSlice, Metadata

ANN, BOB = Owner("class", "seat", "ann"), Owner("class", "seat", "bob")
WORKER = "198.51.100.1"
SERIAL, DATA = ServicePort("serial", 10011), ServicePort("data", 10012, "UDP")


def carried(owner: Owner, *ports: ServicePort, addresses: tuple[str, ...] = (WORKER,)) -> EndpointSlice:
    endpoints = [Endpoint([address], EndpointConditions(ready=True)) for address in addresses]
    named = [EndpointPort(owner.mux_port_name(port.name), port.protocol, port.port) for port in ports]
    return EndpointSlice(Metadata("mux-1"), "IPv4", endpoints, named)


def addresses(change: dict[str, Any] | None) -> list[str]:
    return [address for endpoint in (change or {})["endpoints"] for address in endpoint["addresses"]]


def test_what_is_lent_stays() -> None:
    lent = lent_targets({ANN: [Backends((SERIAL, DATA), ready=(WORKER,))]})
    assert slice_without_ended(carried(ANN, SERIAL, DATA), lent) is None
    not_ready = lent_targets({ANN: [Backends((SERIAL,), not_ready=(WORKER,))]})
    assert slice_without_ended(carried(ANN, SERIAL), not_ready) is None


@pytest.mark.parametrize(
    "lent",
    [
        {},
        {BOB: [Backends((SERIAL,), ready=(WORKER,))]},
        {ANN: [Backends((SERIAL._replace(port=10021),), ready=(WORKER,))]},
        {ANN: [Backends((SERIAL._replace(protocol="UDP"),), ready=(WORKER,))]},
        {ANN: [Backends((SERIAL,), ready=("198.51.100.2",))]},
    ],
)
def test_the_same_port_of_another_learner_is_not_hers(lent: dict[Owner, list[Backends]]) -> None:
    change = slice_without_ended(carried(ANN, SERIAL), lent_targets(lent))
    assert change is not None
    assert change["ports"] == [], "it is deleted"


def test_one_of_two_backends_stays() -> None:
    lent = lent_targets({ANN: [Backends((SERIAL,), ready=("10.0.0.2",))]})
    change = slice_without_ended(carried(ANN, SERIAL, addresses=("10.0.0.1", "10.0.0.2")), lent)
    assert addresses(change) == ["10.0.0.2"]


def test_the_last_backend_of_a_udp_port_leaves_what_ends_open_flows() -> None:
    change = slice_without_ended(carried(ANN, SERIAL, DATA), frozenset())
    assert change is not None
    assert addresses(change) == [DISCARD["IPv4"]]
    assert [port["protocol"] for port in change["ports"]] == ["UDP"]
    assert slice_without_ended(carried(ANN, DATA, addresses=(DISCARD["IPv4"],)), frozenset()) is None


def test_subsets_of_endpoints() -> None:
    lent = lent_targets({ANN: [Backends((SERIAL,), ready=("10.0.0.2",), not_ready=("10.0.0.3",))]})
    ports = [{"name": ANN.mux_port_name("serial"), "port": 10011, "protocol": "TCP"}]
    ended = [{"name": BOB.mux_port_name("serial"), "port": 10011, "protocol": "TCP"}]
    two, one, other = {"ip": "10.0.0.2"}, {"ip": "10.0.0.1"}, {"ip": "10.0.0.3"}
    subsets = [
        {"addresses": [one, two], "notReadyAddresses": [other], "ports": ports},
        {"addresses": [two], "ports": ended},
    ]
    kept = subsets_without_ended(subsets, lent)
    assert kept == [{"addresses": [two], "notReadyAddresses": [other], "ports": ports}]
    assert subsets_without_ended(kept, lent) == kept
