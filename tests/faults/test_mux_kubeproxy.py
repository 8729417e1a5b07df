"""A real kube-proxy carries a mux of 300 lablets, TCP and UDP: learner, node and worker are network namespaces.

It needs root and nftables, and builds kube-proxy once.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.component.mux.harness import MuxWorld, install, open_world
from tests.component.mux.lending import expose, until_answers
from tests.support import netns
from tests.support.apiserver import NODES, ApiServer, running, until
from tests.support.netns import Namespace
from vkprovider.lablet import exposure
from vkprovider.lablet.exposure import Exposure
from vkprovider.mux.pure.state import DRAIN_S
from vkpsandbox.controlplane.kubeconfig import certificate_user, read_cluster, write_kubeconfig
from vkpsandbox.node.programs import ensure_kube_proxy

LABLETS: Final = 300
RANGE: Final = range(20000, 20700)
FIRST: Final = 10000
"""The first of the worker's ports: even ones are TCP, odd ones UDP."""
SWEPT_S: Final = 150.0
"""Room for several sweeps of the range: ports that do not answer are waited for, for half a minute in all."""
OUTSIDE: Final = "203.0.113.10"
WORKER: Final = "198.51.100.2"
HOST: Final = "198.18.255.1"
NODE: Final = "198.18.255.2"
WORKER_PROGRAM: Final = """
import asyncio, sys

class Device(asyncio.DatagramProtocol):
    def __init__(self, name): self.name = name
    def connection_made(self, transport): self.transport = transport
    def datagram_received(self, data, sender): self.transport.sendto(self.name, sender)

async def main(host, first, count):
    loop = asyncio.get_running_loop()
    kept = []
    for port in range(first, first + count, 2):
        def greet(reader, writer, port=port):
            writer.write(b"tcp %d" % port)
            writer.close()
        kept.append(await asyncio.start_server(greet, host, port))
        udp = lambda port=port: Device(b"udp %d" % (port + 1))
        kept.append(await loop.create_datagram_endpoint(udp, (host, port + 1)))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""
"""Devices at a worker: each answers with its name, which is protocol and port."""
LEARNER_PROGRAM: Final = """
import asyncio, json, sys

class Heard(asyncio.DatagramProtocol):
    def __init__(self): self.said = asyncio.get_running_loop().create_future()
    def connection_made(self, transport): transport.sendto(b"?")
    def error_received(self, error): self.said.done() or self.said.set_result("")
    def datagram_received(self, data, sender): self.said.done() or self.said.set_result(data.decode())

async def ask(host, port, protocol, limit):
    async with limit:
        try:
            async with asyncio.timeout(3):
                if protocol == "TCP":
                    reader, writer = await asyncio.open_connection(host, port)
                    said = (await reader.read()).decode()
                    writer.close()
                    return said or "connected"
                loop = asyncio.get_running_loop()
                transport, heard = await loop.create_datagram_endpoint(Heard, remote_addr=(host, port))
                try:
                    return await heard.said
                finally:
                    transport.close()
        except OSError:
            return ""

async def main(host, first, last):
    limit = asyncio.Semaphore(100)
    asked = [(port, protocol) for port in range(first, last) for protocol in ("TCP", "UDP")]
    said = await asyncio.gather(*(ask(host, *each, limit) for each in asked))
    print(json.dumps([[*each, it] for each, it in zip(asked, said) if it]))

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""
"""A learner that asks every port of a range, and prints those that answer."""
FLOW_PROGRAM: Final = """
import socket, sys, time
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.bind(("0.0.0.0", 40000))
flow.settimeout(0.2)
for _ in sys.stdin:
    try:
        flow.sendto(b"?", (sys.argv[1], int(sys.argv[2])))
        print(flow.recv(100).decode(), flush=True)
    except OSError:
        print("", flush=True)
"""
"""A learner that keeps one UDP flow: for each line it sends a datagram from the same port, and prints the answer."""


@pytest.fixture(scope="module")
def kube_proxy() -> Path:
    if why := netns.missing():
        pytest.skip(f"no kube-proxy runs here: {why}")
    return ensure_kube_proxy(print)


