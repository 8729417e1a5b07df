"""WebSockets of the client: what it sends, what it makes of a refusal, and that it waits for its reader."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from tests.component.kube.conftest import until
from tests.support.mosquitto import free_port
from vkprovider.platform import errors
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PIECE = bytes(32 * 1024)


class Server:
    """An API server with WebSockets, of which a path says how they are answered."""

    def __init__(self) -> None:
        self.asked: list[web.Request] = []
        self.sent = 0
        self.ended: list[int | None] = []
        self.port = free_port()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        match request.path:
            case "/refused":
                status = {"kind": "Status", "status": "Failure", "message": 'pods "a" is forbidden: no', "code": 403}
                return web.json_response(status, status=403)
            case "/moved":
                raise web.HTTPFound("/echo")
            case "/plain":
                return web.Response(text="hello")
            case "/silent":
                await asyncio.sleep(60)
            case _:
                pass
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",), compress=False)
        await socket.prepare(request)
        if request.path == "/flood":
            while True:
                await socket.send_bytes(PIECE)
                self.sent += len(PIECE)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await socket.send_str("text is no message of ours")
                await socket.send_bytes(message.data)
        self.ended.append(socket.close_code)
        return socket


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", server.port).start()
    yield server
    await runner.cleanup()


@pytest.fixture
async def client(server: Server, tmp_path: Path) -> AsyncIterator[KubeClient]:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
        f" clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{server.port}'}}}}],"
        " users: [{name: u, user: {token: s3cret}}]}"
    )
    client = await KubeClient.connect(KubeSettings(kubeconfig=str(path)))
    yield client
    await client.close()


async def test_messages_go_both_ways_with_the_credentials(server: Server, client: KubeClient) -> None:
    socket = await client.websocket("/echo/a%20b", [("command", "console"), ("command", "r 1&x")], PROTOCOLS)
    [asked] = server.asked
    assert asked.query.getall("command") == ["console", "r 1&x"]
    assert asked.path == "/echo/a b"
    assert asked.headers["Authorization"] == "Bearer s3cret"
    assert asked.headers["Sec-WebSocket-Protocol"] == ",".join(PROTOCOLS)
    assert socket.protocol == "v4.channel.k8s.io"
    for data in (b"\x00keys", b"", PIECE):
        await socket.send(data)
        assert await socket.receive() == data
    await socket.close()
    await until(lambda: server.ended == [1000])
    assert await socket.receive() is None
    with pytest.raises(errors.Unavailable):
        await socket.send(b"late")


@pytest.mark.parametrize(
    ("path", "kind", "said"),
    [
        ("/refused", errors.Forbidden, 'pods "a" is forbidden: no'),
        ("/moved", errors.Invalid, "redirected to /echo"),
        ("/plain", errors.OutsideError, "HTTP 200 hello"),
        ("/silent", errors.DeadlineExceeded, "did not answer within 0.5 s"),
    ],
)
async def test_a_refusal_is_an_error_with_the_servers_words(
    server: Server, client: KubeClient, path: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said.replace("(", r"\(")):
        await client.websocket(path, [], PROTOCOLS, within_s=0.5)
    assert len(server.asked) == 1, "the token goes nowhere else"


async def test_a_server_that_is_away_is_an_error(client: KubeClient) -> None:
    client._transport._base = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(errors.Unavailable):
        await client.websocket("/echo", [], PROTOCOLS)


async def test_what_nobody_reads_stays_with_the_sender(server: Server, client: KubeClient) -> None:
    socket = await client.websocket("/flood", [], PROTOCOLS)
    assert await socket.receive() == PIECE
    before = -1
    async with asyncio.timeout(60):
        while before != server.sent:
            before = server.sent
            await asyncio.sleep(0.3)
    assert before < 30_000_000, "the buffers of two kernels and two libraries, and no more"
    assert await socket.receive() == PIECE
    await socket.close()
