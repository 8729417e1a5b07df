"""The kubelet API beside clients that never ask, ask slowly, do not read or are too many: others are served as ever."""

import asyncio
import contextlib
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.support.cluster import Cluster
from tests.support.replicas import Replicas
from tests.support.sandboxes import started
from tests.support.spdyclient import raw
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

SESSIONS_MAX: Final = 100
HALF_OPEN: Final = {"connects only": 400, "begins TLS": 300, "begins a request": 300}
WITHIN_S: Final = 1.0
"""What nineteen of twenty logs of others may take, as issue 17 gives it, beyond what they take on an idle replica."""
ASKED: Final = 20
AT_ONCE: Final = 50
SLOW: Final = 20
ROUNDS: Final = 6
COMMANDS: Final = 500
TEXT: Final = "x" * 900
BYTES_MAX: Final = 64 * 2**20
"""What a client that does not read would have sent if nobody stopped it."""
CONNECTION_MB_MAX: Final = 0.1
SESSION_MB_MAX: Final = 3.0
"""What a slow client may cost: its share of the bytes that wait before and behind the replica."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own: one replica that allows few sessions."""
    with started(
        "kubelet",
        tmp_path_factory.mktemp("kubelet"),
        workers=1,
        provider_env={"VKPROVIDER_KUBELET_SESSIONS_MAX": str(SESSIONS_MAX)},
        worker_args=[["--boot-seconds=0.3-1", "--port-range=12000-12099"]],
        worker_spec={"portRange": {"start": 12000, "end": 12099}},
    ) as made:
        yield made


@dataclass(frozen=True)
class Place:
    """A lablet whose device prints and echoes, its Node's port, and the replica behind it."""

    cluster: Cluster
    port: int
    tls: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.cluster.sandbox.process("provider-1").pid or 0

    def descriptors(self) -> int:
        """Count the open files of the replica."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208 (only their number)

    def resident_mb(self) -> float:
        [found] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        return int(found) / 1000

    def sessions(self) -> int:
        """Count the open sessions, as the replica does."""
        page = Replicas(self.cluster).page("provider-1", "/metrics").decode()
        return int(sum(map(float, re.findall(r"^vkprovider_kubelet_sessions\{.*\} (\S+)$", page, re.MULTILINE))))

    async def settled(self, descriptors: int) -> None:
        """Wait until no session is open and no more files than before."""

        def look() -> bool:
            sessions, files = self.sessions(), self.descriptors()
            assert sessions == 0, sessions
            assert files <= descriptors, files
            return True

        await asyncio.to_thread(until, look, 120)

    def ask(self) -> float:
        """Read the log of the lablet through the API server; return how long it took."""
        began = time.monotonic()
        found = self.cluster.request("GET", "/api/v1/namespaces/default/pods/noisy/log?container=lab")
        assert "Pod created" in found
        return time.monotonic() - began


@pytest.fixture
def place(cluster: Cluster) -> Iterator[Place]:
    device = topology({"h0": "alpine"}, {"h0": ["pat:2001:7"]})
    cluster.define(definition("noisy", device))
    cluster.apply(pod("noisy", "noisy", devices=["h0"], typed=True))
    [found] = cluster.wait_ready("default", 1)
    until(lambda: any(event["reason"] == "Ready" for event in cluster.events("default", "noisy")), 60)
    status = (cluster.get(f"/api/v1/nodes/{found['spec']['nodeName']}") or {})["status"]
    pki, tls = cluster.sandbox.layout.pki, anonymous()
    tls.load_cert_chain(pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key")
    yield Place(cluster, status["daemonEndpoints"]["kubeletEndpoint"]["Port"], tls)
    cluster.kubectl("delete", "pod/noisy", "--wait=false")
    cluster.wait_gone("default")
    said = cluster.sandbox.layout.log("provider-1").read_text(errors="replace")
    assert "Traceback" not in said
    assert "Error handling request" not in said


def anonymous() -> ssl.SSLContext:
    """TLS of a client without a certificate, who verifies nothing."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    return tls


