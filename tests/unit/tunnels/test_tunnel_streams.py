"""Streams of bytes over a network that loses, doubles and reorders: complete, in order, bounded."""

import asyncio
import random

import pytest

from tunnels.base import ConnectFailed
from tunnels.link.stream import StreamPort
from tunnels.protocol.streams import (
    ALIVE_S,
    DEAD_S,
    WINDOW,
    Arrived,
    Ended,
    PeerStreams,
    StreamAccepted,
    StreamOutput,
    Tell,
)
from tunnels.wire import StreamAck, StreamData, StreamOpen

OPENING = StreamOpen("c1-1", 1, 0, "/console")


class Pair:
    """A caller's and an agent's end, and what is on the way between them."""

    def __init__(self, seed: int = 0, *, lossy: bool = False) -> None:
        self.rng = random.Random(seed)
        self.lossy = lossy
        self.now_s = 0.0
        self.ends = (PeerStreams(), PeerStreams())
        self.on_the_way: list[tuple[int, StreamOpen | StreamData | StreamAck]] = []
        self.arrived: tuple[list[bytes], list[bytes]] = ([], [])
        self.ended: list[tuple[int, Ended]] = []
        self.opened = 0
        self.slow_reader = False
        self.does(0, list(self.ends[0].open("agent", OPENING, opens=True, now_s=0.0)))

    def does(self, side: int, outputs: list[StreamOutput]) -> None:
        for output in outputs:
            match output:
                case Tell():
                    self.on_the_way.append((1 - side, output.message))
                case StreamAccepted():
                    self.opened += 1
                case Arrived():
                    self.arrived[side].append(output.data)
                    if not self.slow_reader:
                        self.does(side, list(self.ends[side].consumed("c1-1", self.now_s)))
                case Ended():
                    self.ended.append((side, output))

    def step(self) -> None:
        """Deliver one message; on a lossy network any one, or none, or twice."""
        index = self.rng.randrange(len(self.on_the_way)) if self.lossy else 0
        fate = self.rng.random() if self.lossy else 1.0
        side, message = self.on_the_way[index] if fate < 0.15 else self.on_the_way.pop(index)
        if 0.15 <= fate < 0.35:
            return
        if isinstance(message, StreamOpen):
            known = self.ends[1].knows(message.stream)
            accepted = (
                self.ends[1].again(message.stream, self.now_s)
                if known
                else self.ends[1].open("caller", message, opens=False, now_s=self.now_s)
            )
            self.does(1, list(accepted))
        else:
            self.does(side, list(self.ends[side].received("agent" if side == 0 else "caller", message, self.now_s)))

    def tick(self, seconds: float) -> None:
        self.now_s += seconds
        for side in (0, 1):
            self.does(side, list(self.ends[side].tick(self.now_s)))

    def flow(self, rounds: int = 80) -> None:
        for _ in range(rounds):
            while self.on_the_way:
                self.step()
            self.tick(0.5)

    def write(self, side: int, data: bytes) -> bool:
        if not self.ends[side].writable("c1-1"):
            return False
        self.does(side, list(self.ends[side].write("c1-1", data, self.now_s)))
        return True


@pytest.mark.parametrize("seed", range(30))
def test_everything_arrives_once_and_in_order(seed: int) -> None:
    pair = Pair(seed, lossy=True)
    sent: tuple[list[bytes], list[bytes]] = ([], [])
    for number in range(400):
        for side in (0, 1):
            data = b"%d;" % number
            if pair.ends[side].knows("c1-1") and pair.write(side, data):
                sent[side].append(data)
        for _ in range(pair.rng.randrange(4)):
            if pair.on_the_way:
                pair.step()
        pair.tick(0.1)
    pair.does(0, list(pair.ends[0].close("c1-1", "done", pair.now_s)))
    pair.flow()
    assert pair.arrived[1] == sent[0]
    assert pair.arrived[0] == sent[1]
    assert pair.opened == 1
    assert pair.ended == [(1, Ended("c1-1", "done"))]
    pair.does(1, list(pair.ends[1].close("c1-1", "", pair.now_s)))
    pair.flow(2 * int(DEAD_S) + 40)  # who misses the very last acknowledgement waits as long as for a dead end
    assert pair.ended[1:] == [(0, Ended("c1-1", ""))]
    assert not pair.ends[0]
    assert not pair.ends[1]


