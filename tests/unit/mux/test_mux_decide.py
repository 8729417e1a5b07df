"""One pass over a mux: who gets which port, who keeps it, who waits, and who is refused with which reason."""

import pytest

from tests.unit.mux.builders import NOW, PREFIX, REST_S, after, channel, given, lablet, mux, refused
from vkprovider.mux.pure import facts
from vkprovider.mux.pure import state as muxstate
from vkprovider.mux.pure.decide import PLACEHOLDER, decide
from vkprovider.mux.pure.facts import Channel, Mux, Owner, ServicePort
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.state import MuxState, Resting
from vkprovider.platform.ports.rows import AUTO, STATIC, PortRow

HTTP = ServicePort("http", 80)
GRPC = ServicePort("grpc", 50051)


def test_three_modes_of_the_design() -> None:
    """R003-021, R003-022, R003-023, R003-058."""
    plan = after(
        mux(),
        [
            channel("app/a"),
            channel("app/b", "http:8080,grpc:9090", HTTP, GRPC),
            channel("app/c", "http:auto"),
            channel("app/p2p", "", ServicePort("p2p", 30303)),
        ],
    )
    assert given(plan) == {"app/a": [80], "app/b": [8080, 9090], "app/c": [20000], "app/p2p": [30303]}
    assert (plan.refused, plan.notes, plan.wake_at) == ((), (), None)
    assert plan.ports[0] == ServicePort(Owner("app", "a").mux_port_name("http"), 80, "TCP")
    assert [port.port for port in plan.ports] == [80, 8080, 9090, 20000, 30303]
    assert {row.service: row.source for row in plan.state.claims} == {
        "a": STATIC,
        "b": STATIC,
        "c": AUTO,
        "p2p": STATIC,
    }


def test_a_mux_without_ports_has_a_placeholder() -> None:
    """R003-058."""
    assert after(mux(), []).ports == (PLACEHOLDER,)
    assert (PLACEHOLDER.port, PLACEHOLDER.protocol) == (101, "TCP")
    plan = after(mux(), [channel("app/a", "http:0")])
    assert (plan.ports, refused(plan)) == ((PLACEHOLDER,), {"app/a": MuxReason.INVALID_PORT_MAPPING})


def test_numbers_that_are_asked_for_come_before_automatic_ones() -> None:
    """R003-030."""
    plan = after(mux("20000-20001"), [channel("app/a", "http:auto"), channel("app/b", "http:20000")])
    assert given(plan) == {"app/a": [20001], "app/b": [20000]}


def test_both_protocols_of_a_number_are_independent() -> None:
    """R003-043."""
    dns = (ServicePort("dns", 53, "UDP"), ServicePort("dns-tcp", 53, "TCP"))
    assert given(after(mux(), [channel("infra/dns", "", *dns)])) == {"infra/dns": [53, 53]}
    auto = channel("infra/dns", "dns:auto,dns-tcp:auto", *dns)
    assert given(after(mux(), [auto])) == {"infra/dns": [20000, 20000]}


def test_owners_are_who_is_stored_then_who_is_shown_then_by_name() -> None:
    """R003-044, R003-045, R003-046, R003-020."""
    stored = PortRow("zoo", "z", "http", "TCP", 80, 80, STATIC)
    shown = (ServicePort(Owner("app", "m").mux_port_name("http"), 80),)
    rivals = [channel("app/a"), channel("app/m"), channel("zoo/z")]
    for state, ports, winner in (
        (MuxState((stored,)), shown, "zoo/z"),
        (MuxState(), shown, "app/m"),
        (MuxState(), (), "app/a"),
    ):
        plan = after(mux(ports=ports), rivals, state)
        assert given(plan) == {winner: [80]}
        assert set(refused(plan).values()) == {MuxReason.MUX_PORT_CONFLICT}
        assert {each.fault.message for each in plan.refused} == {f"TCP port 80 belongs to {winner}"}


def test_annotations_of_channels_show_owners_where_the_mux_does_not() -> None:
    """R003-044: an annotation that is contradicted, or told twice, shows nothing."""
    told = [channel("app/a", "http:auto"), channel("app/b", "http:auto", told="http:80->20007")]
    assert given(after(mux(), told)) == {"app/a": [20000], "app/b": [20007]}
    twice = [channel("app/a", "http:auto", told="http:80->20007"), channel("app/b", "http:auto", told="http:80->20007")]
    assert given(after(mux(), twice)) == {"app/a": [20000], "app/b": [20001]}
    shown = (ServicePort(Owner("app", "a").mux_port_name("http"), 20007),)
    assert given(after(mux(ports=shown), told)) == {"app/a": [20007], "app/b": [20000]}
    elsewhere = [channel("app/b", "http:auto", told="http:80->443")]
    assert given(after(mux(), elsewhere)) == {"app/b": [20000]}


