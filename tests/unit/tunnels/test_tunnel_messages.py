"""The messages on the wire: what they look like, what is refused, and that no frame does any harm."""

import random
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from tunnels import wire
from tunnels.wire import MalformedFrame, Message

GOLDEN = Path(__file__).parent / "golden"

FROM_AGENT: dict[str, wire.AgentMessage] = {
    "hello": wire.Hello(clock_ms=12345, silence_ms=30000, epoch=7, events=3, version="1.2.0", facts=b'{"labs": 2}'),
    "heartbeat": wire.Heartbeat(clock_ms=22345, epoch=7, events=4, facts=b'{"labs": 3}'),
    "goodbye": wire.Goodbye(reason="shutting down"),
    "last-will": wire.Goodbye(reason="its connection was lost", lost=True),
    "response": wire.Response("c1-1", 200, {"content-type": "application/json"}, 4, b"true"),
    "piece": wire.Piece("c1-1", 1, b"more"),
    "want": wire.Want("c1-1", (1, 2, 5)),
    "refusal": wire.Refusal("certificate", "it has expired", "c1-1", "expired"),
    "event": wire.Event(4, "lab", b'{"lab": "x"}'),
    "stream-data": wire.StreamData("c1-2", 3, b"login: "),
    "stream-close": wire.StreamData("c1-2", 4, last=True, reason="the console was closed"),
    "stream-ack": wire.StreamAck("c1-2", 4),
}
FROM_CALLER: dict[str, wire.CallerMessage] = {
    "probe": wire.Probe(),
    "request": wire.Request(
        "c1-1",
        7,
        60000,
        "POST",
        "/api/v0/import",
        {"title": "x"},
        {"content-type": "application/yaml"},
        5,
        b"lab:\n",
    ),
    "cancel": wire.Cancel("c1-1"),
    "stream-open": wire.StreamOpen("c1-2", 7, 60000, "/console/x", {"line": "0"}, {"authorization": "Bearer t"}),
}


@pytest.mark.parametrize("name", [*FROM_AGENT, *FROM_CALLER])
def test_every_message_has_the_form_that_is_written_down(name: str) -> None:
    frame = bytes.fromhex((GOLDEN / f"{name}.hex").read_text())
    if name in FROM_AGENT:
        assert wire.from_agent(frame) == FROM_AGENT[name]
        assert wire.encode(FROM_AGENT[name]) == frame
    else:
        assert wire.from_caller(frame) == FROM_CALLER[name]
        assert wire.encode(FROM_CALLER[name]) == frame


def test_every_kind_of_message_is_written_down() -> None:
    kinds = {type(message) for message in (*FROM_AGENT.values(), *FROM_CALLER.values())}
    assert kinds == set(Message.__subclasses__())
    assert {path.stem for path in GOLDEN.iterdir()} == {*FROM_AGENT, *FROM_CALLER}


def test_a_field_that_a_later_release_adds_is_passed_over() -> None:
    frame = wire.encode(wire.Goodbye("x"))
    grown = frame[:1] + msgspec.msgpack.encode({**msgspec.msgpack.decode(frame[1:]), "later": [{"deep": [1]}]})
    assert wire.from_agent(grown) == wire.Goodbye("x")


def test_each_side_accepts_only_what_the_other_may_send() -> None:
    with pytest.raises(MalformedFrame):
        wire.from_agent(wire.encode(FROM_CALLER["request"]))
    with pytest.raises(MalformedFrame):
        wire.from_caller(wire.encode(FROM_AGENT["response"]))


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (wire.Want("c1", (0,)), "parts"),
        (wire.Want("c1", (wire.PARTS_MAX,)), "parts"),
        (wire.Want("c1", tuple(range(1, 40))), "parts"),
        (wire.Want("", (1,)), "op"),
        (wire.Want("a b", (1,)), "op"),
        (wire.Piece("c1", 1, bytes(wire.PIECE_BYTES + 1)), "data"),
        (wire.Response("c1", 99), "status"),
        (wire.Response("c1", 200, size=wire.RESPONSE_BYTES_MAX + 1), "size"),
        (wire.Response("c1", 200, {str(i): "" for i in range(33)}), "headers"),
        (wire.Hello(1, 1), "silence_ms"),
        (wire.Hello(-1, 1000), "clock_ms"),
        (wire.Event(1, "k", bytes(wire.FACTS_BYTES_MAX + 1)), "data"),
    ],
)
def test_what_is_beyond_a_bound_is_refused(message: wire.AgentMessage, says: str) -> None:
    with pytest.raises(MalformedFrame, match=says):
        wire.from_agent(wire.encode(message))


@pytest.mark.parametrize(
    ("field", "value"),
    [("path", "labs"), ("path", "/a b"), ("path", "/a\r\nX: y"), ("path", "/ä"), ("method", "get"), ("method", "G\n")],
)
def test_a_request_line_cannot_be_broken(field: str, value: str) -> None:
    request = msgspec.structs.replace(wire.Request("c1", 1, 1, "GET", "/labs"), **{field: value})
    with pytest.raises(MalformedFrame, match=field):
        wire.from_caller(wire.encode(request))


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"", "empty"),
        (b"\x02\x80", "version 2"),
        (b"\x01", "truncated"),
        (b"\x01\x80", "t"),
        (b"\x01\x81\xa1t\xa5later", "later"),
        (bytes(wire.FRAME_BYTES_MAX + 1), "more than"),
    ],
)
def test_what_is_not_a_message_is_named(frame: bytes, says: str) -> None:
    with pytest.raises(MalformedFrame, match=says):
        wire.from_agent(frame)


def test_a_hundred_thousand_random_and_mutated_frames_do_no_harm() -> None:
    """The decoder neither crashes nor keeps anything; what claims to be huge is not allocated."""
    rng = random.Random(16)
    known = [wire.encode(message) for message in (*FROM_AGENT.values(), *FROM_CALLER.values())]
    huge = [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff"]

    def one(number: int) -> bytes:
        if number % 4 == 0:
            return b"\x01" + rng.randbytes(rng.randrange(200))
        frame = bytearray(rng.choice(known))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(frame) + 1)
            match rng.randrange(5):
                case 0:
                    frame[at : at + 1] = rng.randbytes(1)
                case 1:
                    del frame[at : at + rng.randint(1, 8)]
                case 2:
                    frame[at:at] = rng.choice(huge)
                case 3:
                    frame[at:at] = bytes((rng.choice((0x91, 0x81)),)) * rng.choice((1, 2000))
                case _:
                    other = rng.choice(known)
                    frame[at:] = other[rng.randrange(len(other)) :]
        return bytes(frame)

    def decode(count: int) -> int:
        good = 0
        for number in range(count):
            frame = one(number)
            for decoder in (wire.from_agent, wire.from_caller):
                try:
                    decoder(frame)
                    good += 1
                except MalformedFrame:
                    pass
        return good

    decode(1000)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        good = decode(99_000)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < good < 99_000
    assert after - before < 64 * 2**10
    assert peak - before < 2**20
