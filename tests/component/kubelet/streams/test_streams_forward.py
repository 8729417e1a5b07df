"""Port-forward sessions: raw SPDY, SPDY through a WebSocket, and channels."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest

from tests.support.apiserver import until
from tests.support.kubeletserver import KubeletServer
from tests.support.spdyclient import Refused, SpdyClient, raw, tunnelled
from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.streams.inlets import SessionLimits

Connect = Callable[[KubeletServer], AbstractAsyncContextManager[SpdyClient]]
PATH = "/portForward/default/p"


@pytest.fixture(params=["raw", "websocket"])
def connect(request: pytest.FixtureRequest) -> Connect:
    def over(kubelet: KubeletServer) -> AbstractAsyncContextManager[SpdyClient]:
        if request.param == "raw":
            return raw(kubelet.url + PATH, ["portforward.k8s.io"])
        return tunnelled(kubelet.url + PATH)

    return over


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def target(serve: Serve) -> AsyncIterator[int]:
    """A TCP server; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, until the client half-closes; then say goodbye."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"bye")


async def test_echo_and_half_close(kubelet: KubeletServer, connect: Connect) -> None:
    async with target(echo) as port, connect(kubelet) as client:
        data, error = await client.connect(port)
        await client.send(data, b"hello")
        await client.until(lambda: client.received[data] == b"hello")
        await client.send(data, b" world", fin=True)
        await client.until(lambda: {data, error} <= client.finished)
        assert client.received[data] == b"hello worldbye"
        assert client.received[error] == b""


async def test_megabytes_both_ways(kubelet: KubeletServer, connect: Connect) -> None:
    sent = os.urandom(8_000_000)
    async with target(echo) as port, connect(kubelet) as client:
        data, _ = await client.connect(port)

        async def send() -> None:
            for start in range(0, len(sent), 32768):
                await client.send(data, sent[start : start + 32768])
            await client.send(data, b"", fin=True)

        sending = asyncio.create_task(send())
        await client.until(lambda: data in client.finished)
        await sending
        assert hashlib.sha256(client.received[data]).digest() == hashlib.sha256(sent + b"bye").digest()


async def test_many_connections_interleave(kubelet: KubeletServer, connect: Connect) -> None:
    async with target(echo) as port, connect(kubelet) as client:
        streams = [(await client.connect(port, number))[0] for number in range(100)]
        for turn in range(3):
            for stream in streams:
                await client.send(stream, f"{stream}:{turn} ".encode(), fin=turn == 2)
        await client.until(lambda: set(streams) <= client.finished)
        for stream in streams:
            assert client.received[stream] == f"{stream}:0 {stream}:1 {stream}:2 bye".encode()


async def test_refused_port_leaves_the_session_alone(kubelet: KubeletServer, connect: Connect) -> None:
    async with target(echo) as port, connect(kubelet) as client:
        data, error = await client.connect(1, 0)
        await client.until(lambda: {data, error} <= client.finished)
        assert client.received[error] == b""
        again, _ = await client.connect(port, 1)
        await client.send(again, b"x", fin=True)
        await client.until(lambda: again in client.finished)


async def test_wrong_streams_are_refused_one_by_one(kubelet: KubeletServer, connect: Connect) -> None:
    async with target(echo) as port, connect(kubelet) as client:
        wrong = ({"streamtype": "data"}, {"streamtype": "stdin", "port": "80"}, {"streamtype": "data", "port": "x"})
        streams = [await client.ask(**headers) for headers in wrong]
        await client.until(lambda: len(client.resets) == len(wrong))
        assert client.resets == dict.fromkeys(streams, frames.PROTOCOL_ERROR)
        data, _ = await client.connect(port)
        await client.send(data, b"", fin=True)
        await client.until(lambda: data in client.finished)


async def test_reset_reaches_the_target(kubelet: KubeletServer, connect: Connect) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        ended.set()

    async with target(serve) as port, connect(kubelet) as client:
        data, _ = await client.connect(port)
        await client.write(frames.rst_stream(data, frames.CANCEL))
        async with asyncio.timeout(30):
            await ended.wait()


async def test_client_that_vanishes_frees_everything(kubelet: KubeletServer, connect: Connect) -> None:
    closed = 0

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        with contextlib.suppress(OSError):
            await reader.read()
        closed += 1

    async with target(serve) as port:
        async with connect(kubelet) as client:
            for number in range(5):
                await client.connect(port, number)

        async def all_closed() -> bool:
            return closed == 5

        await until(all_closed)


