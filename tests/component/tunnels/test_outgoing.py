"""How a request leaves: its guard, over TLS and through a proxy, and writes that are sent once."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
import trustme

from tests.support.connectproxy import ConnectProxy
from tests.support.scripted import ScriptedServer
from tunnels.outgoing import BrokenOffError, guarded_by, open_session

METHODS = ["GET", "PUT", "POST", "DELETE"]


class FencedError(Exception):
    """What a guard raises here."""


@dataclass
class Way:
    """One way to a server, and what is on it."""

    server: ScriptedServer
    session: aiohttp.ClientSession
    tls: ssl.SSLContext | None
    proxy: ConnectProxy | None

    async def send(self, method: str, body: bytes | None) -> int:
        proxy = self.proxy.url if self.proxy else None
        tls = self.tls if self.tls is not None else True
        async with self.session.request(method, f"{self.server.url}/x", data=body, ssl=tls, proxy=proxy) as answer:
            await answer.read()
            return answer.status


@pytest.fixture(params=["plain", "tls", "plain through a proxy", "tls through a proxy"])
async def way(request: pytest.FixtureRequest) -> AsyncIterator[Way]:
    kind: str = request.param
    async with AsyncExitStack() as stack:
        ours = theirs = None
        if kind.startswith("tls"):
            authority = trustme.CA()
            theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            authority.issue_cert("127.0.0.1").configure_cert(theirs)
            ours = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        server = await ScriptedServer(tls=theirs).start()
        stack.push_async_callback(server.stop)
        proxy = await stack.enter_async_context(ConnectProxy()) if kind.endswith("proxy") else None
        session = await stack.enter_async_context(open_session(aiohttp.TCPConnector()))
        yield Way(server, session, ours, proxy)


class Fence:
    """A guard that agrees until `ends`, or so many times."""

    def __init__(self, times: int = 1 << 30) -> None:
        self._left = times

    def __call__(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise FencedError

    def ends(self) -> None:
        self._left = 0


@pytest.mark.parametrize("body", [None, b"body", b"x" * 300_000])
@pytest.mark.parametrize("method", METHODS)
async def test_a_fence_that_ends_while_connecting_stops_the_request(way: Way, method: str, body: bytes | None) -> None:
    fence = Fence()
    with guarded_by(fence):
        sending = asyncio.create_task(way.send(method, body))
        tunnelled = way.proxy if way.tls is not None else None
        if tunnelled is not None:
            tunnelled.free.clear()
            while not tunnelled.asked:  # noqa: ASYNC110 (a log has no event)
                await asyncio.sleep(0.001)
        else:
            await asyncio.sleep(0)  # it has begun to connect
        fence.ends()
        if tunnelled is not None:
            tunnelled.free.set()
        with pytest.raises(FencedError):
            await sending
        assert not way.server.seen
    with guarded_by(Fence()):
        assert await way.send(method, body) == 200
    with guarded_by(Fence(0)), pytest.raises(FencedError):
        await way.send(method, body)  # on the connection that is there
    assert len(way.server.seen) == 1


@pytest.mark.parametrize("method", METHODS)
async def test_a_fence_that_ends_between_queueing_and_write_stops_a_body(way: Way, method: str) -> None:
    """A body may leave a step later than the request was begun: the guard is asked about it again."""
    for _ in range(2):  # on a new connection, then on one that was used
        with guarded_by(Fence(1)), pytest.raises(FencedError):
            await way.send(method, b"body")
        assert not [seen for seen in way.server.seen if seen.method == method]
        assert await way.send("OPTIONS", None) == 200


async def test_without_a_block_nobody_is_asked(way: Way) -> None:
    with guarded_by(Fence(0)), guarded_by(None):
        assert await way.send("PUT", b"body") == 200


class Cutting:
    """Answers the first request on a connection; cuts the connection when the second one has arrived."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for answers in (True, False):
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
                self.arrived.append(head.split(b" ")[0].decode())
                if answers:
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed it
        finally:
            writer.transport.abort()


@asynccontextmanager
async def cutting() -> AsyncIterator[Cutting]:
    found = Cutting()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await found.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    yield found
    server.close()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("body", [None, b"body"])
@pytest.mark.parametrize(
    ("method", "arrivals"), [("PUT", 1), ("DELETE", 1), ("POST", 1), ("PATCH", 1), ("GET", 2), ("OPTIONS", 2)]
)
async def test_a_write_is_sent_once_where_a_kept_connection_breaks(
    method: str, arrivals: int, body: bytes | None
) -> None:
    async with cutting() as server, open_session(aiohttp.TCPConnector()) as session:
        url = f"http://127.0.0.1:{server.port}/x"

        async def send(method: str, body: bytes | None) -> int:
            async with session.request(method, url, data=body) as answer:
                await answer.read()
                return answer.status

        assert await send("TRACE", None) == 200
        if arrivals == 1:
            with pytest.raises(BrokenOffError):
                await send(method, body)
        else:
            assert await send(method, body) == 200
        assert server.arrived == ["TRACE"] + [method] * arrivals


async def test_who_cannot_be_reached_was_sent_nothing(unused_tcp_port: int) -> None:
    async with open_session(aiohttp.TCPConnector()) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.put(f"http://127.0.0.1:{unused_tcp_port}/x", data=b"body")


async def test_the_environment_and_netrc_are_not_read(
    way: Way, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / ".netrc").write_text("machine 127.0.0.1 login ann password secret\n")
    (home / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert await way.send("GET", None) == 200
    assert "Authorization" not in way.server.seen[0].headers
