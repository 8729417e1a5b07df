"""Three muxes with 500 channels, served by `vkprovider mux` on a real API server: the cost of a changed backend.

Latency is counted from the request that changes a channel's EndpointSlice to the mux's slice in a watch of the
benchmark's own; writes are those of the audit log.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from bench.figures import Figures, percentile, show
from bench.inpod import in_pod
from bench.outside import access, cpu_s, resident_peak_mb
from bench.ports import deciding_ms
from tests.component.mux.harness import ACCOUNT, ENDPOINT_SLICES, PREFIX, MuxWorld, install
from tests.support import apiserver
from tests.support.apiserver import SYSTEM, Admin, ApiServer, until
from vkpsandbox.controlplane.programs import VKPROVIDER
from vkpsandbox.processes.process import environment

MUXES, CHANNELS, PORTS_EACH = 3, 500, 5
PER_S: Final = 5
"""Backends that change in a second, for a hundred seconds: each channel's once in a round."""
QUIET_S: Final = float(os.environ.get("QUIET_S") or 600)
_SETTLE_S: Final = 15.0
"""After the last change: `DAEMON_QUEUE_TIMEOUT` and what follows."""
_COUNTS_S: Final = 65.0
"""The time after which an Event that is repeated has been counted up."""
_USER: Final = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
_READS: Final = frozenset({"get", "list", "watch"})


async def run(rounds: int) -> Sequence[Figures]:
    """Measure rounds of changes on one control plane, and once how quiet it is afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-mux-") as folder,
        apiserver.running(Path(folder) / "api", audit=True) as server,
    ):
        install(server)
        async with Admin(server) as admin, AsyncExitStack() as stack:
            world = MuxWorld(server, admin, Path(folder), stack)
            for namespace in (world.edge, world.team):
                await admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            await world.bind_store(world.edge)
            with _process(server, Path(folder)) as pid:
                return await _measure(world, pid, rounds)


@contextmanager
def _process(server: ApiServer, folder: Path) -> Iterator[int]:
    """Run the program as a Pod does, with its defaults; yield its process id."""
    argv, changes = in_pod(
        [*VKPROVIDER, "mux"], folder, server.url, server.pki / "server-ca.crt", server.token(ACCOUNT)
    )
    page = {"VKPROVIDER_HTTP_HOST": "127.0.0.1", "VKPROVIDER_HTTP_PORT": "0"}
    env = environment(os.environ, changes | page, folder)
    with (folder / "mux.log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, stdout=log, stderr=log)  # noqa: S603 (our own program)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)
        sys.stdout.write((folder / "mux.log").read_text()[-2000:] if process.returncode else "")


async def _measure(world: MuxWorld, pid: int, rounds: int) -> list[Figures]:
    figures: list[Figures] = []
    async with _watching(world) as seen:
        began = time.monotonic()
        sources = await _create(world)
        await until(lambda: _all_seen(seen, CHANNELS), within_s=300)
        print(f"mux: {CHANNELS} channels created and forwarded in {time.monotonic() - began:.1f} s", flush=True)
        await asyncio.sleep(_SETTLE_S)
        for number in range(1, rounds + 1):
            figures.append(await _round(world, pid, sources, seen, number))
            show(f"round {number}", figures[-1])
    figures[-1] |= await _quiet(world)
    figures[-1] |= {"decide about a mux of 2,400 ports": (deciding_ms(), "ms")}
    return figures


async def _create(world: MuxWorld) -> list[str]:
    """Create muxes and channels; return the paths of the channels' slices."""
    for number in range(MUXES):
        await world.mux(f"mux-{number}", port_range="20000-29999")
    ports = {f"p{number}": 8000 + number for number in range(PORTS_EACH)}
    listed = [{"name": name, "port": port, "protocol": "TCP"} for name, port in ports.items()]
    external = ",".join(f"{name}:auto" for name in ports)
    sources = []
    for number in range(CHANNELS):
        name = f"channel-{number:03}"
        mux = f"{PREFIX}/mux-{number % MUXES}.{world.edge}"
        await world.channel(name, external, mux=mux, ports=ports, backends=())
        sources.append(await world.slice(name, (_address(0, number),), ports=listed))
    return sources


def _address(round_: int, number: int) -> str:
    return f"10.{round_}.{number // 250}.{1 + number % 250}"


async def _all_seen(seen: dict[str, float], count: int) -> bool:
    return len(seen) >= count


