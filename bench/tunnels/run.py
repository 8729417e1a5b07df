"""Tunnels beside the direct way, to the same simulated worker: requests, imports, and what many agents cost.

The three ways take turns, round by round, so that what else the machine does meets all of them; figures are medians of
rounds, and ratios are made within a round. The replica's end runs in this process, simulator, broker and agents each in
one of their own.
"""

import asyncio
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import structlog

from bench.figures import Figures, percentile
from bench.main_job import TOPOLOGY
from bench.outside import cpu_s
from bench.tunnels.chorus import Chorus
from bench.tunnels.ways import KINDS, Ways, running, standing
from tunnels.base import Transport
from tunnels.direct import DirectTransport, trusting
from vkprovider.cml.factory import CONNECTIONS_MAX, session_over
from vkprovider.cml.operations import BASE, LABS_API
from vkprovider.cml.spi import Credentials
from vkprovider.cml.worker import CmlLabs
from vkprovider.labs.controllers.worker.tunnels import WorkerRoute

ROUNDS = 7
REQUESTS = {0: 3000, 50: 600}
"""Of each round, by what the simulator adds to each answer, in ms: one that answers at once, so that the ways alone
are left, and one that takes its time as CML does."""
IN_FLIGHT, ANSWER_BYTES = 50, 10_000
"""Of an answer almost all is a lab's notes, which cost the simulator little."""
ALLOWANCE_MS = 5.0
"""What a tunnel's p99 may have beyond its share, for a machine on which direct requests take next to nothing."""
IMPORT_ROUNDS, LABS = 5, 200
AGENTS, SETTLE_S, MEASURE_S = 1000, 15.0, 60.0
DEADLINE_S = 120.0
CPU_MS_MIN = 0.02
"""Of a request; a process that needs less has no part in it."""
DIRECT: Final = "direct"

Sample = Callable[[str], Awaitable[Mapping[str, float]]]
"""Measures a way once."""