@pytest.fixture(scope="module")
def apiserver(kube_proxy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    assert kube_proxy.is_file()
    with running(tmp_path_factory.mktemp("apiserver")) as server:
        install(server)
        yield server


class Network:
    """Learner, node and worker in a row; kube-proxy runs on the node."""

    def __init__(self, stack: ExitStack) -> None:
        self.learner, self.node, self.worker = Namespace(stack), Namespace(stack), Namespace(stack)
        self.node.link(None, f"{NODE}/30", f"{HOST}/30")
        self.node.link(self.learner, "198.18.1.1/24", "198.18.1.2/24")
        self.node.link(self.worker, "198.51.100.1/24", f"{WORKER}/24")
        self.learner("ip", "route", "add", "default", "via", "198.18.1.1")
        self.node("sysctl", "-qw", "net.ipv4.ip_forward=1")

    async def answers(self, ports: range = RANGE) -> dict[tuple[int, str], str]:
        """Return the answers of ports, without those that do not answer."""
        words = (sys.executable, "-c", LEARNER_PROGRAM, OUTSIDE, str(ports.start), str(ports.stop))
        found = json.loads(await asyncio.to_thread(self.learner, *words))
        return {(port, protocol): said for port, protocol, said in found}


@pytest.fixture
async def world(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[MuxWorld]:
    async with open_world(apiserver, tmp_path) as world:
        yield world


@pytest.fixture
async def network(world: MuxWorld, kube_proxy: Path, tmp_path: Path) -> AsyncIterator[Network]:
    """The network, with devices at the worker's ports and kube-proxy at work."""
    with ExitStack() as stack:
        made = Network(stack)
        async with AsyncExitStack() as later:
            port = await later.enter_async_context(_forwarder(world.server.url))
            devices = (sys.executable, "-c", WORKER_PROGRAM, WORKER, str(FIRST), str(2 * LABLETS))
            worker = made.worker.start(*devices, log=tmp_path / "worker.log")
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            node = {"metadata": {"name": "node"}, "status": {"addresses": [{"type": "InternalIP", "address": NODE}]}}
            await world.admin.create(NODES, node)
            cluster = read_cluster(world.server.kubeconfig)
            cluster |= {"server": f"https://{HOST}:{port}", "tls-server-name": urlsplit(world.server.url).hostname}
            config = tmp_path / "kubeconfig"
            write_kubeconfig(config, name="node", cluster=cluster, user=certificate_user(world.server.pki, "admin"))
            made.node.start(*_kube_proxy(kube_proxy, config), log=tmp_path / "kube-proxy.log")
            try:
                yield made
            finally:
                await world.admin.delete(f"{NODES}/node")
                print((tmp_path / "kube-proxy.log").read_text()[-3000:])  # noqa: T201 (shown of a test that fails)


def _kube_proxy(program: Path, kubeconfig: Path) -> tuple[str, ...]:
    settings = ("--proxy-mode=nftables", "--hostname-override=node", "--healthz-bind-address=127.0.0.1:10256")
    limits = ("max-per-core", "tcp-timeout-established", "tcp-timeout-close-wait")
    return (str(program), f"--kubeconfig={kubeconfig}", *settings, *(f"--conntrack-{each}=0" for each in limits))


def _forwarder(url: str) -> contextlib.AbstractAsyncContextManager[int]:
    """Return a block that passes the API server on from the host's end of the node's link; it gives the port."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = urlsplit(url)
        its_reader, its_writer = await asyncio.open_connection(there.hostname, there.port)
        await asyncio.gather(copy(reader, its_writer), copy(its_reader, writer))

    @contextlib.asynccontextmanager
    async def block() -> AsyncIterator[int]:
        server = await asyncio.start_server(serve, HOST, 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    return block()


async def expose_lablet(world: MuxWorld, number: int, learner: str = "") -> str:
    """Expose the two ports of a lablet; return the path of its slice."""
    port = FIRST + 2 * number
    learner = learner or f"learner-{number}"
    pod = f"pod-{number}"
    slots = exposure.ports_of([("serial", "TCP", port), ("data", "UDP", port + 1)])
    it = Exposure("w1", f"mux.{world.edge}", world.team, pod, f"{pod}-{learner}", learner, WORKER, slots)
    return await expose(world, it)


async def live(world: MuxWorld, path: str) -> dict[str, int]:
    """Return the outside ports of a lablet by slots, once the mux answers that they are live."""
    return {slot: each["port"] for slot, each in (await until_answers(world, path, exposure.LIVE)).items()}


async def mux(world: MuxWorld) -> None:
    await world.replica(DAEMON_QUEUE_TIMEOUT="10", RECONCILE_INTERVAL="30")
    await world.mux(port_range=f"{RANGE.start}-{RANGE.stop - 1}")
    await world.address(OUTSIDE)


async def test_every_port_answers_with_its_own_name_and_no_other_port_answers(
    world: MuxWorld, network: Network
) -> None:
    await mux(world)
    paths = [await expose_lablet(world, number) for number in range(LABLETS)]
    expected = {}
    for number, path in enumerate(paths):
        ports = await live(world, path)
        expected[ports["serial"], "TCP"] = f"tcp {FIRST + 2 * number}"
        expected[ports["data"], "UDP"] = f"udp {FIRST + 2 * number + 1}"
    assert len(expected) == 2 * LABLETS

    async def carried() -> bool:
        return await network.answers() == expected

    await until(carried, SWEPT_S, every_s=1)
    for path in paths[::3]:
        await world.admin.delete(path)
    left = {key: said for key, said in expected.items() if int(said.split()[1]) // 2 % 3 != FIRST // 2 % 3}
    assert len(left) == 2 * LABLETS * 2 // 3

    async def withdrawn() -> bool:
        return await network.answers() == left

    await until(withdrawn, SWEPT_S, every_s=1)


def asked(flow: subprocess.Popen[str]) -> str:
    """Send a datagram of a flow and return the answer; "" if there is none."""
    assert flow.stdin is not None
    assert flow.stdout is not None
    flow.stdin.write("\n")
    flow.stdin.flush()
    return flow.stdout.readline().strip()


async def test_an_open_udp_flow_never_reaches_the_device_of_the_next_learner(
    world: MuxWorld, network: Network, tmp_path: Path
) -> None:
    """The next learner gets the same port of the worker, with another number of the mux."""
    await mux(world)
    path = await expose_lablet(world, 0, "ann")
    ports = await live(world, path)
    words = (sys.executable, "-c", FLOW_PROGRAM, OUTSIDE, str(ports["data"]))
    flow = network.learner.start(*words, log=tmp_path / "flow.log")

    async def heard() -> str:
        return await asyncio.to_thread(asked, flow)

    assert await until(heard) == f"udp {FIRST + 1}"
    await world.admin.delete(path)
    following = await live(world, await expose_lablet(world, 0, "bea"))
    assert following["data"] != ports["data"]

    async def carried() -> bool:
        return (following["data"], "UDP") in await network.answers(range(following["data"], following["data"] + 1))

    await until(carried, every_s=1)
    assert [await heard() for _ in range(20)] == [""] * 20

    async def freed() -> bool:
        assert await heard() == ""
        return (ports["data"], "UDP") not in await world.ports()

    await until(freed, within_s=2 * DRAIN_S, every_s=1)
    assert [await heard() for _ in range(20)] == [""] * 20, "nor after its port has left the Service"


async def delete_mux(world: MuxWorld) -> None:
    await world.admin.delete(world.path("mux"))


@pytest.mark.parametrize("delete", [delete_mux, MuxWorld.delete_namespace])
async def test_an_open_udp_flow_ends_with_its_mux(
    world: MuxWorld, network: Network, tmp_path: Path, delete: Callable[[MuxWorld], Awaitable[None]]
) -> None:
    await mux(world)
    ports = await live(world, await expose_lablet(world, 0, "ann"))
    words = (sys.executable, "-c", FLOW_PROGRAM, OUTSIDE, str(ports["data"]))
    flow = network.learner.start(*words, log=tmp_path / "flow.log")

    async def heard() -> str:
        return await asyncio.to_thread(asked, flow)

    assert await until(heard) == f"udp {FIRST + 1}"
    await delete(world)

    async def gone() -> bool:
        await heard()
        return await world.admin.get(world.path("mux")) is None

    await until(gone, within_s=2 * DRAIN_S, every_s=1)
    assert [await heard() for _ in range(20)] == [""] * 20
