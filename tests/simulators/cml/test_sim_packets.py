"""What a capture of a link sees: frames that others can read, each once, within filter and limits."""

import struct
from collections import Counter
from typing import Any

import pytest

from vkpsim.cml.packets import EVERY_S, captured, pcap, shown
from vkpsim.cml.world.model import Capture

A, B = bytes.fromhex("525400000001"), bytes.fromhex("525400000002")
START = 1_800_000_000.25


def capture(stopped_at: float | None = None, **config: Any) -> Capture:
    return Capture(key="k", config={"maxpackets": 50, "maxtime": 60, **config}, started_at=START, stopped_at=stopped_at)


def seen(after_s: float, made: Capture, *, carries: bool = True) -> list[tuple[int, str]]:
    found = captured(made, (A, B), carries=carries, now=START + after_s)
    return [(each.number, each.protocol) for each in found]


def test_who_asks_later_sees_the_same_packets_and_more() -> None:
    early, late = seen(2, capture()), seen(20, capture())
    assert (len(early), late[: len(early)], len(late)) == (5, early, 41)
    assert seen(20, capture(stopped_at=START + 2)) == early
    assert seen(20, capture(), carries=False) == []


@pytest.mark.parametrize(
    ("config", "count"), [({"maxpackets": 7}, 7), ({"maxtime": 3}, 7), ({"maxpackets": 0}, 0), ({}, 50)]
)
def test_limits(config: dict[str, int], count: int) -> None:
    assert len(seen(3600, capture(**config))) == count


@pytest.mark.parametrize(
    ("expression", "protocols"),
    [
        ("icmp", {"ICMP"}),
        ("arp or icmp", {"ARP", "ICMP"}),
        ("ether proto 0x88cc", {"LLDP"}),
        ("", {"ARP", "ICMP", "LLDP"}),
        ("tcp port 80", set()),
    ],
)
def test_filters(expression: str, protocols: set[str]) -> None:
    found = seen(10, capture(bpfilter=expression))
    assert {protocol for _, protocol in found} == protocols
    assert [number for number, _ in found] == list(range(1, len(found) + 1))


def test_frames_are_as_the_standards_say() -> None:
    found = captured(capture(), (A, B), carries=True, now=START + 5 * EVERY_S)
    kinds = Counter(struct.unpack(">H", each.frame[12:14])[0] for each in found)
    assert kinds == {0x88CC: 2, 0x0806: 2, 0x0800: 2}
    assert all(len(each.frame) >= 60 for each in found)
    request, reply = (each.frame for each in found if each.protocol == "ARP")
    assert (request[:6], request[6:12], reply[:12]) == (b"\xff" * 6, A, A + B)
    assert reply[22:32] == B + bytes((192, 0, 2, 2))
    for each in found:
        if each.protocol == "ICMP":
            for part in (each.frame[14:34], each.frame[34:]):  # a sum with its checksum is all ones
                total = sum(struct.unpack(f">{len(part) // 2}H", part))
                assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert shown(found[0])["length"] == len(found[0].frame)


def test_a_file_is_a_header_and_a_record_for_each_packet() -> None:
    found = captured(capture(), (A, B), carries=True, now=START + 1)
    data = pcap(found)
    magic, major, minor, _, _, _, kind = struct.unpack("<IHHiIII", data[:24])
    assert (magic, major, minor, kind) == (0xA1B2C3D4, 2, 4, 1)
    at, records = 24, []
    while at < len(data):
        seconds, micros, length, whole = struct.unpack("<IIII", data[at : at + 16])
        records.append((seconds + micros / 1e6, length, whole, data[at + 16 : at + 16 + length]))
        at += 16 + length
    assert records == [(each.at, len(each.frame), len(each.frame), each.frame) for each in found]
