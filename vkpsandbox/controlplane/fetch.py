"""Fetch a file over HTTPS into a folder: redirects are followed, and what breaks off is resumed.

A session is opened, and a proxy found, as for every other client of ours (`tunnels.outgoing`), which urllib would do in
another way: it knows no CIDR in `NO_PROXY`, has one deadline for all that a socket does, and runs one file per thread.
"""

import asyncio
import os
import random
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import aiohttp
from yarl import URL

from tunnels.base import CertificateInvalid, TransportError
from tunnels.direct import translated
from tunnels.outgoing import open_session, proxy_of
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.settings import is_loopback
from vkpsandbox.errors import NetworkFailed, SandboxError

CONNECT_S: Final = 10.0
"""For one attempt to connect."""

STALL_S: Final = 30.0
"""For `PIECE_BYTES` to arrive, or all that is left; the first of them with the connection and all redirects."""

PIECE_BYTES: Final = 64 << 10

ATTEMPTS: Final = 5
"""In a row that bring less than a piece; then the network has failed."""

FIRST_DELAY_S: Final = 0.5
DELAY_S_MAX: Final = 8.0

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REDIRECTS_MAX: Final = 10
_OK: Final = 200
_PARTIAL: Final = 206
_RANGE_REFUSED: Final = 416
_PASSING: Final = frozenset({408, 425, 429})
"""Refusals of a client that may ask again; those of a server, from 500 on, are so, too."""
_SERVER_FAILS: Final = 500
_AGENT: Final = "vkprovider-sandbox"


class _Unfinished(Exception):  # noqa: N818 (an outcome of one attempt)
    """An attempt ended that the next one may go on with."""


@dataclass
class File:
    """One file on its way.

    Attributes:
        url: Where it is asked for.
        path: Where it is written.
        bytes_max: A longer one is not what was asked for.
        received: Bytes that are there.
        size: Of the whole, once a server has said it.
        validator: By which a server knows the file again, once it has said one.
    """

    url: URL
    path: Path
    bytes_max: int
    received: int = 0
    size: int | None = None
    validator: str = ""

    def receive(self, out: BinaryIO, piece: bytes) -> None:
        """Write a piece.

        Raises:
            SandboxError: The file is too long, or cannot be written.
        """
        if self.received + len(piece) > self.bytes_max:
            most = f"{self.bytes_max >> 20} MB"
            raise SandboxError(f"{shown(self.url)} has more than {most}, so it is not what it should be")
        left = memoryview(piece)
        with writing(self.path):
            while left:  # a full disk takes a part of a piece, and refuses the next one
                left = left[out.write(left) :]
        self.received += len(piece)

    def begin_again(self, out: BinaryIO) -> None:
        """Forget what is there."""
        with writing(self.path):
            out.seek(0)
            out.truncate()
        self.received, self.size, self.validator = 0, None, ""


