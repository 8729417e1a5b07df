"""Measure from outside the measured code: a watch, the audit log, /proc, the simulator's access log."""

import asyncio
import base64
import json
import os
import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml

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
    """A watch over all pods of one namespace.

    It shares two cores with what it watches, so it processes data in the batches in which it arrives.
    """

    kubeconfig: Path
    namespace: str = "default"
    lives: dict[str, Life] = field(default_factory=dict)

    async def run(self) -> None:
        """Watch until cancelled; a watch that the server ends is resumed at once."""
        server, context = _access(self.kubeconfig)
        timeout = aiohttp.ClientTimeout(total=None)
        decoder = msgspec.json.Decoder(_Line)
        version = "0"
        url = f"{server}/api/v1/namespaces/{self.namespace}/pods"
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), timeout=timeout, read_bufsize=2**22
        ) as session:
            while True:
                query = {"watch": "1", "resourceVersion": version}
                async with session.get(url, params=query) as response:
                    rest = b""
                    async for piece in response.content.iter_any():
                        *lines, rest = (rest + piece).split(b"\n")
                        now = time.time()
                        for line in map(decoder.decode, lines):
                            version = line.object.metadata.resourceVersion or version
                            self._see(line, now)

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
        if not life.ready and any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
            life.ready = now

    async def until(self, moment: str, count: int, within_s: float) -> None:
        """Wait until so many pods have reached a step of their life."""
        deadline = time.monotonic() + within_s
        while sum(1 for life in self.lives.values() if getattr(life, moment)) < count:
            if time.monotonic() > deadline:
                seen = sum(1 for life in self.lives.values() if getattr(life, moment))
                raise TimeoutError(f"{seen} of {count} pods {moment} after {within_s:.0f} s")
            await asyncio.sleep(0.05)


def _access(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
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


def audited(audit_log: Path, since: int = 0) -> Counter[str]:
    """Count the provider's successful writes by kind: `pods/status`, `delete pods`, `claims`, `events`, `other`."""
    counts: Counter[str] = Counter()
    with audit_log.open("rb") as stream:
        stream.seek(since)
        for raw in stream:
            entry: dict[str, Any] = json.loads(raw)
            verb = entry.get("verb", "")
            if entry.get("user", {}).get("username") != PROVIDER or verb in {"get", "list", "watch"}:
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