@asynccontextmanager
async def others(place: Place) -> AsyncIterator[list[float]]:
    """Let somebody read a log again and again while the block runs; yields how long each took."""
    took: list[float] = []
    over = asyncio.Event()

    async def ask() -> None:
        left = ASKED
        while left:
            took.append(await asyncio.to_thread(place.ask))
            left -= over.is_set()  # the last moment counts most

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        yield took
        over.set()


async def alone(place: Place) -> list[float]:
    """Return what some logs take beside nobody."""
    return [await asyncio.to_thread(place.ask) for _ in range(ASKED)]


def most(took: Sequence[float]) -> float:
    """Return what nineteen of twenty took at most: the slowest one shows how busy the machine is."""
    return sorted(took)[len(took) * 19 // 20 - 1]


def tell(idle: Sequence[float], beside: Sequence[float]) -> str:
    """Tell how long logs took, in words."""
    figures = [
        f"{1000 * most(took):.0f} ms ({1000 * max(took):.0f} ms the slowest of {len(took)})" for took in (idle, beside)
    ]
    return f"a log takes {figures[0]} alone, {figures[1]} beside them"


Come = Callable[[], Awaitable[asyncio.StreamWriter]]


def ways(place: Place) -> dict[str, Come]:
    """The ways to stop half way, each with how a client comes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        anonymous().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    hello = outgoing.read()

    async def connect() -> asyncio.StreamWriter:
        return (await asyncio.open_connection("127.0.0.1", place.port))[1]

    async def begin_tls() -> asyncio.StreamWriter:
        writer = await connect()
        writer.write(hello)
        return writer

    async def begin_request() -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection("127.0.0.1", place.port, ssl=anonymous())
        writer.write(b"GET /containerLogs/default/noisy/lab HTTP/1.1\r\nHost: x\r\nX-A: ")
        return writer

    return {"connects only": connect, "begins TLS": begin_tls, "begins a request": begin_request}


async def test_a_thousand_clients_that_stop_half_way(place: Place) -> None:
    idle = await alone(place)
    before, before_mb = place.descriptors(), place.resident_mb()
    writers: list[asyncio.StreamWriter] = []
    try:
        async with others(place) as took:
            for name, come in ways(place).items():
                for _ in range(HALF_OPEN[name] // AT_ONCE):
                    writers += await asyncio.gather(*(come() for _ in range(AT_ONCE)))
            count, held_mb = place.descriptors() - before, place.resident_mb()
        held = f"{count} of {len(writers)} held at once, {held_mb - before_mb:.1f} MB more"
        print(f"half open: {held}; {tell(idle, took)}")  # noqa: T201 (the figures)
        assert most(took) < WITHIN_S + most(idle)
        assert held_mb - before_mb < len(writers) * CONNECTION_MB_MAX
        await place.settled(before)  # the replica ends them by itself: their clients still wait
    finally:
        for writer in writers:
            writer.close()
    assert place.cluster.health()["status"] == "healthy"


async def print_much(place: Place) -> None:
    """Type commands at the device's console that it answers with half a megabyte, and then a mark; several times."""
    url = f"{place.url}/exec/default/noisy/h0?command=console&input=1&output=1&error=1"
    connector = aiohttp.TCPConnector(ssl=place.tls)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.ws_connect(url, protocols=["v5.channel.k8s.io"]) as console,
    ):

        async def enter(mark: str) -> None:
            for text in (*[TEXT] * COMMANDS, mark):
                await console.send_bytes(b"\x00" + f"echo {text}\r".encode())

        for number in range(ROUNDS):
            mark, shown = f"mark-{number}", b""
            typing = asyncio.create_task(enter(mark))
            async with asyncio.timeout(300):
                while f"\r\n{mark}\r\n".encode() not in shown:
                    shown = shown[-100:] + (await console.receive_bytes())[1:]
            await typing


