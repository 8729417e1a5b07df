"""HAProxy, filled by `vkprovider relay`, beside socat: bytes, connects, idle connections, and a mux that never rests.

Target, socat, HAProxy and the relay are processes of their own, this one is the client, and the mux is one of a real
API server. The relay runs as in a Pod, with the packages of the image and the files of a ServiceAccount, which take a
mount namespace: the benchmark needs root. `python -m bench.relay` is the target. socat comes from PATH (`apt-get
install socat`).
"""

import asyncio
import contextlib
import re
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bench.figures import Figures, percentile
from bench.inpod import in_pod
from bench.outside import resident_now_mb, resident_peak_mb
from tests.support import apiserver
from tests.support.relay import REWRITE, Dialled, MuxObjects, RelaySide, dial
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.processes.ports import free_ports, free_range
from vkpsandbox.processes.process import ProcessSpec

ROUNDS: Final = 9
BYTES: Final = 1 << 30
CHUNK: Final = 256 * 1024
CONNECTS: Final = 1000
IDLE: Final = 5000
SESSIONS, LABLETS, PORTS_EACH = 500, 20, 50
CHURN_S: Final = 20
ENDED: Final = 10
"""Of the lablets that stand still, one after the other ends under the churn."""
PORTS: Final = 2 * LABLETS * PORTS_EACH


async def run() -> Figures:
    """Measure."""
    program = shutil.which("socat")
    if program is None:
        raise SystemExit("HAProxy is compared with socat, which is not in PATH: apt-get install socat")
    with (
        tempfile.TemporaryDirectory(prefix="bench-relay-") as folder,
        apiserver.running(Path(folder) / "api") as server,
    ):
        settings = {**REWRITE, "VKPROVIDER_RELAY_CONNECTIONS": str(IDLE)}
        side = _InPod(Path(folder), server.kubeconfig, free_range(PORTS), settings, server=server)
        async with apiserver.Admin(server) as admin, target() as (stream, device):
            mux = MuxObjects(admin)
            try:
                return await _measure(side, mux, program, stream, device)
            finally:
                side.end()


@dataclass(kw_only=True)
class _InPod(RelaySide):
    """A relay as a Pod runs it, with the rights of its ServiceAccount; HAProxy beside it."""

    server: apiserver.ApiServer

    def spec(self, name: str) -> ProcessSpec:
        """Return the command line of `haproxy` or `relay`."""
        spec = super().spec(name)
        if name != "relay":
            return spec
        for manifest in ("namespace.yaml", "rbac.yaml"):
            self.server.kubectl("apply", "-f", str(find_manifests() / "components" / "relay" / manifest))
        token = self.server.kubectl("create", "token", "vkprovider-relay", "--namespace=vkprovider-relay").strip()
        argv, env = in_pod(spec.argv, self.folder, self.server.url, self.server.pki / "server-ca.crt", token)
        return msgspec.structs.replace(spec, argv=argv, env=spec.env | env)