def test_a_mux_applied_again_without_ports_keeps_every_number() -> None:
    """R003-020."""
    channels = [channel("app/a", "http:auto"), channel("app/b"), lablet("class-1/lab-0", "ann", "a", "b")]
    first = after(mux(), channels)
    applied = after(mux(ports=()), [channel("aa/first", "http:auto"), channel("aa/second"), *channels], first.state)
    assert {name: ports for name, ports in given(applied).items() if name in given(first)} == given(first)
    assert refused(applied) == {"aa/second": MuxReason.MUX_PORT_CONFLICT}


def test_a_port_twice_in_one_channel_is_a_conflict() -> None:
    """R003-047."""
    plan = after(mux(), [channel("app/a", "grpc:80", HTTP, GRPC)])
    assert refused(plan) == {"app/a": MuxReason.MUX_PORT_CONFLICT}
    assert plan.refused[0].fault.message == "TCP port 80 is asked for twice"


def test_a_refused_channel_keeps_its_number_and_is_not_forwarded() -> None:
    first = after(mux(), [channel("app/a"), channel("app/b", "http:81")])
    plan = after(mux(), [channel("app/a", "http:81"), channel("app/b", "http:81"), channel("app/c")], first.state)
    assert given(plan) == {"app/b": [81]}
    assert refused(plan) == {"app/a": MuxReason.MUX_PORT_CONFLICT, "app/c": MuxReason.MUX_PORT_CONFLICT}
    assert given(after(mux(), [channel("app/a"), channel("app/b", "http:81")], plan.state))["app/a"] == [80]


def test_a_channel_gets_all_its_ports_or_none() -> None:
    """R003-032."""
    two = channel("app/b", "http:auto,grpc:auto", HTTP, GRPC)
    plan = after(mux("20000-20001"), [channel("app/a", "http:auto"), two, channel("app/c", "http:auto")])
    assert given(plan) == {"app/a": [20000], "app/c": [20001]}
    assert refused(plan) == {"app/b": MuxReason.INVALID_PORT_MAPPING}
    assert plan.refused[0].fault.message == "no available port in 20000-20001 for all of 2 automatic ports of app/b"
    assert not [row for row in plan.state.claims if row.service == "b"]


def test_automatic_ports_need_a_range() -> None:
    plan = after(mux(None), [channel("app/a", "http:auto")])
    assert refused(plan) == {"app/a": MuxReason.INVALID_PORT_MAPPING}
    assert plan.refused[0].fault.message == "the mux has no port-range for 1 automatic port of app/a"


def test_an_automatic_number_moves_only_when_the_ranges_exclude_it() -> None:
    """R003-029: a range that is missing or wrong excludes nothing."""
    channels = [channel("app/a", "http:auto")]
    first = after(mux(), channels)
    for port_range, expected in (("20000-20001", 20000), (None, 20000), ("x", 20000), ("30000-30001", 30000)):
        assert given(after(mux(port_range), channels, first.state)) == {"app/a": [expected]}


@pytest.mark.parametrize(
    ("unclear", "reason"),
    [(mux("9-1"), MuxReason.INVALID_PORT_RANGE), (mux(max_ports="many"), MuxReason.INVALID_MAX_PORTS)],
)
def test_a_mux_that_cannot_be_read_keeps_its_last_good_ports(unclear: Mux, reason: MuxReason) -> None:
    """C49, R003-050: what has gone goes all the same, for its ports must lead nowhere."""
    channels = [channel("app/a", "http:auto"), channel("app/b"), channel("app/gone")]
    first = after(mux(), [channels[0], channels[1], channel("app/gone", "http:443")])
    plan = after(unclear, [channel("aa/new", "http:auto"), *channels[:2]], first.state)
    assert given(plan) == {"app/a": [20000], "app/b": [80]}
    assert refused(plan) == {"aa/new": reason}
    assert [note.reason for note in plan.notes] == [reason]
    assert [rest.port for rest in plan.state.resting] == [443]


