"""kubectl's sessions through the real API server: each version, with WebSockets and without, to each kind of Node."""

import asyncio
import hashlib
import itertools
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest

from tests.support.apiserver import ApiServer, until
from tests.support.kubectlsessions import WITHOUT_WEBSOCKETS, Stage, staged
from tests.support.tcp import digest, echo, port_of, there_and_back
from vkprovider.labs.kubelet.streams.inlets import SessionLimits

pytestmark = pytest.mark.cluster
V5 = "v5.channel.k8s.io"
BY_SPDY = f"{V5}, v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io, channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
DEFAULT: Mapping[str, str] = {}
WAYS = {"websocket": DEFAULT, "spdy": WITHOUT_WEBSOCKETS}
DISCARDED = "discarding message"
"""Of a kubectl that reads before it has opened its streams (https://github.com/kubernetes/kubernetes/issues/131189)."""
ALL = list(itertools.product(["own", "other"], WAYS, ["new", "old"]))


@pytest.fixture
async def stage(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(apiserver, tmp_path, SessionLimits(closing_s=20.0)) as stage:
        yield stage


@pytest.mark.parametrize(("kubectl", "way", "pod"), ALL)
async def test_every_command(stage: Stage, kubectl: str, way: str, pod: str) -> None:
    if kubectl not in stage.kubectls:
        pytest.skip("there is one kubectl")

    async def run(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Run kubectl, and again if it has thrown output away: only one before 1.34 does, by a WebSocket."""
        result = await stage.run(*arguments, kubectl=kubectl, stdin=stdin, environ=WAYS[way])
        if DISCARDED in result.err and (kubectl, way) == ("other", "websocket"):
            return await run(*arguments, stdin=stdin)
        return result.code, result.out, result.err

    typed = os.urandom(300_000)
    both, code, moved, cat, large, attached, logs = await asyncio.gather(
        run("exec", pod, "-c", "c", "--", "both"),
        run("exec", pod, "-c", "c", "--", "exit", "255"),
        run("exec", pod, "-c", "c", "--", "moved"),
        run("exec", "-i", pod, "-c", "c", "--", "cat", stdin=typed),
        run("exec", pod, "-c", "c", "--", "print", "3000000"),
        run("attach", "-i", pod, "-c", "d", stdin=b"hello"),
        run("logs", pod, "-c", "c"),
    )
    assert both == (7, b"to stdout\n", "to stderr\ncommand terminated with exit code 7\n")
    assert code[0] == 255
    assert moved[0] == 1
    assert "this worker moved to another replica: run the command again" in moved[2]
    assert (cat[0], hashlib.sha256(cat[1]).digest()) == (0, hashlib.sha256(typed).digest())
    assert (large[0], len(large[1])) == (0, 3_000_000)
    assert attached[:2] == (0, b"hello"), attached
    assert logs == (0, b"log of c\n", "")

    heard = {(upgrade, offered) for path, upgrade, offered in stage.server.heard if path.startswith("/exec/")}
    if way == "spdy" or pod == "old":
        assert heard == {("SPDY/3.1", BY_SPDY)}
    else:
        assert heard == {("websocket", V5)}


@pytest.mark.parametrize(("kubectl", "way", "pod"), ALL)
async def test_port_forward(stage: Stage, kubectl: str, way: str, pod: str) -> None:
    if kubectl not in stage.kubectls:
        pytest.skip("there is one kubectl")
    # All ways carry some megabytes there and back; one of them as many as a user might.
    count = 50_000_000 if (kubectl, way, pod) == ALL[0] else 3_000_000
    sent = os.urandom(count)
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, stage.forwarding(pod, port_of(server), kubectl=kubectl, environ=WAYS[way]) as port:
        texts = [sent, b"x", b""]
        received = await asyncio.gather(*(there_and_back(port, text) for text in texts))
        assert received == [digest(text) for text in texts]
    [(_, upgrade, offered)] = [heard for heard in stage.server.heard if heard[0].startswith("/portForward/")]
    if way == "spdy" or pod == "old":
        assert (upgrade, offered) == ("SPDY/3.1", "portforward.k8s.io")
    else:
        assert (upgrade, offered) == ("websocket", TUNNEL)


@pytest.mark.parametrize("way", WAYS)
async def test_terminal(stage: Stage, way: str) -> None:
    arguments = ("exec", "-it", "new", "-c", "c", "--", "keys")
    async with stage.terminal(*arguments, kubectl="own", size=(90, 30), environ=WAYS[way]) as terminal:
        await terminal.until(lambda shown: b"ready" in shown)
        terminal.resize(132, 50)
        terminal.type(b"typed")
        await terminal.until(lambda shown: b"typed" in shown)
        terminal.type(b"q")
    assert terminal.shown == b"ready\r\ntypedq"


async def test_fifty_sessions_at_a_time(stage: Stage) -> None:
    async def one(number: int) -> None:
        typed = str(number).encode() * 1000
        way = WITHOUT_WEBSOCKETS if number % 2 else DEFAULT
        result = await stage.run("exec", "-i", "new", "-c", "c", "--", "cat", kubectl="own", stdin=typed, environ=way)
        assert (result.code, result.out) == (0, typed), result.err

    async with asyncio.TaskGroup() as sessions:
        for number in range(50):
            sessions.create_task(one(number))


@pytest.mark.parametrize("pod", ["new", "old"])
@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "channel.k8s.io", ""])
async def test_other_clients_of_the_api_server(stage: Stage, apiserver: ApiServer, protocol: str, pod: str) -> None:
    """Libraries in other languages speak older protocols, which the API server passes on as they are."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    url = f"{apiserver.url}/api/v1/namespaces/{stage.namespace}/pods/{pod}"
    offered = (protocol,) if protocol else ()
    connector = aiohttp.TCPConnector(ssl=apiserver.admin_tls())
    async with server, aiohttp.ClientSession(connector=connector) as http:
        wants = "container=c&command=both&stdout=true&stderr=true"
        async with http.ws_connect(f"{url}/exec?{wants}", protocols=offered) as socket:
            found = {message.data[0]: message.data[1:] async for message in socket if len(message.data) > 1}
            assert socket.close_code == 1000
        assert (found[1], found[2]) == (b"to stdout\n", b"to stderr\n")
        assert (b'"NonZeroExitCode"' in found[3]) == protocol.startswith("v4.")
        if protocol == "channel.k8s.io":
            return  # port-forward has no such protocol
        async with http.ws_connect(f"{url}/portforward?ports={port_of(server)}", protocols=offered) as socket:
            number = port_of(server).to_bytes(2, "little")
            assert [await socket.receive_bytes() for _ in range(2)] == [b"\x00" + number, b"\x01" + number]
            await socket.send_bytes(b"\x00hello")
            assert await socket.receive_bytes() == b"\x00hello"


async def test_kubectl_that_is_killed_frees_its_session(stage: Stage) -> None:
    for way in WAYS.values():
        process = await stage.start("exec", "-i", "new", "-c", "c", "--", "wait", kubectl="own", environ=way)
        await open_sessions(stage, 1)
        process.kill()
        await process.wait()
        await open_sessions(stage, 0)


async def open_sessions(stage: Stage, count: int) -> None:
    """Wait until so many sessions are open."""

    async def look() -> bool:
        return stage.server.sessions == count

    await until(look)