class Fetcher:
    """Fetches files, several at once.

    Args:
        session: Of `tunnels.outgoing`.
        tls: How servers are verified.
        on_trouble: Called with a sentence about an attempt that failed, before the next one.
    """

    def __init__(self, session: aiohttp.ClientSession, tls: ssl.SSLContext, on_trouble: Callable[[str], None]) -> None:
        self._session = session
        self._tls = tls
        self._on_trouble = on_trouble

    async def fetch(self, file: File) -> None:
        """Fetch a file, in several attempts if it must be; what has arrived is not asked for again.

        Raises:
            NetworkFailed: So many attempts in a row brought next to nothing.
            SandboxError: A server refuses it, cannot be trusted or leads to where it must not, or it cannot be written.
        """
        failures = furthest = 0
        with writing(file.path):
            out = file.path.open("wb", buffering=0)
        with out:
            while True:
                try:
                    return await self._attempt(file, out)
                except CertificateInvalid as error:
                    raise SandboxError(
                        f"{shown(file.url)} cannot be fetched: {error}. For a CA of your own, or of a proxy that reads "
                        "along, point SSL_CERT_FILE at a file with it"
                    ) from error
                except (TransportError, _Unfinished) as error:
                    if file.received >= furthest + PIECE_BYTES:
                        failures = 0
                    furthest = max(furthest, file.received)
                    failures += 1
                    if failures >= ATTEMPTS:
                        raise NetworkFailed(f"{shown(file.url)}: {error}, after {ATTEMPTS} attempts") from error
                    self._on_trouble(f"{shown(file.url)}: {error}; {file.received >> 20} MB are here, trying again")
                await asyncio.sleep(delay_s(failures, first_s=FIRST_DELAY_S, cap_s=DELAY_S_MAX, dice=random.random()))

    async def _attempt(self, file: File, out: BinaryIO) -> None:
        """Ask once, and receive what the answer has."""
        headers = {"Accept-Encoding": "identity"}
        if file.received:
            headers["Range"] = f"bytes={file.received}-"
            if file.validator:
                headers["If-Range"] = file.validator
        try:
            async with asyncio.timeout(STALL_S) as stall, self._answer(file.url, headers) as answer:
                self._place(file, out, answer)
                arrived = 0
                async for piece in answer.content.iter_any():
                    file.receive(out, piece)
                    arrived += len(piece)
                    if arrived >= PIECE_BYTES:
                        arrived = 0
                        stall.reschedule(asyncio.get_running_loop().time() + STALL_S)
        except TimeoutError as error:
            raise _Unfinished(f"next to nothing arrives within {STALL_S:.3g} s") from error
        if file.size is not None and file.received != file.size:
            raise _Unfinished(f"{file.received} of {file.size} bytes arrived")

    @asynccontextmanager
    async def _answer(self, url: URL, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask for a URL, and for those that it leads to, each by its own proxy."""
        for _ in range(_REDIRECTS_MAX + 1):
            with translated(f"{url.host}:{url.port}", CONNECT_S):
                async with self._session.get(
                    url,
                    headers=headers,
                    allow_redirects=False,
                    auto_decompress=False,
                    ssl=self._tls,
                    proxy=proxy_of(str(url), os.environ),
                ) as answer:
                    if answer.status not in _REDIRECTS:
                        yield answer
                        return
                    url = _next(url, answer.headers.get("Location", ""))
        raise SandboxError(f"{shown(url)} is the end of {_REDIRECTS_MAX} redirects, and leads on")

    def _place(self, file: File, out: BinaryIO, answer: aiohttp.ClientResponse) -> None:
        """Put the file's end where the body of an answer belongs.

        Raises:
            _Unfinished: Another attempt may get a body.
            SandboxError: None will.
        """
        status = answer.status
        if status == _PARTIAL and file.received:
            span = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
            if span and int(span[1]) == file.received:
                return
            file.begin_again(out)
            raise _Unfinished("the server sent another part than was asked for")
        if status == _OK:
            file.begin_again(out)
            file.size = answer.content_length
            etag = answer.headers.get("ETag", "")
            file.validator = answer.headers.get("Last-Modified", "") if etag.startswith("W/") or not etag else etag
            return
        if status == _RANGE_REFUSED and file.received:
            file.begin_again(out)
            raise _Unfinished("the server has no such part")
        if status in _PASSING or status >= _SERVER_FAILS:
            raise _Unfinished(f"the server answers {status} {answer.reason}".rstrip())
        place = shown(answer.url)
        asked = f"{shown(file.url)} leads to {place}, which" if place != shown(file.url) else place
        raise SandboxError(f"{asked} answers {status} {answer.reason}".rstrip())


@asynccontextmanager
async def fetching(on_trouble: Callable[[str], None]) -> AsyncIterator[Fetcher]:
    """Open what files are fetched with."""
    tls = ssl.create_default_context()  # not aiohttp's, which has read SSL_CERT_FILE when it was imported
    headers = {"User-Agent": _AGENT}
    async with open_session(aiohttp.TCPConnector(limit=0), headers=headers, connect_s_max=CONNECT_S) as session:
        yield Fetcher(session, tls, on_trouble)


def parse(url: str) -> URL:
    """Return a URL that may be asked: `https`, or `http` to this machine.

    Raises:
        ValueError: It is none; the message says why.
    """
    parsed = URL(url)
    fault = fault_of(parsed)
    if fault:
        raise ValueError(fault)
    return parsed


def fault_of(url: URL, before: URL | None = None) -> str:
    """Return why a URL may not be asked; "" if it may.

    Args:
        url: The URL.
        before: Where it was led to from.
    """
    if url.scheme not in {"https", "http"} or not url.host:
        return "is no URL such as https://mirror.example.com"
    if url.scheme == "http" and (not is_loopback(url.host) or (before is not None and before.scheme == "https")):
        return "is not https, which is required of all but loopback addresses"
    return ""


def shown(url: URL) -> str:
    """Return a URL as messages have it: without a password, and without the signature of a redirect."""
    return str(url.with_user(None).with_query(None))


def _next(url: URL, location: str) -> URL:
    """Return where a redirect leads.

    Raises:
        SandboxError: It may not be followed.
    """
    try:
        found = url.join(URL(location))
        fault = fault_of(found, url) if location else "is nowhere"
    except ValueError:
        found, fault = url, "is no URL"
    if fault:
        place = location.partition("?")[0][:200]
        raise SandboxError(
            f"{shown(url)} leads to {place!r}, which {fault}: it may be the page where one logs in to this network"
        )
    return found


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the file system refuses into a sentence.

    Raises:
        SandboxError: In place of what it raises.
    """
    try:
        yield
    except OSError as error:
        raise SandboxError(f"{path.parent} takes no more: {error.strerror}; nothing is kept there") from error