def test_limit_counts_owners_first() -> None:
    """R003-051, C50: a channel whose name comes first evicts nobody."""
    first = after(mux(max_ports="2"), [channel("app/m"), channel("app/z", "http:81")])
    plan = after(
        mux(max_ports="2"), [channel("app/a", "http:82"), channel("app/m"), channel("app/z", "http:81")], first.state
    )
    assert given(plan) == given(first)
    assert refused(plan) == {"app/a": MuxReason.MUX_PORT_LIMIT_EXCEEDED}
    assert plan.refused[0].fault.message == "app/a needs 1 port; mux svc-mux/mux has 2 at most"


def test_limit_is_of_ports_and_a_smaller_channel_still_fits() -> None:
    two = channel("app/b", "grpc:91", ServicePort("http", 90), GRPC)
    plan = after(mux(max_ports="2"), [channel("app/a"), two, channel("app/c", "http:99")])
    assert given(plan) == {"app/a": [80], "app/c": [99]}


def test_gke_has_a_hundred_ports() -> None:
    """R003-049."""
    channels = [channel(f"app/c{n:03}", "http:auto") for n in range(101)]
    plan = after(mux("20000-20199", class_="networking.gke.io/l4-regional-external"), channels)
    assert (len(plan.ports), [note.reason for note in plan.notes]) == (100, [MuxReason.GKE_PORT_LIMIT_APPLIED])
    assert refused(plan) == {"app/c100": MuxReason.MUX_PORT_LIMIT_EXCEEDED}


def test_namespaces_that_the_mux_does_not_serve_get_nothing() -> None:
    the_mux = mux(allowed_namespaces="team")
    plan = after(
        the_mux, [channel("team/a"), channel("svc-mux/b", "http:81"), channel("app/c"), lablet("x/pod", "ann")]
    )
    assert given(plan) == {"svc-mux/b": [81], "team/a": [80], "x/pod/ann": [20000]}
    assert refused(plan) == {"app/c": MuxReason.MUX_NOT_ALLOWED}
    closed = after(Mux(the_mux.ref), [channel("team/a")])
    assert refused(closed) == {"team/a": MuxReason.MUX_NOT_ALLOWED}
    assert f"{PREFIX}/allowed-namespaces" in closed.refused[0].fault.message


def test_another_learner_never_gets_the_number_of_the_last_one_before_its_rest() -> None:
    """A range of exactly one lablet's size: A ends, B starts in a Pod of the same name."""
    one = mux("20000-20000")
    ann = after(one, [lablet("class-1/lab-0", "ann")])
    bob = after(one, [lablet("class-1/lab-0", "bob")], ann.state, NOW + 1)
    assert (given(bob), refused(bob)) == ({}, {"class-1/lab-0": MuxReason.INVALID_PORT_MAPPING})
    assert bob.refused[0].fault.message.endswith("; the next one that rests is free at 2026-01-31T12:05:01Z")
    again = after(one, [lablet("class-1/lab-0", "ann")], bob.state, NOW + 2)
    assert given(again) == {"class-1/lab-0/ann": [20000]}
    rested = after(one, [lablet("class-1/lab-0", "bob")], bob.state, NOW + 1 + REST_S)
    assert given(rested) == {"class-1/lab-0/bob": [20000]}


def test_a_lablet_and_a_service_of_one_name_are_two() -> None:
    pair = [lablet("app/api", "", "http"), channel("app/api", "http:auto")]
    plan = after(mux(), pair)
    assert given(plan) == {"app/api": [20000], "app/api/": [20001]}
    assert len({port.name for port in plan.ports}) == 2
    assert given(after(mux(), pair[:1], plan.state)) == {"app/api/": [20001]}


def test_two_objects_with_one_identity_are_one_channel() -> None:
    plan = after(mux(), [lablet("class-1/lab-0", "ann"), lablet("class-1/lab-0", "ann", "other")])
    assert given(plan) == {"class-1/lab-0/ann": [20000]}
    assert refused(plan) == {"class-1/lab-0": MuxReason.MUX_PORT_CONFLICT}


