"""Packets of a link, as a capture sees them: what two devices that know each other say all the time. Pure.

Every half second one end of the link sends: LLDP, an ARP request, its answer, an ICMP echo, its answer, LLDP again.
Whoever asks later sees the same packets and the ones since, so that a client may poll.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

import msgspec

from vkpsim.cml.world.model import Capture

EVERY_S: Final = 0.5
_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""Of a pcap file: little-endian, microseconds, Ethernet."""
_IPS: Final = (bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2)))
_ALL: Final = b"\xff" * 6
_LLDP: Final = bytes.fromhex("0180c200000e")
_LEAST: Final = 60
"""An Ethernet frame is filled up to that length."""
_FILTERS: Final = {"": "", "arp": "ARP", "icmp": "ICMP", "ether proto 0x88cc": "LLDP"}
"""The expressions that the simulator knows, each alone or joined by `or`; any other lets nothing through."""


class Packet(msgspec.Struct, frozen=True):
    """A packet.

    Attributes:
        number: From 1, among those that the filter lets through.
        at: When it was sent, in Unix seconds.
        protocol: `ARP`, `ICMP` or `LLDP`.
        info: What it says, for people.
        frame: From the destination's address on.
    """

    number: int
    at: float
    protocol: str
    info: str
    frame: bytes


def captured(capture: Capture, macs: tuple[bytes, bytes], *, carries: bool, now: float) -> list[Packet]:
    """Return the packets that a capture has, within its filter and its limits of packets and seconds.

    Args:
        capture: The capture.
        macs: Of the interfaces of its link.
        carries: Whether the link is connected; else there are none.
        now: The time.
    """
    until = now if capture.stopped_at is None else min(now, capture.stopped_at)
    until = min(until, capture.started_at + float(capture.config.get("maxtime") or now))
    wanted = _wanted(str(capture.config.get("bpfilter") or ""))
    limit, found, turn = int(capture.config.get("maxpackets") or 0), list[Packet](), 0
    while carries and len(found) < limit and (at := capture.started_at + turn * EVERY_S) <= until:
        protocol, info, frame = _SAID[turn % len(_SAID)](*macs, turn)
        if wanted is None or protocol in wanted:
            found.append(Packet(len(found) + 1, at, protocol, info, frame.ljust(_LEAST, b"\0")))
        turn += 1
    return found


def runs(capture: Capture, count: int, now: float) -> bool:
    """Return whether a capture that has so many packets goes on."""
    config, since = capture.config, now - capture.started_at
    is_full = count >= int(config.get("maxpackets") or 0)
    return capture.stopped_at is None and not is_full and since < float(config.get("maxtime") or now)


def pcap(packets: list[Packet]) -> bytes:
    """Return packets as a pcap file."""
    body = [_HEADER]
    for each in packets:
        seconds, micros = divmod(round(each.at * 1_000_000), 1_000_000)
        body += [struct.pack("<IIII", seconds, micros, len(each.frame), len(each.frame)), each.frame]
    return b"".join(body)


def shown(packet: Packet) -> dict[str, Any]:
    """Return a packet as JSON; the real shape is in no document that is public."""
    return {
        "number": packet.number,
        "time": packet.at,
        "protocol": packet.protocol,
        "length": len(packet.frame),
        "info": packet.info,
    }


def _wanted(expression: str) -> frozenset[str] | None:
    """Return the protocols that a filter lets through; None for all."""
    if not expression.strip():
        return None
    return frozenset(_FILTERS.get(part.strip().lower(), "") for part in expression.split(" or "))


def _ethernet(to: bytes, source: bytes, kind: int, payload: bytes) -> bytes:
    return to + source + struct.pack(">H", kind) + payload


def _lldp(source: bytes, name: bytes) -> bytes:
    parts = ((1, b"\x04" + source), (2, b"\x05" + name), (3, struct.pack(">H", 120)), (5, name), (0, b""))
    return _ethernet(
        _LLDP, source, 0x88CC, b"".join(struct.pack(">H", kind << 9 | len(text)) + text for kind, text in parts)
    )


def _arp(to: bytes, source: bytes, act: int, mine: bytes, other: bytes) -> bytes:
    target = b"\0" * 6 if to == _ALL else to
    head = struct.pack(">HHBBH", 1, 0x0800, 6, 4, act)
    return _ethernet(to, source, 0x0806, head + source + mine + target + other)


def _echo(to: bytes, source: bytes, kind: int, turn: int, mine: bytes, other: bytes) -> bytes:
    sequence, text = turn // len(_SAID) % 65536, bytes(range(48))
    icmp = struct.pack(">BBHHH", kind, 0, 0, 1, sequence) + text
    icmp = icmp[:2] + struct.pack(">H", _sum(icmp)) + icmp[4:]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(icmp), turn % 65536, 0, 64, 1, 0) + mine + other
    return _ethernet(to, source, 0x0800, head[:10] + struct.pack(">H", _sum(head)) + head[12:] + icmp)


def _sum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


_Saying = Callable[[bytes, bytes, int], tuple[str, str, bytes]]
_SAID: Final[tuple[_Saying, ...]] = (
    lambda a, _, __: ("LLDP", "neighbour a", _lldp(a, b"a")),
    lambda a, _, __: ("ARP", "who has 192.0.2.2", _arp(_ALL, a, 1, *_IPS)),
    lambda a, b, _: ("ARP", "192.0.2.2 is here", _arp(a, b, 2, _IPS[1], _IPS[0])),
    lambda a, b, turn: ("ICMP", "echo request", _echo(b, a, 8, turn, *_IPS)),
    lambda a, b, turn: ("ICMP", "echo reply", _echo(a, b, 0, turn, _IPS[1], _IPS[0])),
    lambda _, b, __: ("LLDP", "neighbour b", _lldp(b, b"b")),
)
