"""How people name a link; each packet of a file that grows, once; the words that ask for a capture."""

import struct

import pytest

from vkprovider.lablet import captures
from vkprovider.lablet.captures import CaptureRequest
from vkprovider.lablet.observations import LinkFact
from vkprovider.labs.pure.console.links import EMPTY, GrowingPcap, find, named
from vkprovider.platform.errors import InputError, Unavailable

LABELS = {"1": "r1", "2": "r2", "3": "core-sw", "4": "grader", "5": "oracle", "6": "sw1", "7": "sw2"}
ENOUGH = 2**20


def link(id_: str, label: str, a: str, b: str) -> LinkFact:
    return LinkFact(id_, label, (a, b))


LINKS = named(
    [
        link("l1", "r1-GigabitEthernet0/0<->r2-GigabitEthernet0/0", "1", "2"),
        link("l2", "r1-GigabitEthernet0/1<->r2-GigabitEthernet0/10", "1", "2"),
        link("l3", "r2-Loopback0<->core-sw-eth1", "2", "3"),
        link("l4", "something else", "3", "4"),
        link("l5", "grader-eth1<->oracle-eth0", "4", "5"),
    ],
    LABELS,
    frozenset({"grader", "oracle"}),
    frozenset(),
)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("r1:GigabitEthernet0/0", "l1"),
        ("R2:gi0/0", "l1"),
        ("r1:g0/1", "l2"),
        ("r2:GigabitEthernet0/10", "l2"),
        ("core-sw:eth1", "l3"),
        ("r2-core-sw", "l3"),
        ("core-sw-r2", "l3"),
        ("grader-core-sw", "l4"),
    ],
)
def test_names_of_links(name: str, id_: str) -> None:
    assert find(LINKS, name).fact.id == id_


@pytest.mark.parametrize(
    "name", ["r1-r2", "r1", "r1:", "r1:0/0", "r3:eth0", "r1:gi0/10", "r1:xe0/0", "", "grader-oracle", "oracle:eth0"]
)
def test_a_name_of_none_or_of_several_is_refused_with_those_that_are_meant(name: str) -> None:
    with pytest.raises(InputError) as refusal:
        find(LINKS, name)
    assert refusal.value.reason == "NotALink"
    assert "r1:GigabitEthernet0/0 - r2:GigabitEthernet0/0" in refusal.value.message
    assert "- oracle" not in refusal.value.message, "nobody sees what is between hidden devices"
    assert ("several" in refusal.value.message) == (name == "r1-r2")


def test_what_hidden_devices_say_is_not_captured_behind_a_switch_either() -> None:
    wires = [("4", "6"), ("6", "7"), ("7", "5"), ("6", "1"), ("1", "4"), ("5", "8")]
    facts = [link(f"{a}{b}", "", a, b) for a, b in wires]
    wiring = frozenset({"sw1", "sw2"})
    shown = named(facts, LABELS, frozenset({"grader", "oracle"}), wiring)
    assert {each.fact.id for each in shown} == {"61", "14"}, "where r1 hears it; nobody knows what device 8 is"
    assert len(named(facts, LABELS, frozenset(), wiring)) == len(wires)


def record(order: str, payload: bytes) -> bytes:
    return struct.pack(f"{order}IIII", 1, 2, len(payload), len(payload)) + payload


@pytest.mark.parametrize(("order", "magic"), [("<", 0xA1B2C3D4), (">", 0xA1B2C3D4), ("<", 0xA1B23C4D)])
def test_each_packet_of_a_file_that_grows_comes_once_and_whole(order: str, magic: int) -> None:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    whole = head + b"".join(record(order, b"x" * n) for n in (60, 0, 1500, 61))
    for step in (1, 7, 100, len(whole)):
        file, got = GrowingPcap(), b""
        for end in range(0, len(whole) + step, step):
            new = file.new(whole[:end], ENOUGH)
            assert not file.new(whole[:end], ENOUGH), "nothing twice"
            got += new
            assert file.has_begun == bool(got)
        assert got == whole
        assert file.packets == 4


def test_a_long_file_comes_in_parts_of_whole_packets() -> None:
    whole = EMPTY + record("<", b"x" * 60) * 5
    file, parts = GrowingPcap(), list[bytes]()
    while new := file.new(whole, 100):
        parts.append(new)
    assert b"".join(parts) == whole
    assert [len(part) for part in parts] == [24 + 76, 2 * 76, 2 * 76]


def test_what_grows_no_more_is_passed_over_and_what_is_no_capture_is_an_error() -> None:
    file = GrowingPcap()
    whole = EMPTY + record("<", b"x" * 60)
    assert file.new(whole, ENOUGH) == whole
    assert file.new(EMPTY, ENOUGH) == b""
    assert file.new(whole + record("<", b"y" * 60), ENOUGH) == record("<", b"y" * 60)
    for data in (b"<html>" + b"x" * 60, EMPTY + struct.pack("<IIII", 0, 0, 2**30, 2**30)):
        with pytest.raises(Unavailable):
            GrowingPcap().new(data, ENOUGH)


def test_words_come_back() -> None:
    for asked in (CaptureRequest("r1:eth0"), CaptureRequest("r1-r2", "icmp or arp", 5, 3600)):
        assert captures.read(asked.words()) == asked
    assert captures.read(["capture", "r1:eth0"]) == CaptureRequest("r1:eth0", "", 1000, 60)


@pytest.mark.parametrize(
    "words",
    [
        [""],
        ["--packets=3"],
        ["l", "--packets=0"],
        ["l", "--packets=10001"],
        ["l", "--seconds=3601"],
        ["l", "--seconds=1h"],
        ["l", "--packets=" + "1" * 5000],
        ["l", "--filter=-w/tmp/x"],
        ["l", "--filter= -r x"],
        ["l", "--filter=" + "x" * 129],
        ["l", "--filter=a\nb"],
        ["l", "icmp"],
    ],
)
def test_what_is_not_understood_is_refused_with_the_way(words: list[str]) -> None:
    with pytest.raises(InputError, match="write `capture LINK"):
        captures.read(["capture", *words])