def test_a_request_for_a_number_that_rests_waits_and_says_until_when() -> None:
    first = after(mux(), [channel("app/a")])
    gone = after(mux(), [], first.state, NOW)
    waits = after(mux(), [channel("app/b")], gone.state, NOW + 10)
    assert refused(waits) == {"app/b": MuxReason.MUX_PORT_RESTING}
    assert waits.refused[0].fault.message == "TCP port 80 was another's, and rests until 2026-01-31T12:05:00Z"
    assert waits.wake_at == NOW + REST_S
    assert waits.ports == (PLACEHOLDER,)
    assert given(after(mux(), [channel("app/b")], waits.state, NOW + REST_S)) == {"app/b": [80]}
    assert given(after(mux(), [channel("app/a")], waits.state, NOW + 11)) == {"app/a": [80]}, "its own at once"


def test_a_number_rests_until_it_is_certain_that_its_time_is_over() -> None:
    gone = after(mux(), [], after(mux(), [channel("app/a")]).state, NOW)
    later = NOW + 2 * REST_S
    unsure = decide(mux(), [channel("app/b")], gone.state, later, rest_s=REST_S, sure=False)
    assert refused(unsure) == {"app/b": MuxReason.MUX_PORT_RESTING}
    assert unsure.wake_at == later + 5
    assert given(decide(mux(), [channel("app/b")], unsure.state, later, rest_s=REST_S)) == {"app/b": [80]}


def test_a_freed_udp_port_leaves_the_service_when_its_time_is_certainly_over() -> None:
    udp = channel("app/a", "", ServicePort("voice", 5060, "UDP"))
    first = after(mux(), [udp])
    shown = mux(ports=first.ports)
    gone = after(shown, [], first.state, NOW)
    later = NOW + 100
    unsure = decide(shown, [], gone.state, later, rest_s=REST_S, sure=False)
    assert ([drain.port.port for drain in unsure.drains], unsure.wake_at) == ([5060], later + 5)
    assert decide(mux(), [], gone.state, later, rest_s=REST_S, sure=False).drains == (), "it has left already"
    assert decide(shown, [], gone.state, later, rest_s=REST_S).drains == ()


def test_fresh_numbers_come_first_then_the_one_that_rested_longest() -> None:
    three = mux("20000-20003")
    names = ["app/a", "app/b", "app/c"]
    state, now = after(three, [channel(name, "http:auto") for name in names]).state, NOW
    for name in ("app/c", "app/a", "app/b"):
        names.remove(name)
        now += 10
        state = after(three, [channel(left, "http:auto") for left in names], state, now).state
    later = now + REST_S
    newcomers = [channel(f"app/n{n}", "http:auto") for n in range(4)]
    plan = after(three, newcomers, state, later)
    assert given(plan) == {"app/n0": [20003], "app/n1": [20002], "app/n2": [20000], "app/n3": [20001]}
    assert plan.state.resting == ()


def test_a_clock_that_was_ahead_keeps_no_number_for_ever() -> None:
    first = after(mux(), [channel("app/a")])
    state = after(mux(), [], first.state, NOW + 10**8).state
    waits = after(mux(), [channel("app/b")], state, NOW)
    assert waits.wake_at == NOW + REST_S
    assert given(after(mux(), [channel("app/b")], waits.state, NOW + REST_S)) == {"app/b": [80]}


def test_a_channel_that_swaps_its_own_numbers_gets_them_at_once() -> None:
    state = after(mux(), [channel("app/a", "http:80,grpc:81", HTTP, GRPC)]).state
    plan = after(mux(), [channel("app/a", "http:81,grpc:80", HTTP, GRPC)], state)
    assert (given(plan), plan.state.resting) == ({"app/a": [81, 80]}, ())
    plan = after(mux("80-90"), [channel("app/a", "http:auto,grpc:80", HTTP, GRPC)], state)
    assert given(plan)["app/a"][1] == 80
    assert len(set(given(plan)["app/a"])) == 2


def test_a_port_whose_protocol_changed_is_another() -> None:
    state = after(mux(), [channel("app/a", "dns:auto", ServicePort("dns", 53, "UDP"))]).state
    plan = after(mux(), [channel("app/a", "dns:auto", ServicePort("dns", 53, "TCP"))], state)
    assert [each.row.key for its in plan.mapped.values() for each in its] == [("TCP", 20000)]
    assert [rest.key for rest in plan.state.resting] == [("UDP", 20000)]


