"""Measure from outside the measured code: a watch, the audit log, /proc, the simulator's access log."""

import asyncio
import base64
import itertools
import json
import os
import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

from vkpsandbox import Sandbox

_APART_S = 0.1
PROVIDER = "system:serviceaccount:vkprovider-system:vkprovider"


class _Meta(msgspec.Struct):
    name: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 (the wire's own name)


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 (the wire's own name)


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Line(msgspec.Struct):
    type: str
    object: _Pod


@dataclass(slots=True)
class Life:
    """When a watch first saw each step of one Pod's life (Unix seconds)."""

    bound: float = 0.0
    running: float = 0.0
    ready: float = 0.0
    gone: float = 0.0


@dataclass(slots=True)
class Watcher:
    """A watch over all pods of one namespace, or of all where it is empty.

    It shares two cores with what it watches, so it processes data in the batches in which it arrives.
    """

    kubeconfig: Path
    namespace: str = "default"
    lives: dict[str, Life] = field(default_factory=dict)
    ended: int = 0
    """How often the server ended the watch."""
    unready: int = 0
    """How often a pod that had been Ready was seen not Ready."""
    _ready: set[str] = field(default_factory=set)

    async def run(self) -> None:
        """Watch until cancelled; a watch that the server ends is resumed at once."""
        server, context = access(self.kubeconfig)
        timeout = aiohttp.ClientTimeout(total=None)
        decoder = msgspec.json.Decoder(_Line)
        version = "0"
        url = f"{server}/api/v1/{f'namespaces/{self.namespace}/' if self.namespace else ''}pods"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), timeout=timeout, read_bufsize=2**22
        ) as session:
            while True:
                query = {"watch": "1", "resourceVersion": version}
                with suppress(aiohttp.ClientError):
                    async with session.get(url, params=query) as response:
                        rest = b""
                        async for piece in response.content.iter_any():
                            *lines, rest = (rest + piece).split(b"\n")
                            now = time.time()
                            for line in map(decoder.decode, lines):
                                assert line.type != "ERROR", "the watch of the benchmark lost its place"
                                version = line.object.metadata.resourceVersion or version
                                self._see(line, now)
                self.ended += 1

    def _see(self, line: _Line, now: float) -> None:
        pod = line.object
        life = self.lives.setdefault(pod.metadata.uid, Life())
        if line.type == "DELETED":
            life.gone = life.gone or now
            return
        if pod.spec.nodeName and not life.bound:
            life.bound = now
        if pod.status.phase == "Running" and not life.running:
            life.running = now
        is_ready = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
        if is_ready:
            life.ready = life.ready or now
            self._ready.add(pod.metadata.uid)
        elif pod.metadata.uid in self._ready:
            self._ready.discard(pod.metadata.uid)
            self.unready += 1

    async def until(self, moment: str, count: int, within_s: float) -> None:
        """Wait until so many pods have reached a step of their life."""
        deadline = time.monotonic() + within_s
        while sum(1 for life in self.lives.values() if getattr(life, moment)) < count:
            if time.monotonic() > deadline:
                seen = sum(1 for life in self.lives.values() if getattr(life, moment))
                raise TimeoutError(f"{seen} of {count} pods {moment} after {within_s:.0f} s")
            await asyncio.sleep(0.05)


@dataclass(slots=True)
class Yardstick:
    """A bare PUT of a small ConfigMap every 100 ms, as admin: what the API server takes for a write at that time.

    Attributes:
        took_ms: By when the request was sent (Unix seconds).
    """

    kubeconfig: Path
    took_ms: dict[float, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Send until cancelled; each PUT at its time, whether the one before has been answered or not."""
        server, context = access(self.kubeconfig)
        collection = f"{server}/api/v1/namespaces/default/configmaps"
        body: dict[str, Any] = {"metadata": {"name": "bench-yardstick"}, "data": {}}
        timeout = aiohttp.ClientTimeout(total=30)
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as puts:
            async with session.post(collection, json=body) as made:
                await made.read()
            for number in itertools.count():
                changed = {**body, "data": {"number": str(number)}}
                puts.create_task(self._put(session, f"{collection}/bench-yardstick", changed))
                await asyncio.sleep(_APART_S)

    def took_at(self, at: float) -> float:
        """Return what the PUT took that was sent next to a moment (Unix seconds)."""
        return self.took_ms[min(self.took_ms, key=lambda sent: abs(sent - at))]

    async def _put(self, session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> None:
        sent, began = time.time(), time.perf_counter()
        async with session.put(url, json=body) as answer:
            await answer.read()
            answer.raise_for_status()
        self.took_ms[sent] = 1000 * (time.perf_counter() - began)


def access(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    """Return the API server's URL, and TLS with the certificate of a kubeconfig's user."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_text(cluster, "certificate-authority"))
    with _file(_text(user, "client-certificate")) as certificate, _file(_text(user, "client-key")) as key:
        context.load_cert_chain(certificate, key)
    return str(cluster["server"]), context


def _text(part: dict[str, str], key: str) -> str:
    if f"{key}-data" in part:
        return base64.b64decode(part[f"{key}-data"]).decode()
    return Path(part[key]).read_text()


@contextmanager
def _file(text: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as stream:
        stream.write(text)
        stream.flush()
        yield stream.name


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of(sandbox: Sandbox) -> dict[str, float]:
    """Return the CPU seconds so far of each process of a sandbox, and of this one as `benchmark`."""
    running = {status.name: status.pid for status in sandbox.processes() if status.pid}
    return {name: cpu_s(pid) for name, pid in running.items()} | {"benchmark": cpu_s(os.getpid())}


def cpu_since(before: Mapping[str, float], sandbox: Sandbox) -> dict[str, float]:
    """Return the CPU seconds of each process since `cpu_of` returned `before`."""
    return {name: seconds - before[name] for name, seconds in cpu_of(sandbox).items()}


def machine_busy_s() -> float:
    """Return the CPU seconds that the whole machine has been busy so far, all cores together."""
    user, nice, system, _idle, _waiting, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def resident_peak_mb(pid: int) -> float:
    """Return a process's peak resident memory in MB."""
    return _memory_mb(pid, "VmHWM:")


def resident_now_mb(pid: int) -> float:
    """Return a process's resident memory in MB."""
    return _memory_mb(pid, "VmRSS:")


def _memory_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


def audited(audit_log: Path, since: int = 0, user: str = PROVIDER) -> Counter[str]:
    """Count a user's successful writes by kind: `pods/status`, `delete pods`, `claims`, `events`, `other`."""
    counts: Counter[str] = Counter()
    with audit_log.open("rb") as stream:
        stream.seek(since)
        for raw in stream:
            entry: dict[str, Any] = json.loads(raw)
            verb = entry.get("verb", "")
            if entry.get("user", {}).get("username") != user or verb in {"get", "list", "watch"}:
                continue
            counts[_kind(verb, entry.get("objectRef", {}))] += 1
            if entry.get("responseStatus", {}).get("code", 0) >= 400:
                counts["failed"] += 1
    return counts


def _kind(verb: str, ref: dict[str, str]) -> str:
    resource = ref.get("resource", "")
    if resource == "pods":
        return "pods/status" if ref.get("subresource") == "status" else f"{verb} pods"
    if resource == "configmaps" and ref.get("name", "").endswith("-port-allocations"):
        return "claims"
    return resource if resource in {"events", "leases"} else "other"
