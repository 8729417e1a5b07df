"""Frames of SPDY/3.1: as Go writes them, in any slices, and within bounds whatever a client sends."""

import hashlib
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.kubeletwire import BUFFERED_MAX, GOLDEN, endure, frames, joined, mutated, slices, write
from vkprovider.labs.kubelet.spdy import frames as spdy
from vkprovider.labs.kubelet.spdy.frames import DICTIONARY
from vkprovider.labs.kubelet.wire import ProtocolError

CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def test_dictionary_is_that_of_the_draft() -> None:
    assert len(DICTIONARY) == 1423
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2
    assert hashlib.sha256(DICTIONARY).hexdigest() == "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"


def test_frames_of_the_reference_client() -> None:
    written = b"".join(map(bytes.fromhex, GOLDEN.values()))
    headers = {"port": "8080", "requestid": "7"}
    assert spdy.FrameDecoder().feed(written) == [
        spdy.SynStream(1, {**headers, "streamtype": "error"}),
        spdy.SynStream(3, {**headers, "streamtype": "data"}),
        spdy.Data(3, b"hello"),
        spdy.Data(1, b"", fin=True),
        spdy.Ping(1),
        spdy.RstStream(3, spdy.CANCEL),
        spdy.GoAway(0, 0),
    ]


def test_replies_as_the_reference_client_reads_them() -> None:
    encoder = spdy.Encoder()
    assert encoder.syn_reply(1).hex() == "80030002000000140000000178f9e3c6a7c202a6230600000000ffff"
    assert encoder.syn_reply(3).hex() == "800300020000000c00000003020100000000ffff"
    assert spdy.data_head(3, 5).hex() == GOLDEN["data"][:16]
    assert spdy.data_head(1, 0, fin=True).hex() == GOLDEN["finish"]
    assert spdy.ping(1).hex() == GOLDEN["ping"]
    assert spdy.rst_stream(3, spdy.CANCEL).hex() == GOLDEN["reset"]
    assert spdy.go_away(0).hex() == GOLDEN["go away"]


@given(st.lists(frames, max_size=12), CUTS)
def test_slices_make_no_difference(described: list[tuple[str, int, object]], cuts: list[int]) -> None:
    written = write(described)
    whole, sliced = spdy.FrameDecoder(), spdy.FrameDecoder()
    expected = joined(whole.feed(written))
    assert joined(frame for piece in slices(written, cuts) for frame in sliced.feed(piece)) == expected
    assert len([frame for frame in expected if not isinstance(frame, spdy.Data)]) == sum(
        kind in {"open", "ping", "reset", "away"} for kind, _, _ in described
    )


def test_byte_by_byte() -> None:
    written = b"".join(map(bytes.fromhex, GOLDEN.values()))
    decoder = spdy.FrameDecoder()
    found = [frame for byte in written for frame in decoder.feed(bytes((byte,)))]
    assert joined(found) == spdy.FrameDecoder().feed(written)
    assert not decoder.buffered


@given(st.binary(max_size=400), CUTS)
def test_random_bytes_are_read_or_refused(data: bytes, cuts: list[int]) -> None:
    endure(data, cuts)


@given(st.lists(frames, min_size=1, max_size=8), CUTS, st.randoms(use_true_random=False))
def test_mutated_frames_are_read_or_refused(
    described: list[tuple[str, int, object]], cuts: list[int], chance: Random
) -> None:
    written = write(described)
    for _ in range(20):
        endure(mutated(written, chance), cuts)


def _headers_frame(block: bytes) -> bytes:
    body = (1).to_bytes(4, "big") + bytes(6) + block
    return bytes.fromhex("80030001") + len(body).to_bytes(4, "big") + body


def _compressed(raw: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 15, zdict=DICTIONARY)
    return deflate.compress(raw) + deflate.flush(zlib.Z_SYNC_FLUSH)


def _pair(name: bytes, value: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "big") + text for text in (name, value))


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (bytes.fromhex("8002000600000004") + bytes(4), "version 2"),
        (bytes.fromhex("80030001") + (spdy.CONTROL_BYTES_MAX + 1).to_bytes(4, "big"), "a control frame of"),
        (bytes.fromhex("8003000600000003000000"), "wrong length"),
        (bytes.fromhex("800300010000000300000000"), "too short"),
        (bytes.fromhex("0000000000000001ff"), "stream 0"),
        (_headers_frame(b"no zlib"), "cannot be decompressed"),
        (_headers_frame(_compressed(bytes(10_000_000))), "more than"),
        (_headers_frame(_compressed((101).to_bytes(4, "big"))), "101 headers"),
        (_headers_frame(_compressed((1).to_bytes(4, "big") + _pair(b"a", b"b")[:-1])), "longer than its frame"),
        (_headers_frame(_compressed((2).to_bytes(4, "big") + _pair(b"a", b"b"))), "not well-formed"),
        (_headers_frame(_compressed((1).to_bytes(4, "big") + _pair(b"a", b"\xff"))), "not well-formed"),
        (_headers_frame(_compressed(bytes(4) + b"x")), "after the last"),
        (_headers_frame(b""), "not well-formed"),
        (_headers_frame(zlib.compressobj(zdict=DICTIONARY).flush()), "end for good"),
    ],
)
def test_refused(frame: bytes, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        spdy.FrameDecoder().feed(frame)


def test_length_that_is_announced_costs_nothing() -> None:
    decoder = spdy.FrameDecoder()
    decoder.feed(spdy.data_head(1, spdy.DATA_BYTES_MAX))
    assert decoder.feed(bytes(100_000)) == [spdy.Data(1, bytes(100_000))]
    assert decoder.buffered == 0
    skipping = spdy.FrameDecoder()
    assert skipping.feed(bytes.fromhex("8003000400ffffff") + bytes(100_000)) == []
    assert skipping.buffered == 0
    slow = spdy.FrameDecoder()
    slow.feed(bytes.fromhex("80030001") + spdy.CONTROL_BYTES_MAX.to_bytes(4, "big"))
    slow.feed(bytes(spdy.CONTROL_BYTES_MAX - 1))
    assert slow.buffered <= BUFFERED_MAX


def test_headers_that_are_not_needed_keep_the_state_of_compression() -> None:
    encoder, decoder = spdy.Encoder(), spdy.FrameDecoder()
    ignored = bytearray(encoder.syn_reply(1))
    ignored[3] = 8  # HEADERS has the same form
    assert decoder.feed(bytes(ignored)) == []
    assert decoder.feed(encoder.syn_stream(3, {"streamtype": "data"})) == [spdy.SynStream(3, {"streamtype": "data"})]
