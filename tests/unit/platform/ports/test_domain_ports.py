"""Port allocation: the first that fit, in a row if there is one, and never anybody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet.models.worker import PortRange as SpecRange
from vkprovider.platform.errors import InputError
from vkprovider.platform.ports import allocator
from vkprovider.platform.ports.allocator import TCP, UDP, HeldPort, PortBounds, PortUsage, RequestedPort, allocate

HERE = PortBounds(10000, 20000)
few = st.integers(1, 40)


def holding(*numbers: int, protocol: str = TCP) -> PortUsage:
    usage = PortUsage()
    usage.hold("other", [HeldPort(f"{number}", protocol, number) for number in numbers])
    return usage


def tcp(count: int) -> list[RequestedPort]:
    return [RequestedPort(f"s{i}") for i in range(count)]


def give(wanted: list[RequestedPort], usage: PortUsage, *ranges: PortBounds, most: int = 50) -> list[int]:
    return list(allocate(wanted, usage, *(ranges or (HERE,)), per_instance_max=most).values())


def test_three_ports_behind_ten_that_are_taken() -> None:
    """R000-056: the allocation half of the worked example."""
    wanted = [RequestedPort("workstation_serial"), RequestedPort("workstation_vnc"), RequestedPort("workstation_pat22")]
    usage = holding(*range(10001, 10011))
    given_ = allocate(wanted, usage, PortBounds(10001, 20000), per_instance_max=50)
    assert given_ == {"workstation_serial": 10011, "workstation_vnc": 10012, "workstation_pat22": 10013}
    assert list(given_) == [slot.name for slot in wanted]


@pytest.mark.parametrize(
    ("taken", "count", "expected"),
    [
        ((), 2, [10000, 10001]),
        ((10000,), 1, [10001]),
        ((10001, 10004), 2, [10002, 10003]),
        ((10001, 10004), 1, [10000]),
        ((10001, 10003, 10005), 3, [10006, 10007, 10008]),
    ],
)
def test_the_first_row_that_is_long_enough(taken: tuple[int, ...], count: int, expected: list[int]) -> None:
    """C23."""
    assert give(tcp(count), holding(*taken)) == expected


def test_without_a_row_single_ports_do() -> None:
    """C23: a row is preferred, never required."""
    assert give(tcp(3), holding(11, 13, 15), PortBounds(10, 15)) == [10, 12, 14]


def test_both_ends_belong_to_the_range() -> None:
    """C22."""
    assert give(tcp(3), PortUsage(), PortBounds(7, 9)) == [7, 8, 9]
    assert give(tcp(1), PortUsage(), PortBounds(65535, 65535)) == [65535]
    assert allocate(tcp(2), PortUsage(), SpecRange(start=5, end=6), per_instance_max=2) == {"s0": 5, "s1": 6}


def test_protocols_are_independent() -> None:
    """R003-043."""
    wanted = [RequestedPort("a", TCP), RequestedPort("b", UDP), RequestedPort("c", TCP), RequestedPort("d", UDP)]
    assert give(wanted, holding(10000)) == [10001, 10000, 10002, 10001]
    assert give(wanted, holding(10000, protocol=UDP)) == [10000, 10001, 10001, 10002]


def test_ranges_are_used_in_their_order() -> None:
    """R003-023, R003-028."""
    first, second = PortBounds(200, 202), PortBounds(100, 109)
    assert give(tcp(2), PortUsage(), first, second) == [200, 201]
    assert give(tcp(4), PortUsage(), first, second) == [100, 101, 102, 103], "a row"
    assert give(tcp(4), holding(101, 103, 105, 107), first, second) == [200, 201, 202, 100]
    assert give(tcp(2), PortUsage(), PortBounds(10, 11), PortBounds(11, 12)) == [10, 11], "they may overlap"
    assert give(tcp(3), PortUsage(), PortBounds(10, 11), PortBounds(11, 12)) == [10, 11, 12]


def refused(wanted: list[RequestedPort], usage: PortUsage, *, most: int = 50) -> InputError:
    before = dict(usage.holders)
    with pytest.raises(InputError) as caught:
        allocate(wanted, usage, PortBounds(10, 13), per_instance_max=most)
    assert usage.holders == before, "R000-061, R003-032: nothing is allocated"
    return caught.value


def test_a_full_range_is_told() -> None:
    """R000-061, R003-032."""
    full = refused(tcp(3), holding(10, 13))
    assert full.reason == "PortRangeFull"
    assert full.message == "needs 3 TCP ports; free in 10-13: 2"
    assert refused([RequestedPort("a", UDP), *tcp(1)], holding(10, 11, 12, 13)).reason == "PortRangeFull"


def test_too_many_ports_are_told() -> None:
    """R000-059, R000-061."""
    many = refused(tcp(3), PortUsage(), most=2)
    assert many.reason == "TooManyPorts"
    assert many.message == "needs 3 external ports; the limit is 2 per lablet (PORTS_PER_INSTANCE_MAX)"
    assert allocate([], PortUsage(), HERE, per_instance_max=0) == {}


def test_a_slot_that_is_named_twice_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="twice"):
        allocate([RequestedPort("a"), RequestedPort("a", UDP)], PortUsage(), HERE, per_instance_max=5)


def test_ports_that_slots_had_are_given_again() -> None:
    """R003-029: as far as they are free and in the range."""
    keep = {"s0": 12, "s1": 99, "s2": 11, "gone": 10}
    given_ = allocate(tcp(4), holding(11), PortBounds(10, 16), per_instance_max=5, keep=keep)
    assert given_ == {"s0": 12, "s1": 13, "s2": 14, "s3": 15}
    assert allocate(tcp(1), PortUsage(), HERE, per_instance_max=5, keep={"s0": 10005}) == {"s0": 10005}


def test_a_port_has_one_holder() -> None:
    """R003-043: a conflict takes nothing, within one owner too (R003-047)."""
    usage = holding(10)
    for wrong in ([HeldPort("a", TCP, 9), HeldPort("b", TCP, 10)], [HeldPort("a", TCP, 9), HeldPort("b", TCP, 9)]):
        with pytest.raises(InputError, match="is held by") as caught:
            usage.hold("us", wrong)
        assert caught.value.reason == "PortConflict"
        assert usage == holding(10)
        assert usage.mask(TCP) == 1 << 10
    usage.hold("us", [HeldPort("a", UDP, 10)])
    assert usage.holders["UDP", 10] == ("us", "a")


def test_only_the_holder_frees_a_port() -> None:
    """R000-066: and as often as it likes."""
    usage = holding(10)
    usage.free("us", [HeldPort("a", TCP, 10), HeldPort("b", TCP, 11)])
    assert len(usage) == 1
    for _ in range(2):
        usage.free("other", [HeldPort("a", TCP, 10)])
    assert (len(usage), usage.mask(TCP)) == (0, 0)


def test_slots_tell_their_protocols() -> None:
    wanted = [RequestedPort("a"), RequestedPort("b", UDP)]
    assert allocator.udp_names(wanted) == ("b",)
    assert allocator.held({"a": 1, "b": 2}, ("b",)) == [HeldPort("a", TCP, 1), HeldPort("b", UDP, 2)]


@given(
    taken=st.sets(st.tuples(st.sampled_from([TCP, UDP]), few)),
    protocols=st.lists(st.sampled_from([TCP, UDP]), max_size=8),
    ranges=st.lists(st.tuples(few, few).map(lambda r: PortBounds(min(r), max(r))), min_size=1, max_size=3),
    keep=st.dictionaries(st.sampled_from(["0", "1", "2"]), few),
)
def test_what_is_given_is_free_in_the_range_and_complete(
    taken: set[tuple[str, int]], protocols: list[str], ranges: list[PortBounds], keep: dict[str, int]
) -> None:
    """R000-054: against a plain account of the free ports."""
    usage = PortUsage()
    for protocol, port in taken:
        usage.hold("other", [HeldPort("x", protocol, port)])
    wanted = [RequestedPort(str(i), protocol) for i, protocol in enumerate(protocols)]
    inside = {port for r in ranges for port in range(r.start, r.end + 1)}
    free = {p: [n for n in sorted(inside) if (p, n) not in taken] for p in (TCP, UDP)}
    assert {p: sum(not usage.mask(p) >> n & 1 for n in inside) for p in free} == {p: len(n) for p, n in free.items()}
    if any(protocols.count(p) > len(free[p]) for p in free):
        with pytest.raises(InputError, match="; free in"):
            allocate(wanted, usage, *ranges, per_instance_max=8, keep=keep)
        return
    found = allocate(wanted, usage, *ranges, per_instance_max=8, keep=keep)
    assert found == allocate(wanted, usage, *ranges, per_instance_max=8, keep=keep)
    assert list(found) == [slot.name for slot in wanted]
    usage.hold("us", allocator.held(found, allocator.udp_names(wanted)))
    assert set(found.values()) <= inside
    for p in free if not keep and len(ranges) == 1 else ():
        mine = [port for slot, port in zip(wanted, found.values(), strict=True) if slot.protocol == p]
        rows = [free[p][i : i + len(mine)] for i in range(len(free[p]) - len(mine) + 1)]
        assert mine == next((row for row in rows if row and row[-1] - row[0] == len(row) - 1), free[p][: len(mine)])
