"""UDP ports that nobody serves: how long they stay in the Service of a mux, and where they lead."""

import msgspec
import pytest

from tests.unit.mux.builders import NOW, PREFIX, REF, after, channel, given, mux
from vkprovider.mux.pure.decide import PLACEHOLDER, Plan
from vkprovider.mux.pure.endpoints import Backends
from vkprovider.mux.pure.facts import Channel, Owner, ServicePort
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.slices import (
    MuxObject,
    Source,
    forwarded_udp,
    last_discards,
    wanted_endpoints,
    wanted_slices,
    with_discards,
)
from vkprovider.mux.pure.state import DISCARD, DRAIN_S, MuxState
from vkprovider.platform.objects import EndpointSlice

DATA = ServicePort("data", 10012, "UDP")
DNS = ServicePort("dns", 53, "UDP")
HTTP = ServicePort("http", 80)
BOTH = "data:auto,http:auto"
MUX = MuxObject(REF, "uid-1", PREFIX)


def lab(learner: str, external: str = "data:auto", *ports: ServicePort) -> Channel:
    return Channel(Owner("a", "pod", learner), ports or (DATA,), {f"{PREFIX}/external-ports": external})


def udp(plan: Plan) -> dict[int, str]:
    return {port.port: port.name for port in plan.ports if port.protocol == "UDP"}


def test_a_udp_port_that_its_channel_left_stays_for_a_while_under_its_name_and_a_tcp_port_does_not() -> None:
    first = after(mux(), [lab("ann", BOTH, DATA, HTTP)])
    name = Owner("a", "pod", "ann").mux_port_name("data")
    plan = after(mux(ports=first.ports), [], first.state, NOW + 10)
    assert plan.ports == (ServicePort(name, 20000, "UDP"),)
    assert not plan.mapped
    assert plan.wake_at == NOW + 10 + DRAIN_S
    later = after(mux(), [], plan.state, NOW + 10 + DRAIN_S - 1)
    assert (later.ports, later.wake_at) == (plan.ports, plan.wake_at), "also after a restart, and applied again"
    last = after(mux(ports=plan.ports), [], later.state, NOW + 10 + DRAIN_S)
    assert (last.ports, last.wake_at) == ((PLACEHOLDER,), None)
    assert [rest.port for rest in last.state.resting if rest.protocol == "UDP"] == [20000]


def test_another_learner_gets_another_number_and_the_same_one_gets_his_back() -> None:
    first = after(mux(), [lab("ann")])
    other = after(mux(), [lab("bea")], first.state)
    assert given(other) == {"a/pod/bea": [20001]}
    assert sorted(udp(other)) == [20000, 20001]
    again = after(mux(), [lab("ann")], other.state, NOW + 1)
    assert given(again) == {"a/pod/ann": [20000]}
    assert [drain.port.port for drain in again.drains] == [20001]


def test_the_udp_port_of_a_refused_channel_stays_as_long_as_its_number_is_kept() -> None:
    first = after(mux(), [lab("ann")])
    plan = after(mux(), [lab("ann", "data:many")], first.state, NOW + 1000)
    assert (given(plan), plan.ports, plan.wake_at) == ({}, first.ports, None)
    assert plan.state.claims == first.state.claims


def test_a_port_that_changed_its_number_has_two_names_for_a_while() -> None:
    first = after(mux(), [channel("app/dns", "dns:53", DNS)])
    plan = after(mux(ports=first.ports), [channel("app/dns", "dns:54", DNS)], first.state)
    name = Owner("app", "dns").mux_port_name("dns")
    assert udp(plan)[54] == name
    assert udp(plan).keys() == {53, 54}
    assert udp(plan)[53] != name


