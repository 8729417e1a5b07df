import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.kube.http.connection import Connection, ProtocolError, SilentError

OK = b"HTTP/1.1 200 OK\r\n"


def opened() -> Connection:
    return Connection(memoryview(bytearray(256)))


def arrive(connection: Connection, data: bytes) -> None:
    """Give it what arrives as an event loop does: as much at a time as the buffer takes."""
    while data:
        buffer = connection.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        connection.buffer_updated(count)
        buffer[:count] = bytes(count)  # for others now
        data = data[count:]


def fed(*pieces: bytes) -> Connection:
    connection = opened()
    connection.send(b"")
    for piece in pieces:
        arrive(connection, piece)
    return connection


def body_of(connection: Connection) -> bytes:
    assert connection.complete
    return connection._pop()


def chunked(*parts: bytes, trailer: bytes = b"") -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n"


def test_a_body_with_a_length() -> None:
    connection = fed(OK + b"Content-Length: 5\r\nX-A:  b \r\n\r\nhello")
    assert (connection.status, body_of(connection)) == (200, b"hello")
    assert connection.headers == {"content-length": "5", "x-a": "b"}
    assert connection.usable


def test_a_body_in_chunks() -> None:
    connection = fed(chunked(b"hello ", b"wor\r\nld", trailer=b"X-Checksum: 1\r\n"))
    assert body_of(connection) == b"hello wor\r\nld"
    assert connection.usable


def test_chunk_extensions_are_ignored() -> None:
    connection = fed(OK + b"Transfer-Encoding: Chunked\r\n\r\n5;a=b\r\nhello\r\n0;c\r\n\r\n")
    assert body_of(connection) == b"hello"


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.booleans(),
    st.lists(st.integers(1, 30), min_size=1, max_size=20),
)
def test_an_answer_may_come_in_any_pieces(parts: list[bytes], in_chunks: bool, sizes: list[int]) -> None:  # noqa: FBT001 (drawn)
    whole = b"".join(parts)
    answer = chunked(*parts) if in_chunks else OK + b"Content-Length: %d\r\n\r\n%s" % (len(whole), whole)
    connection, position, turn = fed(), 0, 0
    while position < len(answer):
        assert not connection.complete
        size = sizes[turn % len(sizes)]
        arrive(connection, answer[position : position + size])
        position, turn = position + size, turn + 1
    assert body_of(connection) == whole
    assert connection.usable


@given(st.binary(max_size=200), st.sampled_from([b"", OK, OK + b"Transfer-Encoding: chunked\r\n\r\n"]))
def test_no_bytes_raise(junk: bytes, start: bytes) -> None:
    connection = fed(start + junk)
    connection.connection_lost(None)
    assert connection.closed


def test_interim_answers_are_passed_over() -> None:
    connection = fed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + chunked(b"a"))
    assert (connection.status, body_of(connection)) == (200, b"a")
    assert "link" not in connection.headers


def test_answers_without_a_body() -> None:
    for status in (b"204 No Content", b"304 Not Modified"):
        assert body_of(fed(b"HTTP/1.1 " + status + b"\r\n\r\n")) == b""
    assert body_of(fed(OK + b"Content-Length: 0\r\n\r\n")) == b""


def test_a_body_that_lasts_until_the_end() -> None:
    connection = fed(OK + b"\r\nhel", b"lo")
    assert not connection.complete
    connection.connection_lost(None)
    assert body_of(connection) == b"hello"
    assert not connection.usable


def test_a_reset_is_no_end() -> None:
    connection = fed(OK + b"\r\nhel")
    connection.connection_lost(ConnectionResetError())
    assert not connection.complete


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        OK + b"Content-Length: 1\r\n\r\na and more",
        chunked(b"a") + b"and more",
    ],
)
def test_some_connections_serve_no_second_request(answer: bytes) -> None:
    connection = fed(answer)
    assert body_of(connection) == b"a"
    assert not connection.usable


def test_bytes_nobody_asked_for_spoil_a_connection() -> None:
    connection = fed(chunked(b"a"))
    assert connection.usable
    arrive(connection, b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert not connection.usable


@pytest.mark.parametrize(
    "junk",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        OK + b"Content-Length: many\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc",
        OK + b"X: " + b"x" * 100_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 100_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 100_000,
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        OK + b"X: a\r\n Content-Length: 1\r\n\r\na",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nabc",
    ],
)
async def test_what_is_no_answer_is_told_apart(junk: bytes) -> None:
    connection = fed(junk)
    with pytest.raises(ProtocolError, match=r"not an HTTP/1\.1 response"):
        await connection.body()


async def test_the_waiter_wakes_once_for_a_whole_answer() -> None:
    connection = fed()
    waiter = asyncio.ensure_future(connection.body())
    await asyncio.sleep(0)
    for piece in (OK, b"Content-Length: 2\r\n\r\n", b"a", b"b"):
        assert not waiter.done()
        arrive(connection, piece)
    assert await waiter == b"ab"


async def test_a_stream_gives_pieces_as_they_come() -> None:
    connection = fed(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    assert await connection.head() == 200
    arrive(connection, b"1\r\na\r\n1\r\nb\r\n")
    assert await connection.piece() == b"ab"
    waiter = asyncio.ensure_future(connection.piece())
    await asyncio.sleep(0)
    arrive(connection, b"1\r\nc\r\n0\r\n\r\n")
    assert await waiter == b"c"
    assert await connection.piece() == b""


async def test_what_came_before_a_reset_is_still_given() -> None:
    connection = fed(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    connection.connection_lost(None)
    assert await connection.piece() == b"abc"
    with pytest.raises(ConnectionResetError):
        await connection.piece()


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    connection = fed()
    waiter = asyncio.ensure_future(connection.body())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    arrive(connection, chunked(b"a"))
    assert body_of(connection) == b"a"


@pytest.mark.looptime
async def test_a_silent_stream_ends_with_an_error_of_its_own() -> None:
    connection = fed(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    connection.limit_silence(10)
    await asyncio.sleep(8)
    arrive(connection, b"1\r\na\r\n")
    assert await connection.piece() == b"a"
    began_s = asyncio.get_running_loop().time()
    with pytest.raises(SilentError, match="10 s"):
        await connection.piece()
    assert asyncio.get_running_loop().time() - began_s == pytest.approx(10)


@pytest.mark.looptime
async def test_silence_is_not_ours_while_we_do_not_read() -> None:
    connection = fed(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    connection.limit_silence(10)
    connection._paused = True
    await asyncio.sleep(100)
    assert await connection.piece() == b"a"
    connection._paused = False
    with pytest.raises(SilentError):
        await asyncio.wait_for(connection.piece(), 25)


@pytest.mark.looptime
async def test_the_limit_of_one_answer_is_none_of_the_next() -> None:
    connection = fed(chunked())
    connection.limit_silence(10)
    await asyncio.sleep(5)
    connection.send(b"")
    waiter = asyncio.ensure_future(connection.body())
    await asyncio.sleep(60)
    arrive(connection, chunked(b"late"))
    assert await waiter == b"late"