async def follow(place: Place) -> socket.socket:
    """Ask for a log that is followed, with a small window, and read nothing of it."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await asyncio.to_thread(plain.connect, ("127.0.0.1", place.port))
    found = await asyncio.to_thread(place.tls.wrap_socket, plain)
    found.send(b"GET /containerLogs/default/noisy/h0?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
    return found


def read_until(found: socket.socket, mark: str) -> None:
    """Read until a mark comes."""
    found.settimeout(120)
    last = b""
    while mark.encode() not in last:
        data = found.recv(65536)
        assert data, "the log ended"
        last = last[-100:] + data


async def forward(place: Place, stack: AsyncExitStack) -> "SlowForward":
    """Open a connection to the device's echo."""
    url = f"{place.url}/portForward/default/noisy"
    client = await stack.enter_async_context(raw(url, ["portforward.k8s.io"], tls=place.tls))
    data, _ = await client.connect(7)
    return SlowForward(client, data)


@dataclass
class SlowForward:
    """A forwarded connection whose client sends, and reads only when it is told to."""

    client: Any
    stream: int
    sent: int = 0

    async def send_until_stopped(self) -> None:
        """Send lines until nobody accepts any more."""
        self.client.hold()
        lines = (b"y" * 999 + b"\n") * 32
        with contextlib.suppress(TimeoutError):
            while self.sent < BYTES_MAX:
                self.sent += len(lines)
                async with asyncio.timeout(5):
                    await self.client.send(self.stream, lines)

    async def read(self) -> None:
        """Read all that was sent."""
        self.client.go_on()
        async with asyncio.timeout(300):
            await self.client.until(lambda: len(self.client.received[self.stream]) == self.sent)


async def test_clients_that_do_not_read(place: Place) -> None:
    idle = await alone(place)
    before, before_mb = place.descriptors(), place.resident_mb()
    async with AsyncExitStack() as stack:
        async with others(place) as took:
            following = [await follow(place) for _ in range(SLOW)]
            for found in following:
                stack.callback(found.close)
            await print_much(place)
            forwards = [await forward(place, stack) for _ in range(SLOW)]
            await asyncio.gather(*(found.send_until_stopped() for found in forwards))
            held_mb = place.resident_mb()
        printed_mb, sent_mb = ROUNDS * COMMANDS * len(TEXT) * 2 / 1e6, sum(found.sent for found in forwards) / 1e6
        slow = f"{SLOW} followers of {printed_mb:.1f} MB, {SLOW} forwards that accepted {sent_mb:.0f} MB together"
        print(f"{slow}: {held_mb - before_mb:.1f} MB more; {tell(idle, took)}")  # noqa: T201 (the figures)
        assert most(took) < WITHIN_S + most(idle)
        assert max(found.sent for found in forwards) < BYTES_MAX, "a client that does not read is stopped"
        assert held_mb - before_mb < 2 * SLOW * SESSION_MB_MAX
        await asyncio.to_thread(until, lambda: place.sessions() == 2 * SLOW, 60)

        last = f"mark-{ROUNDS - 1}"
        await asyncio.gather(*(asyncio.to_thread(read_until, found, last) for found in following))
        await asyncio.gather(*(found.read() for found in forwards))
    await place.settled(before)


async def test_sessions_beyond_the_limit_are_refused_in_words(place: Place) -> None:
    before = place.descriptors()
    following = [await follow(place) for _ in range(SESSIONS_MAX)]
    try:
        await asyncio.to_thread(until, lambda: place.sessions() == SESSIONS_MAX, 60)
        words = f"as many sessions are open on this replica as VKPROVIDER_KUBELET_SESSIONS_MAX allows ({SESSIONS_MAX})"
        for command in (
            ("logs", "noisy"),
            ("attach", "noisy", "-c", "h0"),
            ("exec", "noisy", "-c", "h0", "--", "uname -a"),
        ):
            refused = await asyncio.to_thread(place.cluster.kubectl, *command, check=False)
            assert (refused.returncode, words in refused.stderr) == (1, True), refused
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=place.tls)) as session:
            for path in ("/healthz", "/pods", "/metrics/resource"):
                async with session.get(place.url + path) as answer:
                    assert answer.status == 200, "what is no session is served"
        following.pop().close()

        def works() -> bool:
            ran = place.cluster.kubectl("exec", "noisy", "-c", "h0", "--", "uname -a", check=False)
            assert ran.returncode == 0, ran.stderr
            return True

        await asyncio.to_thread(until, works, 60)
    finally:
        for found in following:
            found.close()
    await place.settled(before)