async def _measure(side: RelaySide, mux: MuxObjects, socat: str, stream: int, device: int) -> Figures:
    first, _ = side.ports
    names = {f"p{number}": first + number for number in range(PORTS)}
    await mux.create(names)
    still, moving = list(names)[: PORTS // 2], list(names)[PORTS // 2 :]
    await mux.lead("stream", {still[0]: stream})
    for number in range(1, LABLETS):
        await mux.lead(f"still-{number}", dict.fromkeys(_part(still, number), device))
    side.start("haproxy", "relay")
    await side.ready()
    async with relayed(socat, stream) as by_socat, relayed(socat, device) as connects:
        figures = await asyncio.to_thread(_throughput, names[still[0]], by_socat)
        figures |= await asyncio.to_thread(_connects, names[still[PORTS_EACH]], connects)
    figures |= await _idle(side, [names[name] for name in still[PORTS_EACH:]])
    figures |= await _churn(side, mux, names, still, moving, device)
    return figures


def _part(names: list[str], number: int) -> list[str]:
    return names[number * PORTS_EACH : (number + 1) * PORTS_EACH]


def _throughput(haproxy: int, socat: int) -> Figures:
    """Receive as fast as it comes, by turns; the ratio is made within a round."""
    ratios = []
    for number in range(ROUNDS):
        rates = [_receive(port) for port in (haproxy, socat)]
        ratios.append(rates[0] / rates[1])
        print(f"relay, round {number + 1}: MB/s: HAProxy {rates[0]:.0f}, socat {rates[1]:.0f}", flush=True)
    return {"throughput / socat": (statistics.median(ratios), "ratio")}


def _receive(port: int) -> float:
    """Return the MB/s of one connection."""
    buffer = bytearray(CHUNK)
    with socket.create_connection(("127.0.0.1", port)) as sock:
        began, left = time.perf_counter(), BYTES
        while left > 0:
            left -= sock.recv_into(buffer)
        return BYTES / (time.perf_counter() - began) / 1e6


def _connects(haproxy: int, socat: int) -> Figures:
    """Connect and wait for the device's first byte, by turns."""
    times: dict[str, list[float]] = {"HAProxy": [], "socat": []}
    for _ in range(CONNECTS):
        for way, port in (("HAProxy", haproxy), ("socat", socat)):
            began = time.perf_counter()
            with socket.create_connection(("127.0.0.1", port)) as sock:
                assert sock.recv(1)
                times[way].append(1000 * (time.perf_counter() - began))
    for way, found in times.items():
        print(
            f"relay, connects: {way} p50 {percentile(found, 0.5):.2f} ms, p99 {percentile(found, 0.99):.2f} ms",
            flush=True,
        )
    return {"connect p99 / socat": (percentile(times["HAProxy"], 0.99) / percentile(times["socat"], 0.99), "ratio")}


async def _idle(side: RelaySide, ports: list[int]) -> Figures:
    """Hold connections that say nothing."""
    haproxy = side.pid("haproxy")
    empty_mb = resident_now_mb(haproxy)
    held = await _dial(side, [ports[number % len(ports)] for number in range(IDLE - 1)])
    await asyncio.sleep(5)
    figures: Figures = {
        "HAProxy, 2,000 ports": (empty_mb, "MB"),
        "HAProxy, 5,000 idle connections": (resident_now_mb(haproxy), "MB"),
    }
    for session in held:
        session.close()
    return figures


async def _dial(side: RelaySide, ports: list[int]) -> list[Dialled]:
    held = []
    for start in range(0, len(ports), 100):
        held += await asyncio.gather(*map(dial, ports[start : start + 100]))
    assert all(session.device for session in held), side.log("haproxy")[-2000:]
    return held


async def _churn(
    side: RelaySide, mux: MuxObjects, names: dict[str, int], still: list[str], moving: list[str], device: int
) -> Figures:
    """Move a thousand ports a second, end some lablets, and count the connections of the others that are left."""
    ended = {number: _part(still, number) for number in range(1, ENDED + 1)}
    steady = [names[name] for name in still[(ENDED + 1) * PORTS_EACH :]]
    held = await _dial(side, [steady[number % len(steady)] for number in range(SESSIONS)])
    victims = {number: await dial(names[ports[0]]) for number, ports in ended.items()}
    for number in range(LABLETS):
        await mux.lead(f"moving-{number}", dict.fromkeys(_part(moving, number), device))
    before, began = _changes(side), time.monotonic()
    took: list[float] = []

    async def end_some() -> None:
        for number, session in victims.items():
            await asyncio.sleep(CHURN_S / (ENDED + 1))
            at = time.monotonic()
            await mux.withdraw(f"still-{number}")
            await session.ended()
            took.append(time.monotonic() - at)

    ending = asyncio.create_task(end_some())
    for tick in range(CHURN_S * LABLETS):
        await asyncio.sleep(max(0.0, began + tick / LABLETS - time.monotonic()))
        lablet = tick % LABLETS
        port = 1 + tick // LABLETS  # nobody connects there
        await mux.lead(f"moving-{lablet}", dict.fromkeys(_part(moving, lablet), port))
    churned_s = time.monotonic() - began
    await ending
    await asyncio.sleep(1)
    alive = await asyncio.gather(*(session.alive() for session in held))
    for session in held:
        session.close()
    return {
        "map changes": ((_changes(side) - before) / churned_s, "per s"),
        "connections lost of 500": (alive.count(False), "lost"),
        "lablet ended to connection ended, worst": (max(took), "s"),
        "relay, resident at its peak": (resident_peak_mb(side.pid("relay")), "MB"),
    }


def _changes(side: RelaySide) -> int:
    """Return how many commands about maps HAProxy has taken, by the relay's log."""
    return sum(map(int, re.findall(r'"?changes"?[=:]\s*(\d+)', re.sub(r"\x1b\[[0-9;]*m", "", side.log("relay")))))


@asynccontextmanager
async def relayed(program: str, port: int) -> AsyncIterator[int]:
    """Run a socat that relays to a port; yield its own."""
    [own] = free_ports(1)
    listen = f"TCP-LISTEN:{own},bind=127.0.0.1,reuseaddr,fork,backlog=1000"
    process = await asyncio.create_subprocess_exec(program, listen, f"TCP:127.0.0.1:{port}")
    try:
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", own)).close()
                break
            await asyncio.sleep(0.05)
        yield own
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def target() -> AsyncIterator[tuple[int, int]]:
    """Run the target; yield the port that sends without end, and that of a device."""
    command = (sys.executable, "-m", "bench.relay")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        stream, device = map(int, (await process.stdout.readline()).split())
        yield stream, device
    finally:
        process.kill()
        await process.wait()


def serve() -> None:
    """Be the target: print both ports and serve them."""

    def endlessly(sock: socket.socket) -> None:
        data = bytes(CHUNK)
        with sock, contextlib.suppress(OSError):
            while True:
                sock.sendall(data)

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, endlessly), daemon=True).start()
    asyncio.run(_device(listener.getsockname()[1]))


def _accept(listener: socket.socket, handle: Callable[[socket.socket], None]) -> None:
    while True:
        threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()


async def _device(other: int) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"device\n")
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=1000)
    print(other, server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    serve()