def test_a_slow_reader_stops_the_writer_and_not_the_other_direction() -> None:
    pair = Pair()
    pair.flow(1)
    pair.slow_reader = True
    written = 0
    while pair.write(0, b"x"):
        written += 1
        pair.flow(1)
    assert written == WINDOW
    assert len(pair.arrived[1]) == WINDOW
    assert pair.write(1, b"y")
    pair.flow(1)
    assert pair.arrived[0] == [b"y"]
    pair.does(1, list(pair.ends[1].consumed("c1-1", pair.now_s)))
    pair.flow(1)
    assert pair.write(0, b"x")


def test_an_idle_stream_lives_and_a_vanished_end_is_noticed() -> None:
    pair = Pair()
    pair.flow(int(10 * DEAD_S))
    assert pair.ended == []
    while pair.ends[1]:
        pair.tick(ALIVE_S)
        pair.on_the_way.clear()
    assert (1, Ended("c1-1", "the other end has vanished", lost=True)) in pair.ended


def test_a_refused_stream_ends() -> None:
    pair = Pair()
    pair.does(0, list(pair.ends[0].refused("c1-1", "not allowed")))
    assert pair.ended == [(0, Ended("c1-1", "not allowed", lost=True))]
    assert not pair.ends[0]


def test_a_message_of_another_peer_is_passed_over() -> None:
    pair = Pair()
    pair.flow(1)
    pair.does(1, list(pair.ends[1].received("stranger", StreamData("c1-1", 1, b"x"), pair.now_s)))
    assert pair.arrived[1] == []


def test_one_direction_ends_while_the_other_goes_on() -> None:
    pair = Pair()
    pair.flow(1)
    pair.does(0, list(pair.ends[0].close("c1-1", "", pair.now_s)))
    pair.flow(1)
    assert pair.ended == [(1, Ended("c1-1"))]
    assert pair.write(1, b"still here")
    pair.flow(1)
    assert pair.arrived[0] == [b"still here"]
    pair.does(1, list(pair.ends[1].close("c1-1", "", pair.now_s)))
    pair.flow(1)
    assert not pair.ends[0]
    assert not pair.ends[1]


def test_who_leaves_after_its_direction_ended_is_written_to_no_more() -> None:
    pair = Pair()
    pair.flow(1)
    pair.does(0, list(pair.ends[0].close("c1-1", "", pair.now_s)))
    pair.does(0, list(pair.ends[0].close("c1-1", "left", pair.now_s)))
    pair.does(0, list(pair.ends[0].close("c1-1", "left", pair.now_s)))
    pair.flow(1)
    assert pair.ended == [(1, Ended("c1-1")), (1, Ended("c1-1", "left"))]
    assert not pair.write(1, b"too late")
    assert pair.ends[1].is_over("c1-1")


async def test_only_the_peer_of_a_stream_refuses_it() -> None:
    """Another agent can guess what a stream is called: names of one caller count up."""
    port = StreamPort(lambda _peer, _message: None)
    opening = asyncio.create_task(port.open("cml-7/boot", OPENING, 60.0))
    await asyncio.sleep(0)
    assert not port.refused("cml-8/boot", OPENING.stream, ConnectFailed("of another"))
    await asyncio.sleep(0)
    assert not opening.done()
    assert port.refused("cml-7/boot", OPENING.stream, ConnectFailed("of its own"))
    with pytest.raises(ConnectFailed, match="of its own"):
        await opening