def test_the_later_of_two_ports_with_one_hash_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two names of one hash are found by a search: with fewer characters there are many."""
    monkeypatch.setattr(facts, "_NAME_CHARS", 1)
    first = after(mux(), [channel("app/z", "http:auto")])
    name = Owner("app", "z").mux_port_name("http")
    rival = next(f"app/a{n}" for n in range(1000) if Owner("app", f"a{n}").mux_port_name("http") == name)
    plan = after(mux(), [channel(rival, "http:auto"), channel("app/z", "http:auto")], first.state)
    assert (given(plan), refused(plan)) == ({"app/z": [20000]}, {rival: MuxReason.MUX_PORT_NAME_TAKEN})
    assert len({port.name for port in plan.ports}) == len(plan.ports)


def five_ports(name: str) -> Channel:
    ports = [ServicePort(f"p{n}", 8000 + n) for n in range(5)]
    return channel(name, ",".join(f"{port.name}:auto" for port in ports), *ports)


def test_store_holds_about_2500_ports_and_a_channel_beyond_is_refused_whole() -> None:
    channels = [five_ports(f"class/pod-{n:04}") for n in range(600)]
    plan = after(mux("20000-29999"), channels)
    assert 2300 <= len(plan.ports) <= 2700
    assert set(refused(plan).values()) == {MuxReason.MUX_STORE_FULL}
    assert len(plan.ports) == 5 * len(plan.mapped)
    data, packed = muxstate.write(plan.state, mux().ref)
    assert packed == {}
    assert len(data["allocations.json"]) <= muxstate.STORE_BYTES_MAX
    emptied = after(mux("20000-29999"), [], plan.state, NOW)
    assert len(muxstate.write(emptied.state, mux().ref)[0]["allocations.json"]) <= 1000 * 1024
    waits = after(mux("20000-29999"), channels[:1], emptied.state, NOW + 1)
    assert given(waits) == {"class/pod-0000": given(plan)["class/pod-0000"]}
    others = [five_ports(f"other/pod-{n:04}") for n in range(400)]
    full = after(mux("20000-29999"), others, emptied.state, NOW + REST_S)
    assert (len(full.mapped), full.refused) == (400, ()), "numbers whose rest is over make room"


def test_a_number_that_rested_is_given_once_to_a_channel_that_needs_two() -> None:
    state = after(mux("20000-20000"), [channel("app/a", "http:auto")]).state
    gone = after(mux("20000-20000"), [], state)
    two = channel("app/b", "http:auto,grpc:auto", HTTP, GRPC)
    plan = after(mux("20000-20000"), [two], gone.state, NOW + REST_S)
    assert (given(plan), refused(plan)) == ({}, {"app/b": MuxReason.INVALID_PORT_MAPPING})


def test_what_the_cluster_shows_gives_nobody_a_number_that_rests_for_another() -> None:
    gone = after(mux(), [], after(mux(), [channel("app/a", "http:auto")]).state)
    plan = after(mux(), [channel("app/b", "http:auto", told="http:80->20000")], gone.state, NOW + 1)
    assert given(plan) == {"app/b": [20001]}
    shown = (ServicePort(Owner("app", "b").mux_port_name("http"), 20000),)
    assert given(after(mux(ports=shown), [channel("app/b", "http:auto")], gone.state, NOW + 1)) == {"app/b": [20001]}


def test_a_second_pass_over_a_full_store_decides_as_the_first_one_did() -> None:
    """The first one forgets a number whose rest is over, which a refused channel says that it had."""
    old = Resting(protocol="TCP", port=7, freed_at=int(NOW), namespace="b", service="old", port_name="http")
    says = channel("a/says", "http:7", told="http:80->7")
    over = NOW + REST_S
    plan = decide(mux(), [says], MuxState(resting=(old,)), over, rest_s=REST_S, bytes_max=140)
    assert refused(plan) == {"a/says": MuxReason.MUX_STORE_FULL}
    assert decide(mux(ports=plan.ports), [says], plan.state, over, rest_s=REST_S, bytes_max=140) == plan


def test_a_number_that_a_port_has_back_is_not_given_to_another_port_of_its_channel() -> None:
    """It rested long enough for everybody, and is the last one in the range."""
    small = mux("20000-20001")
    first = after(small, [channel("a/one", "http:auto"), channel("a/other", "http:auto")])
    gone = after(small, [channel("a/other", "http:auto")], first.state)
    both = channel("a/one", "http:auto,grpc:auto", HTTP, GRPC)
    plan = after(small, [both, channel("a/other", "http:auto")], gone.state, NOW + REST_S)
    assert (given(plan), refused(plan)) == ({"a/other": [20001]}, {"a/one": MuxReason.INVALID_PORT_MAPPING})
