"""Clients of servers that only a proxy can reach: the names of these servers are known to it alone."""

import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
from aiohttp import web

from tests.component.tunnels.conftest import ALLOW
from tests.support.connectproxy import ConnectProxy
from tests.support.tunnels import running
from tests.support.websockets import Caller, dialing_agent, started
from tunnels.base import AllowList, ConnectFailed
from tunnels.channels import DirectStreams
from tunnels.direct import DirectTransport

NAME = "cml.example.test"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def theirs(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(NAME, "127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ours(authority: trustme.CA) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())


@pytest.fixture
async def port(theirs: ssl.SSLContext) -> AsyncIterator[int]:
    """A server that answers requests and WebSockets."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="x")

    async def echo(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_bytes(await socket.receive_bytes())
        return socket

    app = web.Application()
    app.router.add_get("/x", answer)
    app.router.add_get("/ws", echo)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=theirs).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
async def proxy(port: int, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConnectProxy]:
    async with ConnectProxy({NAME: ("127.0.0.1", port)}, user="ann:secret") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ann:secret@"))
        yield proxy


async def test_requests(proxy: ConnectProxy, ours: ssl.SSLContext) -> None:
    transport = DirectTransport(f"https://{NAME}", tls=lambda: ours, allow=ALLOW)
    for _ in range(2):
        assert (await transport.request("GET", "/x", deadline_s=10)).body == b"x"
    await transport.close()
    assert proxy.asked == [f"CONNECT {NAME}:443"]


async def test_websockets(proxy: ConnectProxy, ours: ssl.SSLContext) -> None:
    allow = AllowList([("OPEN", "/ws")])
    streams = DirectStreams(f"https://{NAME}", tls=lambda: ours, allow=allow, may_dial=lambda _: False)
    channel = await streams.open_stream("/ws", deadline_s=10)
    await channel.write(b"hello")
    assert await channel.read() == b"hello"
    await channel.close()
    await streams.close()
    assert proxy.asked == [f"CONNECT {NAME}:443"]


async def test_agents(port: int, ours: ssl.SSLContext, theirs: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(tls=theirs, callers=lambda: {"replica-0": f"https://{NAME}"})
    upstream = DirectTransport(f"https://127.0.0.1:{port}", tls=lambda: ours, allow=ALLOW)
    agent, _ = dialing_agent([f"https://{NAME}"], upstream, allow=ALLOW, tls=ours)
    async with ConnectProxy({NAME: ("127.0.0.1", caller.port)}) as proxy, started(caller):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with running(agent.run):
            await caller.heard.until(lambda: caller.heard.views)
            transport = caller.transport(ALLOW)
            assert (await transport.request("GET", "/x", deadline_s=10)).body == b"x"
            await transport.close()
        assert proxy.asked[0] == f"CONNECT {NAME}:443"
    await upstream.close()


@pytest.mark.parametrize(
    ("what", "says"),
    [("refuses", "its proxy answers 503"), ("is gone", "no connection to its proxy 127"), ("is socks", "only http://")],
)
async def test_a_proxy_that_does_not_help_is_named(
    proxy: ConnectProxy,
    ours: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    unused_tcp_port: int,
    what: str,
    says: str,
) -> None:
    if what == "refuses":
        proxy.refusal = 503
    elif what == "is gone":
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@127.0.0.1:{unused_tcp_port}")
    else:
        monkeypatch.setenv("HTTPS_PROXY", "socks5://ann:secret@127.0.0.1:1080")
    transport = DirectTransport(f"https://{NAME}", tls=lambda: ours, allow=ALLOW)
    with pytest.raises(ConnectFailed, match=says) as caught:
        await transport.request("GET", "/x", deadline_s=10)
    assert "secret" not in str(caught.value)
    await transport.close()


async def test_no_proxy_is_heeded(proxy: ConnectProxy, ours: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", ".example.test")
    transport = DirectTransport(f"https://{NAME}", tls=lambda: ours, allow=ALLOW)
    with pytest.raises(ConnectFailed):  # nobody else knows the name
        await transport.request("GET", "/x", deadline_s=10)
    await transport.close()
    assert not proxy.asked