def test_a_channel_waits_for_freed_ports_to_leave_where_the_limit_has_no_room_for_both() -> None:
    first = after(mux(max_ports="1"), [lab("ann")])
    plan = after(mux(max_ports="1"), [lab("bea")], first.state)
    [refused] = plan.refused
    assert (given(plan), plan.wake_at) == ({}, NOW + DRAIN_S)
    assert udp(plan).keys() == {20000}
    assert refused.fault.reason == MuxReason.MUX_PORT_LIMIT_EXCEEDED
    assert refused.fault.message.endswith("UDP ports that were freed leave mux svc-mux/mux by 2026-01-31T12:00:30Z")
    assert given(after(mux(max_ports="1"), [lab("ann")], plan.state)) == {"a/pod/ann": [20000]}
    last = after(mux(max_ports="1"), [lab("bea")], plan.state, NOW + DRAIN_S)
    assert given(last) == {"a/pod/bea": [20001]}
    assert udp(last).keys() == {20001}


def test_nobody_takes_the_place_of_a_port_that_drains_because_its_channel_has_another_one_now() -> None:
    """A second pass, in which the channel comes first, decides as the first one did."""
    first = after(mux(), [lab("ann", "data:100,dns:101", DATA, DNS)])
    asking = [channel("a/api", "http:auto"), lab("ann", "http:auto", HTTP)]
    bounded = mux(max_ports="2", ports=first.ports)
    plan = after(bounded, asking, first.state, NOW + 1)
    assert not plan.mapped
    assert udp(plan).keys() == {100, 101}
    assert {each.fault.reason for each in plan.refused} == {MuxReason.MUX_PORT_LIMIT_EXCEEDED}
    assert after(bounded._replace(ports=plan.ports), asking, plan.state, NOW + 1) == plan
    last = after(bounded._replace(ports=plan.ports), asking, plan.state, NOW + 1 + DRAIN_S)
    assert given(last) == {"a/api": [20000], "a/pod/ann": [20001]}


def test_a_channel_that_comes_back_to_a_full_mux_has_its_number_again_at_once() -> None:
    first = after(mux(max_ports="2"), [lab("ann", BOTH, DATA, HTTP)])
    gone = after(mux(max_ports="2"), [], first.state, NOW + 1)
    asking = [channel("z/api", "http:auto"), lab("ann", BOTH, DATA, HTTP)]
    assert given(after(mux(max_ports="2"), asking, gone.state, NOW + 2)) == {"a/pod/ann": [20000, 20000]}


def test_no_port_stays_beyond_a_lowered_limit() -> None:
    first = after(mux(), [lab("ann"), lab("bea")])
    plan = after(mux(max_ports="1"), [lab("ann"), lab("bea")], first.state)
    assert udp(plan).keys() == {20000}


@pytest.mark.parametrize("families", [("IPv4",), ("IPv6", "IPv4")])
def test_it_leads_to_an_address_that_no_machine_has(families: tuple[str, ...]) -> None:
    first = after(mux(), [lab("ann"), channel("app/api", "http:auto")])
    plan = after(mux(), [channel("app/api", "http:auto")], first.state)
    api = {Owner("app", "api"): (Source("x", "IPv4", Backends((HTTP,), ("10.1.0.1",))),)}
    carried = with_discards(plan, api, families)
    assert carried[Owner("app", "api")] == api[Owner("app", "api")]
    name = Owner("a", "pod", "ann").mux_port_name("data")
    bodies = [body for body in wanted_slices(MUX, carried).values() if body["ports"][0]["name"] == name]
    assert {body["addressType"]: body["endpoints"][0]["addresses"] for body in bodies} == {
        family: [DISCARD[family]] for family in families
    }
    assert all(body["endpoints"][0]["conditions"] == {"ready": True} for body in bodies)
    assert any(subset["ports"][0]["name"] == name for subset in wanted_endpoints(MUX, carried)["subsets"])


