"""The streams of one SPDY connection."""

import pytest

from tests.support.kubeletwire import opening
from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.spdy.session import (
    Aborted,
    ClientLeaving,
    Event,
    Finished,
    Received,
    SpdyProtocol,
    StreamOpened,
)
from vkprovider.labs.kubelet.wire import ProtocolError


class Client:
    """What a client writes, and what a session makes of it."""

    def __init__(self, streams_max: int = 8) -> None:
        self.session = SpdyProtocol(streams_max)
        self.encoder = frames.Encoder()
        self.replies = b""

    def sends(self, written: bytes) -> list[Event]:
        events, self.replies = self.session.receive(written)
        return events

    def opens(self, stream: int) -> list[Event]:
        return self.sends(opening(self.encoder, stream, streamtype="data"))


def test_life_of_a_stream() -> None:
    client = Client()
    assert client.opens(1) == [StreamOpened(1, {"streamtype": "data"})]
    assert client.session.accept(1) == frames.Encoder().syn_reply(1)
    assert client.sends(frames.data_head(1, 2) + b"hi") == [Received(1, b"hi")]
    assert client.session.writable(1)
    assert client.session.head(1, 3) == frames.data_head(1, 3)
    assert client.sends(frames.data_head(1, 0, fin=True)) == [Finished(1)]
    assert client.session.head(1, 0, fin=True) == frames.data_head(1, 0, fin=True)
    assert client.session.open_streams == 0
    assert not client.session.writable(1)
    with pytest.raises(ValueError, match="closed"):
        client.session.head(1, 1)


def test_half_close_in_either_order() -> None:
    client = Client()
    client.opens(1)
    client.session.head(1, 0, fin=True)
    assert client.sends(frames.data_head(1, 1) + b"x") == [Received(1, b"x")]
    assert client.sends(frames.data_head(1, 1, fin=True) + b"y") == [Received(1, b"y"), Finished(1)]
    assert client.session.open_streams == 0


def test_bytes_after_the_end_are_dropped() -> None:
    client = Client()
    client.opens(1)
    client.sends(frames.data_head(1, 0, fin=True))
    assert client.sends(frames.data_head(1, 1) + b"x") == []
    assert client.sends(frames.data_head(99, 1) + b"x") == []
    client.opens(3)
    assert client.session.reset(3, frames.CANCEL) == frames.rst_stream(3, frames.CANCEL)
    assert client.session.reset(3, frames.CANCEL) == b""
    assert client.sends(frames.data_head(3, 1) + b"x") == []


def test_client_resets_a_stream() -> None:
    client = Client()
    client.opens(1)
    assert client.sends(frames.rst_stream(1, frames.CANCEL)) == [Aborted(1)]
    assert not client.session.writable(1)
    assert client.sends(frames.rst_stream(1, frames.CANCEL)) == []


def test_own_pings_are_answered_and_answers_are_not() -> None:
    client = Client()
    assert client.sends(frames.ping(7)) == []
    assert client.replies == frames.ping(7)
    client.sends(frames.ping(8))
    assert client.replies == b""


def test_more_streams_than_allowed_are_refused() -> None:
    client = Client(streams_max=2)
    client.opens(1)
    client.opens(3)
    assert client.opens(5) == []
    assert client.replies == frames.rst_stream(5, frames.REFUSED_STREAM)
    assert client.sends(frames.data_head(5, 1) + b"x") == []
    client.session.reset(1, frames.CANCEL)
    assert client.opens(7) == [StreamOpened(7, {"streamtype": "data"})]


def test_client_leaves() -> None:
    client = Client()
    client.opens(5)
    assert client.sends(frames.go_away(0)) == [ClientLeaving()]
    assert client.session.go_away() == frames.go_away(5)


@pytest.mark.parametrize("number", [0, 2, 1, 3])
def test_numbers_of_streams_are_odd_and_grow(number: int) -> None:
    client = Client()
    client.opens(3)
    with pytest.raises(ProtocolError):
        client.opens(number)


def test_reply_to_nothing() -> None:
    with pytest.raises(ProtocolError):
        Client().sends(frames.Encoder().syn_reply(2))