async def _round(world: MuxWorld, pid: int, sources: list[str], seen: dict[str, float], round_: int) -> Figures:
    """Give each channel one more backend, one after the other at a steady rate."""
    log = world.server.audit_log
    audit_from, cpu, load = log.stat().st_size, cpu_s(pid), os.getloadavg()[0]
    before, began, sent = len(seen), time.monotonic(), {}
    async with asyncio.TaskGroup() as changes:
        for number, path in enumerate(sources):
            await asyncio.sleep(max(0.0, began + number / PER_S - time.monotonic()))
            sent[_address(round_, number)] = time.monotonic()
            addresses = [_address(each, number) for each in range(round_ + 1)]
            endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in addresses]
            changes.create_task(world.admin.patch(path, {"endpoints": endpoints}))
    await until(lambda: _all_seen(seen, before + len(sent)), within_s=120)
    used_s = cpu_s(pid) - cpu
    await asyncio.sleep(_SETTLE_S)
    await _annotated(world, round_)
    took_s = [seen[address] - at for address, at in sent.items()]
    writes = list(_writes(log, audit_from))
    slices = sum(write.resource == "endpointslices" for write in writes)
    patches = [[write.at for write in writes if write.name == f"mux-{number}"] for number in range(MUXES)]
    gaps = [after - at for its in patches for at, after in itertools.pairwise(its)]
    return {
        "changed backend to slice p50": (percentile(took_s, 0.5), "s"),
        "changed backend to slice p99": (percentile(took_s, 0.99), "s"),
        "writes of slices per change": (slices / len(sent), "writes"),
        "shortest time between annotations of a mux": (min(gaps), "s"),
        "other writes": (len(writes) - slices - sum(map(len, patches)), "writes"),
        "CPU per change": (1000 * used_s / len(sent), "ms"),
        "resident at its peak": (resident_peak_mb(pid), "MB"),
        "load of the machine": (load, ""),
    }


async def _annotated(world: MuxWorld, round_: int) -> None:
    """Check that the muxes show all backends."""
    for number in range(MUXES):
        found = await world.admin.get(world.path(f"mux-{number}"))
        assert found is not None
        pods = (round_ + 1) * len(range(number, CHANNELS, MUXES))
        assert f"| {pods} pod(s) |" in found["metadata"]["annotations"][f"{PREFIX}/summary"]


async def _quiet(world: MuxWorld) -> Figures:
    """Change nothing, and count writes."""
    await asyncio.sleep(_COUNTS_S)
    audit_from = world.server.audit_log.stat().st_size
    await asyncio.sleep(QUIET_S)
    writes = Counter(write.resource for write in _writes(world.server.audit_log, audit_from))
    print(f"mux: writes in {QUIET_S:.0f} quiet seconds: {dict(writes)}", flush=True)
    assert writes["leases"], "the program is not there, or the audit log"
    return {"writes but Leases while nothing changes": (writes.total() - writes["leases"], "writes")}


class _Write(NamedTuple):
    """A write of the program.

    Attributes:
        resource: What was written, as RBAC names it.
        name: Its name.
        at: When the API server got the request, in Unix seconds.
    """

    resource: str
    name: str
    at: float


def _writes(audit_log: Path, since: int) -> Iterator[_Write]:
    """Yield the writes of the program from a place in the audit log on."""
    with audit_log.open("rb") as stream:
        stream.seek(since)
        for raw in stream:
            entry: dict[str, Any] = json.loads(raw)
            if entry["user"]["username"] == _USER and entry["verb"] not in _READS:
                about = entry["objectRef"]
                at = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
                yield _Write(about["resource"], about.get("name", ""), at)


@asynccontextmanager
async def _watching(world: MuxWorld) -> AsyncIterator[dict[str, float]]:
    """Watch the slices of the muxes; yield when each address was first seen in one."""
    seen: dict[str, float] = {}
    server, context = access(world.server.kubeconfig)
    url = f"{server}{ENDPOINT_SLICES}/namespaces/{world.edge}/endpointslices?watch=1"
    timeout = aiohttp.ClientTimeout(total=None)

    async def watch() -> None:
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=2**22) as http:
            while True:  # begun again when the API server ends it, with all that there is
                async with http.get(url) as response:
                    async for line in response.content:
                        now, found = time.monotonic(), json.loads(line)["object"]
                        for endpoint in found["endpoints"]:
                            seen.setdefault(endpoint["addresses"][0], now)

    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch())
        yield seen
        watching.cancel()