@pytest.mark.parametrize(
    ("backends", "discarded"),
    [
        ([], [20000]),
        ([Backends((DATA,), not_ready=("10.1.0.1",))], [20000]),
        ([Backends((HTTP,), ("10.1.0.1",))], [20000]),
        ([Backends((DATA,), ("10.1.0.1",))], []),
        ([Backends((DATA,), not_ready=("10.1.0.1",)), Backends((DATA,), ("10.1.0.2",))], []),
    ],
)
def test_a_udp_port_without_a_ready_backend_leads_there_too(backends: list[Backends], discarded: list[int]) -> None:
    plan = after(mux(), [lab("ann", BOTH, DATA, HTTP)])
    owner = Owner("a", "pod", "ann")
    its = tuple(
        Source(
            f"s{n}",
            "IPv4",
            each._replace(ports=tuple(port._replace(name=owner.mux_port_name(port.name)) for port in each.ports)),
        )
        for n, each in enumerate(backends)
    )
    carried = with_discards(plan, {owner: its} if its else {}, ("IPv4",)).get(owner, ())
    assert carried[: len(its)] == its
    assert [port.port for source in carried[len(its) :] for port in source.backends.ports] == discarded


def test_a_mux_that_never_had_a_udp_port_keeps_none() -> None:
    first = after(mux(), [channel("app/a", "http:auto")])
    plan = after(mux(), [], first.state)
    assert (plan.ports, plan.drains) == ((PLACEHOLDER,), ())
    assert with_discards(plan, {}, ("IPv4",)) == {}
    assert after(mux(), [], MuxState()).wake_at is None


def test_a_freed_port_in_the_service_hides_nothing_that_a_channel_shows() -> None:
    """A store that was repaired by hand knows the number as freed; the channel has another one."""
    freed = after(mux(), [], after(mux(), [channel("app/dns", "dns:auto", DNS)]).state)
    told = channel("app/dns", "dns:auto", DNS, told="dns:53->20007")
    for ports in (freed.ports, ()):
        assert given(after(mux(ports=ports), [told], freed.state, NOW + 1)) == {"app/dns": [20007]}


def test_a_port_whose_slice_could_not_be_written_for_a_while_is_freed_when_it_can() -> None:
    """The state is written before slices: a process may end, or be refused, between the two."""
    the_mux, owner = mux(), Owner("a", "pod", "ann")
    first = after(the_mux, [lab("ann")])
    source = Source("s", "IPv4", Backends((DATA._replace(name=owner.mux_port_name("data")),), ("198.51.100.1",)))
    old = msgspec.convert(list(wanted_slices(MUX, {owner: [source]}).values()), list[EndpointSlice])
    freed = after(the_mux, [], first.state)
    late = after(the_mux._replace(forwarded=forwarded_udp(old)), [], freed.state, NOW + 1000)
    assert (late.ports, late.wake_at) == (first.ports, NOW + 1000 + DRAIN_S)
    carried = wanted_slices(MUX, with_discards(late, {}, ("IPv4",))).values()
    new = msgspec.convert(list(carried), list[EndpointSlice])
    last = after(the_mux._replace(forwarded=forwarded_udp(new)), [], late.state, NOW + 1000 + DRAIN_S)
    assert last.ports == (PLACEHOLDER,)


def test_a_port_with_another_number_is_not_taken_for_the_one_that_was_freed() -> None:
    first = after(mux(), [channel("app/dns", "dns:53", DNS)])
    moved = [channel("app/dns", "dns:54", DNS)]
    plan = after(mux(), moved, first.state)
    the_mux = mux()._replace(forwarded=frozenset({Owner("app", "dns").mux_port_name("dns")}))
    assert udp(after(the_mux, moved, plan.state, NOW + DRAIN_S)).keys() == {54}


def test_the_udp_ports_of_a_mux_that_ends_lead_to_nobody_a_hundred_in_a_slice() -> None:
    ports = tuple(ServicePort(f"p{number}", number, "UDP") for number in range(1, 251))
    sources = last_discards(mux(ports=(*ports, HTTP)), ["IPv6", "IPv4", "other"])
    found = [each for its in sources.values() for each in its]
    assert [(each.address_type, len(each.backends.ports)) for each in found] == [
        (family, count) for family in ("IPv6", "IPv4") for count in (100, 100, 50)
    ]
    assert {each.backends.ready for each in found} == {(address,) for address in DISCARD.values()}
    bodies = wanted_slices(MUX, sources)
    assert {port["name"] for body in bodies.values() for port in body["ports"]} == {port.name for port in ports}
    assert last_discards(mux(ports=(HTTP,)), ["IPv4"]) == {}
