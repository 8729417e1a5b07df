"""Any history of a mux: channels come, go, change their mind and lie; the store is lost in no pass."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.mux.builders import NOW, PREFIX, REST_S, mux
from vkprovider.mux.pure import state as muxstate
from vkprovider.mux.pure.decide import PLACEHOLDER, Plan, decide
from vkprovider.mux.pure.facts import Channel, Mux, Owner, PortKey, ServicePort
from vkprovider.mux.pure.state import MuxState
from vkprovider.platform.objects import ConfigMap, Metadata

OWNERS = [
    Owner("a", "one"),
    Owner("a", "two"),
    Owner("b", "one"),
    Owner("a", "one", ""),
    Owner("a", "one", "ann"),
    Owner("a", "one", "bob"),
]
ASKED = st.sampled_from(["auto", "auto", "auto", "100", "101", "102", "103", "7"])
PORTS = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(["TCP", "UDP"]), ASKED),
    min_size=1,
    max_size=3,
    unique_by=lambda port: port[0],
)
TOLD = st.sampled_from(["", "", "p:1->100", "p:1->101, q:1->7"])


@st.composite
def channels(draw: st.DrawFn) -> list[Channel]:
    found = []
    for owner in draw(st.lists(st.sampled_from(OWNERS), max_size=5, unique=True)):
        ports = draw(PORTS)
        annotations = {
            f"{PREFIX}/external-ports": ",".join(f"{name}:{asked}" for name, _, asked in ports),
            f"{PREFIX}/ports": draw(TOLD),
        }
        found.append(Channel(owner, tuple(ServicePort(name, 1, protocol) for name, protocol, _ in ports), annotations))
    return found


Step = tuple[list[Channel], str | None, str | None, float, bool]
"""Channels, port range, limit, seconds since the last pass, and whether the mux was applied again without ports."""

STEP: st.SearchStrategy[Step] = st.tuples(
    channels(),
    st.sampled_from([None, "x", "100-101", "100-103", "102-104,100-100"]),
    st.sampled_from([None, "x", "2", "4"]),
    st.sampled_from([1.0, 100.0, REST_S]),
    st.booleans(),
)


def stored(state: MuxState, the_mux: Mux) -> MuxState:
    """What the next pass reads."""
    data, binary = muxstate.write(state, the_mux.ref)
    annotations = muxstate.store_annotations(the_mux.ref, PREFIX)
    return muxstate.read(ConfigMap(Metadata("m", annotations=annotations), data, binary), the_mux.ref, PREFIX)


def check(plan: Plan, before: MuxState, present: list[Channel], limit: str | None) -> None:
    ports = [each for its in plan.mapped.values() for each in its]
    keys = [each.row.key for each in ports]
    assert len(set(keys)) == len(keys), "no port twice"
    assert len({each.name for each in ports}) == len(ports)
    drained = {(drain.port.name, "UDP", drain.port.port) for drain in plan.drains}
    served = {(each.name, *each.row.key) for each in ports}
    shown = [(port.name, port.protocol, port.port) for port in plan.ports if port != PLACEHOLDER]
    assert sorted(shown) == sorted(served | drained)
    assert (
        len({name for name, _, _ in shown}) == len({(protocol, number) for _, protocol, number in shown}) == len(shown)
    )
    claims = {row.key: muxstate.owner_of(row) for row in plan.state.claims}
    assert len(claims) == len(plan.state.claims)
    assert all(claims[each.row.key] == muxstate.owner_of(each.row) for each in ports), "claimed before it is given"
    assert not claims.keys() & {rest.key for rest in plan.state.resting}
    owners = {channel.owner for channel in present}
    assert plan.mapped.keys() | {each.channel.owner for each in plan.refused} == owners
    assert not plan.mapped.keys() & {each.channel.owner for each in plan.refused}
    asking = {channel.owner: channel for channel in present}
    for owner, its in plan.mapped.items():
        assert {each.row.port_name for each in its} == {port.name for port in asking[owner].ports}, "whole or not"
    for key, owner in before.port_owners().items():
        assert claims.get(key, owner) == owner, "nobody else has it in the same pass"
    known = claims | {rest.key: rest.owner for rest in plan.state.resting}
    assert all(known["UDP", drain.port.port] == drain.owner for drain in plan.drains)
    if limit is not None and limit.isdigit():
        assert len(plan.ports) <= int(limit)
    else:
        left = before.port_owners().keys() - set(keys)
        assert {key for key in left if key[0] == "UDP"} <= {("UDP", drain.port.port) for drain in plan.drains}


@settings(deadline=None)
@given(st.lists(STEP, max_size=8), st.sampled_from([1500, muxstate.STORE_BYTES_MAX]))
def test_no_port_has_two_owners_and_none_is_given_before_its_rest(steps: list[Step], bytes_max: int) -> None:
    state, now = MuxState(), NOW
    shown: tuple[ServicePort, ...] = ()
    last: dict[PortKey, tuple[Owner, float]] = {}
    for present, port_range, limit, pause, applied_again in steps:
        now += pause
        annotations = {} if limit is None else {"max_ports": limit}
        the_mux = mux(port_range, ports=() if applied_again else shown, **annotations)
        plan = decide(the_mux, present, state, now, rest_s=REST_S, bytes_max=bytes_max)
        check(plan, state, present, limit)
        for owner, its in plan.mapped.items():
            for each in its:
                before, seen = last.get(each.row.key, (owner, now))
                assert before == owner or now - seen >= REST_S
        last |= {key: (owner, now) for key, owner in state.port_owners().items()}
        last |= {each.row.key: (owner, now) for owner, its in plan.mapped.items() for each in its}
        state = stored(plan.state, the_mux)
        assert state == plan.state
        applied = the_mux._replace(ports=plan.ports)
        again = decide(applied, present, state, now, rest_s=REST_S, bytes_max=bytes_max)
        assert (again.state, again.ports, again.mapped) == (plan.state, plan.ports, plan.mapped)
        assert {each.channel.owner for each in again.refused} == {each.channel.owner for each in plan.refused}
        shown = plan.ports
