"""An HAProxy and a relay as processes, devices behind them, and the mux that they follow, written by hand."""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.apiserver import SYSTEM, Admin
from vkpsandbox.controlplane.relay import find_haproxy, relay_processes
from vkpsandbox.errors import SandboxError
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec, environment

MUX: Final = "labs"
SERVICES: Final = f"/api/v1/namespaces/{SYSTEM}/services"
SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices"
ADDRESS: Final = "198.51.100.1"
"""Of all devices; the API server accepts no loopback address in a slice."""
ENDED_S: Final = 10.0
"""How long a connection of an ended lablet may stay: promised are 2 s, and the machine may be busy."""
REWRITE: Final = {"VKPROVIDER_RELAY_REWRITE": f"{ADDRESS}/32=127.0.0.1/32"}


def haproxy_or_skip() -> None:
    """Skip a test without HAProxy, but fail it in CI."""
    try:
        find_haproxy()
    except SandboxError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@dataclass
class RelaySide:
    """One HAProxy and the relay that fills it.

    Attributes:
        folder: For their files.
        kubeconfig: Of the relay.
        ports: The first and the last port of HAProxy.
        settings: Further settings of both.
        health_port: Where HAProxy says whether it is ready.
    """

    folder: Path
    kubeconfig: Path
    ports: tuple[int, int]
    settings: Mapping[str, str] = field(default_factory=lambda: REWRITE)
    health_port: int = field(default_factory=lambda: free_ports(1)[0])
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def spec(self, name: str) -> ProcessSpec:
        """Return the command line of `haproxy` or `relay`."""
        specs = relay_processes(
            self.folder,
            self.kubeconfig,
            mux=f"{SYSTEM}/{MUX}",
            ports=self.ports,
            health=f"127.0.0.1:{self.health_port}",
            settings=self.settings,
            run_in=self.folder,
        )
        return next(spec for spec in specs if spec.name == name)

    def start(self, *names: str) -> None:
        """Start processes."""
        for name in names:
            spec = self.spec(name)
            with (self.folder / f"{name}.log").open("ab") as log:
                env = environment(os.environ, spec.env, self.folder)
                self._running[name] = subprocess.Popen(  # noqa: S603 (our own program)
                    spec.argv, env=env, stdout=log, stderr=log, cwd=self.folder
                )

    def kill(self, name: str) -> None:
        """Kill a process, by `kill -9`."""
        process = self._running.pop(name)
        process.kill()
        process.wait(20)

    def end(self) -> None:
        """Kill what runs."""
        for name in list(self._running):
            self.kill(name)

    def pid(self, name: str) -> int:
        """Return the id of a process."""
        return self._running[name].pid

    def log(self, name: str) -> str:
        """Return what a process has logged."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    async def tell(self, *commands: str) -> None:
        """Send commands to HAProxy's runtime socket, which must take them."""
        reader, writer = await asyncio.open_unix_connection(str(self.folder / "haproxy.sock"))
        writer.write(f"{';'.join(commands)}\n".encode())
        answer = await reader.read()
        writer.close()
        assert answer.strip() == b""

    async def status(self) -> int:
        """Return the HTTP status of HAProxy's readiness; 0 if it does not answer."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.health_port)
        except OSError:
            return 0
        writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
        line = await reader.readline()
        writer.close()
        return int(line.split()[1]) if line else 0

    async def ready(self, within_s: float = 60) -> None:
        """Wait until HAProxy is filled."""
        async with asyncio.timeout(within_s):
            while await self.status() != 200:  # noqa: ASYNC110 (nothing announces it; the status's number)
                await asyncio.sleep(0.05)


async def dial(port: int, source: str = "127.0.0.1") -> "Dialled":
    """Connect through HAProxy and return the session; its device is "" if the port was reset."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    except OSError:
        return Dialled("")
    try:
        async with asyncio.timeout(60):
            name = (await reader.readline()).decode().strip()
    except OSError:
        name = ""
    if not name:
        writer.close()
    return Dialled(name, reader, writer)


async def who(port: int, source: str = "127.0.0.1") -> str:
    """Connect through HAProxy and return the device that answers, "" if the port is reset."""
    session = await dial(port, source)
    session.close()
    return session.device


class Dialled:
    """A connection through HAProxy.

    Attributes:
        device: The device's name.
    """

    def __init__(
        self, device: str, reader: asyncio.StreamReader | None = None, writer: asyncio.StreamWriter | None = None
    ) -> None:
        self.device = device
        self._reader = reader
        self._writer = writer

    async def alive(self) -> bool:
        """Return whether what is sent comes back."""
        assert self._reader is not None
        assert self._writer is not None
        try:
            self._writer.write(b"hello\n")
            async with asyncio.timeout(60):
                return await self._reader.readline() == b"hello\n"
        except ConnectionError:
            self.close()
            return False

    async def ended(self, within_s: float = ENDED_S) -> None:
        """Wait for the other side to close."""
        assert self._reader is not None
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(within_s):
                assert await self._reader.read() == b""
        self.close()

    def close(self) -> None:
        """Close it."""
        if self._writer is not None:
            self._writer.close()


@asynccontextmanager
async def device(name: str) -> AsyncIterator[int]:
    """Serve a device, which says its name and echoes lines; yield its port."""

    open_: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_.add(writer)
        writer.write(f"{name}\n".encode())
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()
        writer.close()
        open_.discard(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET, backlog=1000)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in list(open_):
            writer.transport.abort()
        await asyncio.sleep(0.05)  # what is being accepted at this moment is closed as well


class MuxObjects:
    """The Service of a mux and its slices, one for each lablet, as `vkprovider mux` writes them."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def create(self, ports: Mapping[str, int], ranges: tuple[str, ...] = ()) -> None:
        """Create the Service."""
        spec: dict[str, Any] = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
        spec["ports"] = [{"name": name, "port": port} for name, port in ports.items()]
        spec["loadBalancerSourceRanges"] = list(ranges)
        await self._admin.create(SERVICES, {"metadata": {"name": MUX}, "spec": spec})

    async def allow(self, *ranges: str) -> None:
        """Set who may connect; nobody named admits everybody."""
        await self._admin.patch(f"{SERVICES}/{MUX}", {"spec": {"loadBalancerSourceRanges": list(ranges) or None}})

    async def lead(self, lablet: str, targets: Mapping[str, int], *, ready: bool = True) -> None:
        """Write the slice of a lablet: the name of each port of the mux, and the device's port."""
        body = {
            "metadata": {"name": lablet, "labels": {"kubernetes.io/service-name": MUX}},
            "addressType": "IPv4",
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in targets.items()],
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": ready}}],
        }
        if await self._admin.get(f"{SLICES}/{lablet}") is None:
            await self._admin.create(SLICES, body)
        else:
            await self._admin.replace(f"{SLICES}/{lablet}", body)

    async def withdraw(self, lablet: str) -> None:
        """Delete the slice of a lablet."""
        await self._admin.delete(f"{SLICES}/{lablet}")

    async def delete(self) -> None:
        """Delete the Service."""
        await self._admin.delete(f"{SERVICES}/{MUX}")

    async def wipe(self) -> None:
        """Delete everything."""
        await self._admin.delete(SLICES)
        await self.delete()