async def test_ping_is_answered_while_a_target_does_not_read(kubelet: KubeletServer, connect: Connect) -> None:
    reading = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reading.wait()
        writer.write(str(len(await reader.read())).encode())

    async with target(serve) as port, connect(kubelet) as client:
        data, _ = await client.connect(port)
        await client.send(data, bytes(100_000))
        await client.write(frames.ping(1))
        await client.until(lambda: client.pongs == [1])
        count = 100_000

        async def flood() -> None:
            nonlocal count
            for _ in range(1000):
                await client.send(data, bytes(32768))
                count += 32768
            await client.send(data, b"", fin=True)

        flooding = asyncio.create_task(flood())
        await asyncio.sleep(0.2)
        assert not flooding.done(), "the client has to wait"
        reading.set()
        await flooding
        await client.until(lambda: data in client.finished)
        assert client.received[data] == str(count).encode()


async def test_slow_client_holds_up_the_target_not_the_server(kubelet: KubeletServer, connect: Connect) -> None:
    written = 0

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        for _ in range(1500):
            writer.write(bytes(32768))
            await writer.drain()
            written += 32768

    async with target(serve) as port, connect(kubelet) as client:
        client.hold()
        await client.ask(streamtype="error", port=str(port), requestid="0")
        data = await client.ask(streamtype="data", port=str(port), requestid="0")
        last = -1
        while last != written or not written:
            last = written
            await asyncio.sleep(0.3)
        assert written < 1500 * 32768, "the target has to wait"
        client.go_on()
        await client.until(lambda: data in client.finished)
        assert len(client.received[data]) == 1500 * 32768


async def test_too_many_streams(connect: Connect) -> None:
    server = KubeletServer(SessionLimits(streams_max=2, closing_s=5.0))
    async with server.running(), target(echo) as port, connect(server) as client:
        data, _ = await client.connect(port)
        refused = await client.ask(streamtype="error", port="80", requestid="1")
        await client.until(lambda: client.resets.get(refused) == frames.REFUSED_STREAM or refused in client.replied)
        second = await client.ask(streamtype="error", port="80", requestid="2")
        await client.until(lambda: client.resets.get(second) == frames.REFUSED_STREAM)
        await client.send(data, b"x", fin=True)
        await client.until(lambda: data in client.finished)


async def test_broken_protocol_ends_the_session(kubelet: KubeletServer, connect: Connect) -> None:
    async with connect(kubelet) as client:
        await client.open(streamtype="error", port="80", requestid="0")
        await client.write(b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01")
        await client.until(lambda: client.away)
        assert client.away is not None
        assert client.away.status == frames.PROTOCOL_ERROR


async def test_idle_session_ends(connect: Connect) -> None:
    server = KubeletServer(SessionLimits(idle_s=0.3, closing_s=5.0))
    async with server.running(), connect(server) as client:
        await client.until(lambda: client.away)


async def test_refusals(kubelet: KubeletServer) -> None:
    for protocols, upgrade, status in (([], "SPDY/3.1", 400), (["x"], "SPDY/3.1", 403), (["x"], "h2c", 400)):
        with pytest.raises(Refused) as refused:
            async with raw(kubelet.url + PATH, protocols, upgrade=upgrade):
                pass
        assert refused.value.status == status
    async with aiohttp.ClientSession() as http:
        for protocol, query, status in (
            ("x", "", 403),
            ("v4.channel.k8s.io", "", 400),
            ("v4.channel.k8s.io", "?port=0", 400),
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as failed:
                await http.ws_connect(kubelet.url + PATH + query, protocols=(protocol,))
            assert failed.value.status == status
        async with http.get(kubelet.url + PATH) as plain:
            assert plain.status == 400


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", ""])
async def test_channels(kubelet: KubeletServer, protocol: str) -> None:
    async with target(echo) as port, target(echo) as other, aiohttp.ClientSession() as http:
        url = f"{kubelet.url}{PATH}?port={port},{other}"
        async with http.ws_connect(url, protocols=(protocol,) if protocol else ()) as socket:
            hello = [await socket.receive_bytes() for _ in range(4)]
            both = [number.to_bytes(2, "little") for number in (port, port, other, other)]
            assert hello == [bytes((channel,)) + number for channel, number in enumerate(both)]
            await socket.send_bytes(b"\x00one")
            assert await socket.receive_bytes() == b"\x00one"
            await socket.send_bytes(b"\x02two")
            assert await socket.receive_bytes() == b"\x02two"


async def test_channels_in_base64_end_with_their_connections(kubelet: KubeletServer) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")

    async with target(greet) as port, aiohttp.ClientSession() as http:
        url = f"{kubelet.url}{PATH}?port={port}"
        async with http.ws_connect(url, protocols=("v4.base64.channel.k8s.io",)) as socket:
            await socket.receive_str()
            await socket.receive_str()
            assert await socket.receive_str() == "0aGk="
            assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 1000
