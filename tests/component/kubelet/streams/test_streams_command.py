"""Exec and attach sessions: channels of WebSockets, and raw SPDY."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.apiserver import until
from tests.support.kubeletserver import KubeletServer
from tests.support.spdyclient import SpdyClient, raw
from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.streams.inlets import SessionLimits

SUCCESS = {"metadata": {}, "status": "Success"}
ALL = "input=1&output=1&error=1"
OFFERED = ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"]
"""As the API server's translator does."""


def url(kubelet: KubeletServer, *words: str, wants: str = ALL) -> str:
    commands = "&".join(f"command={word}" for word in words)
    return f"{kubelet.url}/exec/default/p/c?{commands}&{wants}"


@contextlib.asynccontextmanager
async def channels(
    kubelet: KubeletServer, *words: str, wants: str = ALL, protocol: str = "v5.channel.k8s.io"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    protocols = (protocol,) if protocol else ()
    address = url(kubelet, *words, wants=wants)
    async with aiohttp.ClientSession() as http, http.ws_connect(address, protocols=protocols) as socket:
        assert (socket.protocol or "") == protocol
        yield socket


def vanish(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Leave as a process does that is killed."""
    assert socket._response.connection is not None
    assert socket._response.connection.transport is not None
    socket._response.connection.transport.abort()


async def to_the_end(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """Read all channels until the server closes."""
    found: dict[int, bytearray] = {}
    async with asyncio.timeout(60):
        async for message in socket:
            found.setdefault(message.data[0], bytearray()).extend(message.data[1:])
    assert socket.close_code == 1000
    return {channel: bytes(data) for channel, data in found.items()}


async def test_output_errors_and_exit_code(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "both") as socket:
        found = await to_the_end(socket)
    assert found[1] == b"to stdout\n"
    assert found[2] == b"to stderr\n"
    assert json.loads(found[3])["details"] == {"causes": [{"reason": "ExitCode", "message": "7"}]}


async def test_half_close(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "cat") as socket:
        assert await socket.receive_bytes() == b"\x01", "the session is established"
        await socket.send_bytes(b"\x00hello")
        await socket.send_bytes(b"\x09dropped")
        await socket.send_bytes(b"\xff\x00")
        found = await to_the_end(socket)
    assert found == {1: b"hello", 3: json.dumps(SUCCESS, separators=(",", ":")).encode()}


async def test_without_output_the_session_is_announced_on_the_error_channel(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "exit", "0", wants="input=1") as socket:
        assert await socket.receive_bytes() == b"\x03"


async def test_what_is_not_wanted_is_dropped(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "both", wants="error=1") as socket:
        found = await to_the_end(socket)
    assert set(found) == {2, 3}
    async with channels(kubelet, "both", wants="output=1&error=1&tty=1") as socket:
        found = await to_the_end(socket)
    assert set(found) == {1, 3}, "a terminal has no stderr"


async def test_three_megabytes(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "print", "3000000") as socket:
        found = await to_the_end(socket)
    assert len(found[1]) == 3_000_000
    assert json.loads(found[3]) == SUCCESS


@pytest.mark.parametrize("protocol", ["channel.k8s.io", ""])
async def test_before_v4_an_error_is_plain_text(kubelet: KubeletServer, protocol: str) -> None:
    async with channels(kubelet, "exit", "3", protocol=protocol) as socket:
        assert (await to_the_end(socket))[3] == b"command terminated with non-zero exit code: 3"
    async with channels(kubelet, "exit", "0", protocol=protocol) as socket:
        assert 3 not in await to_the_end(socket)


async def test_base64(kubelet: KubeletServer) -> None:
    async with channels(kubelet, "cat", protocol="v4.base64.channel.k8s.io") as socket:
        assert await socket.receive_str() == "1"
        await socket.send_str("0aGk=")
        assert await socket.receive_str() == "1aGk="


async def test_nothing_is_wanted(kubelet: KubeletServer) -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError) as failed:
            await http.ws_connect(url(kubelet, "cat", wants="tty=1"), protocols=("v5.channel.k8s.io",))
        assert failed.value.status == 400


@pytest.mark.parametrize("words", [("wait",), ("flood",), ("cat",)])
async def test_client_that_vanishes_frees_everything(kubelet: KubeletServer, words: tuple[str, ...]) -> None:
    async def open_one() -> bool:
        return kubelet.sessions == 1

    async def none_open() -> bool:
        return kubelet.sessions == 0

    async with channels(kubelet, *words) as socket:
        await until(open_one)
        vanish(socket)
    await until(none_open)
    async with command(kubelet, *words) as (client, _):
        await until(open_one)
        del client
    await until(none_open)


async def test_client_that_types_too_much_waits_and_still_hears_something(
    kubelet: KubeletServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vkprovider.labs.kubelet.streams.reading._BEAT_S", 0.05)
    offered = ("v5.channel.k8s.io",)
    async with aiohttp.ClientSession() as http:
        socket = await http.ws_connect(url(kubelet, "wait"), protocols=offered, autoping=False)
        await socket.receive()

        async def flood() -> None:
            while True:
                await socket.send_bytes(bytes(32768))

        flooding = asyncio.create_task(flood())
        for _ in range(3):
            async with asyncio.timeout(30):
                assert (await socket.receive()).type is aiohttp.WSMsgType.PONG
        flooding.cancel()
        await asyncio.gather(flooding, return_exceptions=True)
        vanish(socket)

    async def none_open() -> bool:
        return kubelet.sessions == 0

    await until(none_open)


async def test_idle_session_says_so() -> None:
    server = KubeletServer(SessionLimits(idle_s=0.2, closing_s=5.0))
    async with server.running():
        async with channels(server, "wait") as socket:
            found = await to_the_end(socket)
        assert json.loads(found[3])["message"] == "the session was idle for 0.2 s"
        async with command(server, "cat") as (client, streams):
            await client.until(lambda: streams["error"] in client.finished)
            assert json.loads(client.received[streams["error"]])["reason"] == "Timeout"


async def test_idle_session_whose_client_does_not_read_is_dropped() -> None:
    server = KubeletServer(SessionLimits(idle_s=0.3, closing_s=5.0))

    async def all_ended() -> bool:
        return len(server.heard) == 2 and not server.sessions

    async with server.running(), channels(server, "flood"), command(server, "flood") as (client, _):
        client.hold()
        await until(all_ended)


async def test_session_that_is_used_is_not_idle() -> None:
    server = KubeletServer(SessionLimits(idle_s=4.0, closing_s=5.0))
    async with server.running(), channels(server, "cat") as socket:
        await socket.receive_bytes()
        for _ in range(9):
            await asyncio.sleep(0.5)
            await socket.send_bytes(b"\x00x")
            assert await socket.receive_bytes() == b"\x01x"


@contextlib.asynccontextmanager
async def command(
    kubelet: KubeletServer, *words: str, wants: str = ALL, offered: list[str] = OFFERED
) -> AsyncIterator[tuple[SpdyClient, dict[str, int]]]:
    """Open a session by SPDY, with the streams that kubectl opens."""
    names = {"error": True, "stdin": "input" in wants, "stdout": "output" in wants}
    names |= {"stderr": "error=1" in wants and "tty" not in wants, "resize": "tty" in wants and "v4" in offered[-5]}
    async with raw(url(kubelet, *words, wants=wants), offered) as client:
        yield client, {name: await client.open(streamtype=name) for name, wanted in names.items() if wanted}


async def test_spdy(kubelet: KubeletServer) -> None:
    async with command(kubelet, "both") as (client, streams):
        await client.until(lambda: client.away)
        assert client.finished == set(streams.values())
        assert client.received[streams["stdout"]] == b"to stdout\n"
        assert client.received[streams["stderr"]] == b"to stderr\n"
        assert json.loads(client.received[streams["error"]])["reason"] == "NonZeroExitCode"


async def test_spdy_half_close(kubelet: KubeletServer) -> None:
    async with command(kubelet, "cat") as (client, streams):
        await client.send(streams["stdin"], b"hello")
        await client.send(streams["stdin"], b"", fin=True)
        await client.until(lambda: client.away)
        assert client.received[streams["stdout"]] == b"hello"
        assert json.loads(client.received[streams["error"]]) == SUCCESS


async def test_sizes_of_a_terminal_never_hold_up_its_keys() -> None:
    server = KubeletServer(SessionLimits(buffered_bytes=4096, closing_s=5.0))
    async with server.running():
        terminal = "input=1&output=1&tty=1"
        async with command(server, "cat", wants=terminal, offered=OFFERED[1:] + OFFERED[:1]) as (client, streams):
            for columns in range(1000):
                await client.send(streams["resize"], b'{"Width":%d,"Height":24}\n' % columns)
            await client.send(streams["stdin"], b"typed")
            await client.until(lambda: client.received[streams["stdout"]] == b"typed")
        async with channels(server, "cat", wants=terminal) as socket:
            assert await socket.receive_bytes() == b"\x01"
            for columns in range(1000):
                await socket.send_bytes(b'\x04{"Width":%d,"Height":24}\n' % columns)
            await socket.send_bytes(b"\x00typed")
            assert await socket.receive_bytes() == b"\x01typed"


async def test_spdy_before_v4(kubelet: KubeletServer) -> None:
    async with raw(url(kubelet, "exit", "3", wants="output=1&tty=1"), ["v2.channel.k8s.io"]) as client:
        error = await client.open(streamtype="error")
        await client.open(streamtype="stdout")
        await client.until(lambda: client.away)
        assert client.received[error] == b"command terminated with non-zero exit code: 3"


async def test_spdy_streams_that_nobody_expects_are_refused(kubelet: KubeletServer) -> None:
    async with raw(url(kubelet, "cat"), OFFERED) as client:
        await client.open(streamtype="error")
        again = await client.ask(streamtype="error")
        other = await client.ask(streamtype="data")
        await client.until(lambda: {again, other} <= set(client.resets))
        assert client.resets[again] == frames.PROTOCOL_ERROR


async def test_spdy_client_that_opens_too_few_streams() -> None:
    server = KubeletServer(SessionLimits(opening_s=0.2, closing_s=5.0))
    async with server.running(), raw(url(server, "wait"), OFFERED) as client:
        await client.open(streamtype="error")
        await client.until_closed()
    assert server.sessions == 0
