"""Channels of WebSockets, pairs of port-forward, sizes of terminals and statuses."""

import asyncio
import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.kubelet import wire
from vkprovider.labs.kubelet.spdy.session import PAIRING_S, Pair, Pairs, parse_ports
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.labs.kubelet.streams.inlets import Inlet, InletRoom
from vkprovider.labs.kubelet.wire import HalfClose, Payload, ProtocolError, codec_of, status_json, status_text


def test_binary_channels() -> None:
    codec = codec_of(wire.V5)
    assert codec.encode(1, b"out") == b"\x01out"
    assert codec.decode(b"\x00typed") == Payload(0, b"typed")
    assert codec.decode(b"\x00") == Payload(0, b"")
    assert codec.decode(b"\xff\x00") == HalfClose(0)
    assert codec.decode(b"") is None
    with pytest.raises(ProtocolError):
        codec.decode(b"\xff")
    with pytest.raises(ProtocolError):
        codec.decode("0typed")


async def test_a_message_without_bytes_is_no_end() -> None:
    """A client may send one, such as an editor that forwards each change of a selection."""
    inlet = Inlet(InletRoom(100))
    inlet.feed(b"")
    reading = asyncio.create_task(inlet.read())
    await asyncio.sleep(0)
    assert not reading.done()
    inlet.feed(b"x")
    assert await reading == b"x"
    inlet.end()
    assert await inlet.read() == b""


@pytest.mark.parametrize("protocol", ["", "channel.k8s.io", "v4.channel.k8s.io"])
def test_half_close_belongs_to_v5(protocol: str) -> None:
    assert codec_of(protocol).decode(b"\xff\x00") == Payload(255, b"\x00")


@pytest.mark.parametrize("protocol", ["base64.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_base64_channels(protocol: str) -> None:
    codec = codec_of(protocol)
    assert codec.encode(1, b"\n") == "1Cg=="
    assert codec.decode("0Zm9vCg==") == Payload(0, b"foo\n")
    assert codec.decode("") is None
    for wrong in ("0Zm9", "0****", "0é"):
        with pytest.raises(ProtocolError):
            codec.decode(wrong)
    with pytest.raises(ProtocolError):
        codec.decode(base64.b64encode(b"x"))


@given(st.integers(0, 4), st.binary(max_size=100), st.sampled_from(wire.COMMANDS))
def test_both_codecs_read_what_they_write(channel: int, data: bytes, protocol: str) -> None:
    codec = codec_of(protocol)
    assert codec.decode(codec.encode(channel, data)) == Payload(channel, data)


def headers(kind: str, port: str = "80", request: str = "0") -> dict[str, str]:
    return {"streamtype": kind, "port": port} | ({"requestid": request} if request else {})


def test_pairs_in_any_order() -> None:
    pairs = Pairs()
    assert pairs.add(1, headers("error", request="0"), 0.0) is None
    assert pairs.add(3, headers("data", "81", request="1"), 0.0) is None
    assert pairs.add(5, headers("error", "81", request="1"), 0.0) == Pair(81, 3, 5)
    assert pairs.add(7, headers("data", request="0"), 0.0) == Pair(80, 7, 1)
    assert pairs.add(9, headers("error", request="0"), 0.0) is None, "a number may be used again"


def test_clients_without_request_ids() -> None:
    pairs = Pairs()
    pairs.add(1, headers("error", request=""), 0.0)
    assert pairs.add(3, headers("data", request=""), 0.0) == Pair(80, 3, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        headers("stdin"),
        headers(""),
        headers("data", ""),
        headers("data", "0"),
        headers("data", "65536"),
        headers("data", "٣"),
        headers("data", "-1"),
        headers("data", "9" * 10_000),
        headers("error"),
        headers("data", "81"),
    ],
)
def test_wrong_halves_are_refused(wrong: dict[str, str]) -> None:
    pairs = Pairs()
    pairs.add(1, headers("error"), 0.0)
    with pytest.raises(ProtocolError):
        pairs.add(3, wrong, 0.0)
    assert pairs.add(5, headers("data"), 0.0) == Pair(80, 5, 1)


def test_halves_do_not_wait_for_ever() -> None:
    pairs = Pairs()
    pairs.add(1, headers("error"), 0.0)
    pairs.add(3, headers("error", request="1"), 10.0)
    assert pairs.expire(PAIRING_S - 0.1) == []
    assert pairs.expire(PAIRING_S) == [1]
    assert pairs.add(5, headers("data"), PAIRING_S) is None
    assert pairs.expire(1000.0) == [3, 5]


def test_ports_of_channels() -> None:
    assert parse_ports(["80,443", "22"]) == (80, 443, 22)
    for wrong in ([], [""], ["80,"], ["x"], [",".join(["80"] * 128)]):
        with pytest.raises(ProtocolError):
            parse_ports(wrong)


@pytest.mark.parametrize(
    ("status", "expected", "text"),
    [
        (Exit(0), {"metadata": {}, "status": "Success"}, ""),
        (
            Exit(3),
            {
                "metadata": {},
                "status": "Failure",
                "reason": "NonZeroExitCode",
                "message": "command terminated with non-zero exit code: 3",
                "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
            },
            "command terminated with non-zero exit code: 3",
        ),
        (
            Exit(124, "r1 did not answer"),
            {
                "metadata": {},
                "status": "Failure",
                "reason": "NonZeroExitCode",
                "message": "r1 did not answer",
                "details": {"causes": [{"reason": "ExitCode", "message": "124"}]},
            },
            "r1 did not answer",
        ),
        (
            Exit(1, "the worker moved", "Moved"),
            {"metadata": {}, "status": "Failure", "reason": "Moved", "message": "the worker moved", "code": 500},
            "the worker moved",
        ),
        (
            Exit(256),
            {
                "metadata": {},
                "status": "Failure",
                "reason": "InternalError",
                "message": "the command ended with 256",
                "code": 500,
            },
            "the command ended with 256",
        ),
    ],
)
def test_statuses(status: Exit, expected: dict[str, object], text: str) -> None:
    assert json.loads(status_json(status)) == expected
    assert status_text(status).decode() == text


def test_which_protocols_end_with_a_status() -> None:
    assert [protocol for protocol in wire.COMMANDS if wire.has_json_status(protocol)] == [
        "v5.channel.k8s.io",
        "v4.channel.k8s.io",
        "v4.base64.channel.k8s.io",
    ]