async def run() -> Figures:
    """Measure."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    names = [f"a{number}" for number in range(AGENTS)]
    with tempfile.TemporaryDirectory(prefix="bench-tunnels-") as folder:
        async with standing(Path(folder), names) as ways:
            figures = await _requests(ways) | await _imports(ways)
            for kind in KINDS:
                figures |= await _heartbeats(ways, kind, names, Path(folder))
            return figures


async def _alternating(rounds: int, sample: Sample) -> dict[str, list[Mapping[str, float]]]:
    """Measure each way once in every round."""
    found: dict[str, list[Mapping[str, float]]] = {way: [] for way in (DIRECT, *KINDS)}
    for number in range(rounds):
        for way, samples in found.items():
            samples.append(await sample(way))
        said = "; ".join(f"{way} {_shown(samples[-1])}" for way, samples in found.items())
        print(f"tunnels, round {number + 1}: {said}", flush=True)
    return found


def _shown(sample: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.{2 if name.startswith('cpu') else 1}f}" for name, value in sample.items())


async def _requests(ways: Ways) -> Figures:
    """Ask for answers of 10 KB, fifty at a time."""
    async with AsyncExitStack() as stack:
        transports = _transports(ways, stack)
        token = await _log_in(transports[DIRECT], ways.user)
        headers = {way: {"Authorization": f"Bearer {token}"} if way == DIRECT else {} for way in transports}
        path = await _lab_with_notes(transports[DIRECT], headers[DIRECT])

        for way, transport in transports.items():
            await _times_ms(transport, headers[way], path, 4 * IN_FLIGHT)
        figures: Figures = {}
        for latency_ms, count in REQUESTS.items():

            async def sample(way: str, count: int = count) -> dict[str, float]:
                used, began = _cpu_s(ways), time.perf_counter()
                times = await _times_ms(transports[way], headers[way], path, count)
                per_s = count / (time.perf_counter() - began)
                cpu = {name: 1000 * (now - used[name]) / count for name, now in _cpu_s(ways).items()}
                shares = {f"cpu {name}": each for name, each in cpu.items() if each >= CPU_MS_MIN}
                return {"p50": percentile(times, 0.5), "p99": percentile(times, 0.99), "per s": per_s, **shares}

            await _delay(ways.url, latency_ms)
            print(f"answers of 10 KB, {IN_FLIGHT} in flight, each {latency_ms} ms later, in ms", flush=True)
            figures |= _of_requests(await _alternating(ROUNDS, sample), latency_ms)
    return figures


def _cpu_s(ways: Ways) -> dict[str, float]:
    """Return the CPU seconds so far of all that takes part, this process included."""
    return {"replica": time.process_time(), **{name: cpu_s(pid) for name, pid in ways.pids.items()}}


def _of_requests(found: Mapping[str, list[Mapping[str, float]]], latency_ms: int) -> Figures:
    figures: Figures = {}
    for way, samples in found.items():
        for name in sorted({name for sample in samples for name in sample}):
            unit = "requests" if name == "per s" else "ms"
            figures[f"{way} at {latency_ms} ms, {name}"] = (_median(s.get(name, 0.0) for s in samples), unit)
    for kind in KINDS:
        pairs = list(zip(found[kind], found[DIRECT], strict=True))
        at = f"/ direct at {latency_ms} ms"
        figures[f"{kind} {at}, p50"] = (_median(by["p50"] / direct["p50"] for by, direct in pairs), "ratio")
        share = _median((by["p99"] - ALLOWANCE_MS) / direct["p99"] for by, direct in pairs)
        figures[f"({kind} - 5 ms) {at}, p99"] = (share, "ratio")
    return figures


def _transports(ways: Ways, stack: AsyncExitStack) -> dict[str, Transport]:
    """Open each way as a replica does."""
    direct = DirectTransport(ways.url, tls=trusting(verify=False), allow=LABS_API, connections_max=CONNECTIONS_MAX)
    opened: dict[str, Transport] = {DIRECT: direct}
    for kind in KINDS:
        way = WorkerRoute(kind, guard=lambda: None, term=lambda: 1)
        opened[kind] = ways.tunnels.transport(kind, way, LABS_API, "bench")
    for transport in opened.values():
        stack.push_async_callback(transport.close)
    return opened


async def _log_in(transport: Transport, user: tuple[str, str]) -> str:
    body = json.dumps(dict(zip(("username", "password"), user, strict=True))).encode()
    kind = {"Content-Type": "application/json"}
    response = await transport.request("POST", f"{BASE}/authenticate", body=body, headers=kind, deadline_s=DEADLINE_S)
    assert response.status == 200, response
    return str(json.loads(response.body))


async def _lab_with_notes(transport: Transport, headers: Mapping[str, str]) -> str:
    """Import a lab with long notes, and return its path."""
    topology = TOPOLOGY.replace("notes: ''", f"notes: {'x' * ANSWER_BYTES}")
    made = await transport.request(
        "POST", f"{BASE}/import", body=topology.encode(), headers=headers, deadline_s=DEADLINE_S
    )
    path = f"{BASE}/labs/{json.loads(made.body)['id']}"
    answer = await transport.request("GET", path, headers=headers, deadline_s=DEADLINE_S)
    assert ANSWER_BYTES <= len(answer.body) <= 1.2 * ANSWER_BYTES, len(answer.body)
    return path


async def _times_ms(transport: Transport, headers: Mapping[str, str], path: str, count: int) -> list[float]:
    """Send requests, always as many at once, and return what each took."""
    times: list[float] = []
    left = iter(range(count))

    async def one_after_another() -> None:
        for _ in left:
            began = time.perf_counter()
            response = await transport.request("GET", path, headers=headers, deadline_s=DEADLINE_S)
            times.append(1000 * (time.perf_counter() - began))
            assert response.status == 200, response

    await asyncio.gather(*(one_after_another() for _ in range(IN_FLIGHT)))
    return times


async def _imports(ways: Ways) -> Figures:
    """Import labs all at once, on a worker that answers at once and on one that takes its time."""
    async with AsyncExitStack() as stack:
        transports = _transports(ways, stack)
        labs: dict[str, CmlLabs] = {}
        for way, transport in transports.items():
            session = session_over(transport, ways.url, _reader(ways.user) if way == DIRECT else None)
            labs[way] = CmlLabs(session, ways.url)
        topology = TOPOLOGY.strip()

        async def sample(way: str) -> dict[str, float]:
            began = time.perf_counter()
            imports = (labs[way].import_lab(topology, f"bench-{number}") for number in range(LABS))
            made = [answer.id for answer in await asyncio.gather(*imports)]
            took = {"s": time.perf_counter() - began}
            assert len(set(made)) == LABS, "an import was doubled or lost"
            await asyncio.gather(*map(labs[DIRECT].delete_lab, made))
            return took

        found = {}
        for latency_ms in REQUESTS:
            await _delay(ways.url, latency_ms)
            print(f"imports of {LABS} labs, each request {latency_ms} ms later, in s", flush=True)
            found[latency_ms] = await _alternating(IMPORT_ROUNDS, sample)
        await _delay(ways.url, 0)
    figures: Figures = {}
    for latency_ms, by_way in found.items():
        for way, samples in by_way.items():
            ratio = _median(s["s"] / d["s"] for s, d in zip(samples, by_way[DIRECT], strict=True))
            name = f"import of {LABS} at {latency_ms} ms, {way}"
            figures[name] = (_median(s["s"] for s in samples), "s")
            if way != DIRECT:
                figures[f"{name} / direct"] = (ratio, "ratio")
    return figures


def _reader(user: tuple[str, str]) -> Callable[[], Awaitable[Credentials]]:
    async def read() -> Credentials:
        return Credentials(*user)

    return read


async def _delay(url: str, latency_ms: int) -> None:
    """Let every request to the simulator take longer."""
    async with (
        aiohttp.ClientSession() as session,
        session.put(f"{url}/sim/latency", json={"latency_ms": latency_ms}, ssl=False) as response,
    ):
        assert response.ok, await response.text()


async def _heartbeats(ways: Ways, kind: str, names: list[str], folder: Path) -> Figures:
    """Let agents say that they live, and measure what this process and the broker need for it."""
    chorus = Chorus(names, ways.broker, ways.page if kind == "http" else "")
    score = folder / f"chorus-{kind}.json"
    score.write_bytes(msgspec.json.encode(chorus))
    argv = (sys.executable, "-m", "bench.tunnels.chorus", str(score))
    async with running(folder / "logs" / f"chorus-{kind}.log", argv):
        await ways.until_there(kind, names)
        await asyncio.sleep(SETTLE_S)
        before, of_broker = time.process_time(), cpu_s(ways.pids["mosquitto"])
        await asyncio.sleep(MEASURE_S)
        used = (time.process_time() - before) / MEASURE_S
        of_broker = (cpu_s(ways.pids["mosquitto"]) - of_broker) / MEASURE_S
        await ways.until_there(kind, names)
    figures: Figures = {f"{AGENTS:,} agents by {kind}": (100 * used, "%")}
    return figures | ({f"{AGENTS:,} agents, mosquitto": (100 * of_broker, "%")} if kind == "mqtt" else {})


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)
