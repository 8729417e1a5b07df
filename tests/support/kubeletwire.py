"""Bytes that a client of the kubelet API may send: right ones, and ones that are meant to break the parsers."""

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Final

from hypothesis import strategies as st

from vkprovider.labs.kubelet import wire
from vkprovider.labs.kubelet.spdy import frames as spdy
from vkprovider.labs.kubelet.spdy import session
from vkprovider.labs.kubelet.wire import ProtocolError

BUFFERED_MAX: Final = spdy.CONTROL_BYTES_MAX + 8
"""What a decoder may hold back: a control frame that is not complete."""
STREAMS_MAX: Final = 4

GOLDEN: Final = {
    "open error": "800300010000003e0000000100000000000078f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c6061"
    "6061c0c0c0c0590489c64c50f2663407000000ffff",
    "open data": "800300010000001800000003000000000000c2aa19540e2512d60b000000ffff",
    "data": "000000030000000568656c6c6f",
    "finish": "0000000101000000",
    "ping": "800300060000000400000001",
    "reset": "80030003000000080000000300000005",
    "go away": "80030007000000080000000000000000",
}
"""Frames as moby/spdystream v0.5.1 writes them, in one connection."""


def opening(encoder: spdy.Encoder, stream: int, **headers: str) -> bytes:
    """Return the frame that opens a stream."""
    return encoder.syn_stream(stream, headers)


frames = st.one_of(
    st.tuples(
        st.just("open"),
        st.sampled_from([1, 3, 5, 7, 9, 11]),
        st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=4),
    ),
    st.tuples(st.just("data"), st.sampled_from([1, 3, 5, 7]), st.tuples(st.binary(max_size=300), st.booleans())),
    st.tuples(st.just("ping"), st.integers(1, 2**32 - 1), st.none()),
    st.tuples(st.just("reset"), st.sampled_from([1, 3, 5]), st.none()),
    st.tuples(st.just("away"), st.just(0), st.none()),
    st.tuples(st.just("other"), st.sampled_from([0, 4, 5, 9, 10, 200, 65535]), st.binary(max_size=100)),
)
"""Frames as `write` knows them."""


def write(described: Iterable[tuple[str, int, object]]) -> bytes:
    """Return the bytes of frames."""
    encoder, written = spdy.Encoder(), bytearray()
    for kind, number, content in described:
        match kind, content:
            case "open", dict():
                written += encoder.syn_stream(number, content)
            case "data", (bytes() as data, bool() as fin):
                written += spdy.data_head(number, len(data), fin=fin) + data
            case "ping", _:
                written += spdy.ping(number)
            case "reset", _:
                written += spdy.rst_stream(number, spdy.CANCEL)
            case "away", _:
                written += spdy.go_away(0)
            case "other", bytes() as body:
                written += (0x8003_0000 | number).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body
            case _:
                raise AssertionError(kind)
    return bytes(written)


def slices(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Cut bytes at places, which may be anywhere."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def joined(found: Iterable[spdy.Frame]) -> list[spdy.Frame]:
    """Join what has arrived of each data frame."""
    whole: list[spdy.Frame] = []
    for frame in found:
        last = whole[-1] if whole else None
        if (
            isinstance(frame, spdy.Data)
            and isinstance(last, spdy.Data)
            and not last.fin
            and last.stream == frame.stream
        ):
            whole[-1] = spdy.Data(frame.stream, last.data + frame.data, frame.fin)
        else:
            whole.append(frame)
    return whole


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes: other values, a piece left out, repeated or moved, or nonsense."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, end = sorted((chance.randint(0, len(changed)), chance.randint(0, len(changed))))
        match chance.randrange(6):
            case 0 if changed:
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            case 1:
                del changed[at : min(end, at + 8)]
            case 2:
                changed[at:at] = changed[at:end]
            case 3:
                changed[at:at] = chance.randbytes(chance.randint(1, 16))
            case 4:
                changed[at:at] = bytes.fromhex(chance.choice(list(GOLDEN.values())))
            case _:
                changed[at : at + 4] = chance.choice((0, 1, 0x7FFFFFFF, 0x80030001, 0xFFFFFFFF)).to_bytes(4, "big")
    return bytes(changed)


def endure(data: bytes, cuts: Sequence[int] = ()) -> None:
    """Let every parser read the same bytes: each may refuse them, and none may hold more than its bound."""
    decoder, accepting = spdy.FrameDecoder(), session.SpdyProtocol(STREAMS_MAX)
    try:
        for piece in slices(data, cuts):
            for frame in decoder.feed(piece):
                if isinstance(frame, spdy.SynStream):
                    assert (
                        sum(len(name) + len(value) for name, value in frame.headers.items()) <= spdy.HEADERS_BYTES_MAX
                    )
            assert decoder.buffered <= BUFFERED_MAX
    except ProtocolError:
        pass
    try:
        for piece in slices(data, cuts):
            _, replies = accepting.receive(piece)
            assert len(replies) <= 2 * len(piece) + 32
            assert accepting.open_streams <= STREAMS_MAX
    except ProtocolError:
        pass
    for protocol in wire.COMMANDS:
        for message in (data, data.decode("latin-1")):
            _refused_or_read(protocol, message)


def _refused_or_read(protocol: str, message: bytes | str) -> None:
    try:
        found = wire.codec_of(protocol).decode(message)
    except ProtocolError:
        return
    if isinstance(found, wire.Payload):
        assert len(found.data) < len(message)
