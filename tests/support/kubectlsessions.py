"""kubectl, and a kubelet API of the test behind the real API server: two Nodes, of which one declares WebSockets."""

import asyncio
import contextlib
import fcntl
import itertools
import os
import shutil
import struct
import termios
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.apiserver import NODES, Admin, ApiServer
from tests.support.kubeletserver import KubeletServer, serving_tls
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkpsandbox.controlplane.build import find_kubectl

PATIENCE_S: Final = 120.0
FEATURES: Final = {"new": ["ExtendWebSocketsToKubelet"], "old": []}
"""Nodes by what they declare: with it, the API server passes a client's WebSocket on; else it speaks SPDY itself."""
WITHOUT_WEBSOCKETS: Final = {
    "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false",
    "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false",
}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Result:
    """What a kubectl did."""

    code: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Stage:
    """The kubelet API, its Nodes and Pods, and the programs that speak to it.

    Attributes:
        server: The kubelet API.
        kubectls: Programs by version.
        kubeconfig: Of an administrator.
        namespace: Of the Pods `new` and `old`, each on a Node of its name.
        cache: A folder for kubectl.
    """

    server: KubeletServer
    kubectls: Mapping[str, Path]
    kubeconfig: Path
    namespace: str
    cache: Path

    async def run(
        self, *arguments: str, kubectl: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
    ) -> Result:
        """Run kubectl."""
        process = await self.start(*arguments, kubectl=kubectl, environ=environ)
        try:
            async with asyncio.timeout(PATIENCE_S):
                out, err = await process.communicate(stdin)
        finally:
            await _end(process)
        return Result(process.returncode or 0, out, err.decode())

    async def start(
        self, *arguments: str, kubectl: str, environ: Mapping[str, str] | None = None
    ) -> asyncio.subprocess.Process:
        """Start kubectl."""
        pipe = asyncio.subprocess.PIPE
        command = [str(self.kubectls[kubectl]), f"--namespace={self.namespace}", *arguments]
        surroundings = self._environ(environ)
        return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=surroundings)

    @contextlib.asynccontextmanager
    async def forwarding(
        self, pod: str, port: int, *, kubectl: str, environ: Mapping[str, str] | None = None
    ) -> AsyncIterator[int]:
        """Run `kubectl port-forward`; yields the local port."""
        process = await self.start("port-forward", f"pod/{pod}", f":{port}", kubectl=kubectl, environ=environ)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                line = (await process.stdout.readline()).decode()
            assert "Forwarding from 127.0.0.1:" in line, line
            yield int(line.partition("127.0.0.1:")[2].split()[0])
        finally:
            await _end(process)

    @contextlib.asynccontextmanager
    async def terminal(
        self, *arguments: str, kubectl: str, size: tuple[int, int], environ: Mapping[str, str] | None = None
    ) -> AsyncIterator["Terminal"]:
        """Run kubectl in a terminal of so many columns and rows."""
        master, slave = os.openpty()
        os.set_blocking(master, False)
        terminal = Terminal(master)
        terminal.resize(*size)
        setsid = shutil.which("setsid")
        assert setsid is not None
        command = [setsid, "--ctty", "--wait", str(self.kubectls[kubectl]), f"--namespace={self.namespace}", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=slave, stdout=slave, stderr=slave, env=self._environ(environ)
        )
        os.close(slave)
        try:
            with terminal.reading():
                yield terminal
                async with asyncio.timeout(PATIENCE_S):
                    await process.wait()
        finally:
            await _end(process)
            os.close(master)

    def _environ(self, changes: Mapping[str, str] | None) -> dict[str, str]:
        ours = {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.cache)}
        return {**os.environ, **ours, **(changes or {})}


class Terminal:
    """A person's end of a terminal."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._changed = asyncio.Event()
        self.shown = b""

    def resize(self, columns: int, rows: int) -> None:
        """Change its size; the program in it gets SIGWINCH."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: bytes) -> None:
        """Press keys."""
        os.write(self._master, text)

    async def until(self, condition: Callable[[bytes], object]) -> None:
        """Wait until what it shows satisfies a condition."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not condition(self.shown):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"the terminal shows {self.shown!r}") from None

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Read what is shown while the block runs."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                self.shown += os.read(self._master, 65536)
            except OSError:  # the program has ended
                loop.remove_reader(self._master)
            self._changed.set()

        loop.add_reader(self._master, read)
        try:
            yield
        finally:
            loop.remove_reader(self._master)


@contextlib.asynccontextmanager
async def staged(server: ApiServer, directory: Path, limits: SessionLimits) -> AsyncIterator[Stage]:
    """Set the stage, and clear it."""
    number = next(_numbers)
    namespace = f"sessions-{number}"
    kubelet = KubeletServer(limits, serving_tls(directory / "tls"))
    kubectls = {"own": server.programs / "kubectl"}
    if (other := find_kubectl()) != kubectls["own"]:
        kubectls["other"] = other
    async with Admin(server) as admin, kubelet.running():
        await _make(admin, namespace, kubelet.port)
        try:
            yield Stage(kubelet, kubectls, server.kubeconfig, namespace, directory / "cache")
        finally:
            await admin.delete(f"/api/v1/namespaces/{namespace}/pods", grace_s=0)
            for name in FEATURES:
                await admin.delete(f"{NODES}/{namespace}-{name}")


async def _make(admin: Admin, namespace: str, port: int) -> None:
    await admin.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    account = {"metadata": {"name": "default"}}
    await admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for name, features in FEATURES.items():
        node = {
            "metadata": {"name": f"{namespace}-{name}"},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                "declaredFeatures": features,
            },
        }
        await admin.create(NODES, node)
        spec = {
            "nodeName": f"{namespace}-{name}",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "x", "stdin": True, "tty": True}, {"name": "d", "image": "x"}],
        }
        await admin.create(pods, {"metadata": {"name": name}, "spec": spec})
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {
                    "name": container,
                    "image": "x",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {}},
                }
                for container in ("c", "d")
            ],
        }
        await admin.patch(f"{pods}/{name}/status", {"status": status})


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
